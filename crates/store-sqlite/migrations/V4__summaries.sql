-- What lists say of a run beyond its columns: iteration, what it waits on, usage, budget. JSON, written only when it
-- changes; NULL where there is nothing to say.

ALTER TABLE runs ADD COLUMN summary TEXT;

-- Reader::runs that diverged, or have nothing left of their budget: few, so the others cost nothing here.
CREATE INDEX runs_diverged ON runs (tenant) WHERE summary ->> '$.diverged';
CREATE INDEX runs_over_budget ON runs (tenant) WHERE summary ->> '$.overBudget';
