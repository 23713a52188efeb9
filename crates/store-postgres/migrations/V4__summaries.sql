-- What lists say of a run beyond its columns: iteration, what it waits on, usage, budget. JSON; NULL where there is nothing
-- to say. What lists look for in it has columns of its own: JSON may hold a character that this database has no place for.

ALTER TABLE runs ADD COLUMN summary TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN diverged BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE runs ADD COLUMN over_budget BOOLEAN NOT NULL DEFAULT false;
ALTER TABLE runs ADD COLUMN cost_usd DOUBLE PRECISION;

-- Reader::runs that diverged, or have nothing left of their budget: few, so the others cost nothing here.
CREATE INDEX runs_diverged ON runs (tenant, position) WHERE diverged;
CREATE INDEX runs_over_budget ON runs (tenant, position) WHERE over_budget;
