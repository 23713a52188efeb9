-- Reader::active_trees: what a tenant has under way. Trees that have ended are not in it, so it stays small.
CREATE INDEX active_trees ON runs (tenant, status)
    WHERE root IS NULL AND status NOT IN ('completed', 'failed', 'cancelled');
