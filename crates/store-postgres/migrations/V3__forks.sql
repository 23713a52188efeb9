-- Forks share what came before them: a run's log before its fork point is its source's, and a ledger forked from
-- another one sees that one up to a version.

ALTER TABLE runs ADD COLUMN origin TEXT COLLATE "C"; -- JSON; where a fork comes from
ALTER TABLE runs ADD COLUMN origin_run TEXT COLLATE "C"; -- the source's id
ALTER TABLE runs ADD COLUMN origin_seq BIGINT NOT NULL DEFAULT 0; -- where the log begins
ALTER TABLE runs ADD COLUMN workspace_scope TEXT COLLATE "C" NOT NULL DEFAULT ''; -- empty: the tenant's own

ALTER TABLE ledgers ADD COLUMN base BYTEA;
ALTER TABLE ledgers ADD COLUMN base_version BIGINT NOT NULL DEFAULT 0;

-- Reader::forks.
CREATE INDEX runs_by_origin ON runs (origin_run, position) WHERE origin_run IS NOT NULL;
-- Reader::ledger_floor: the ledgers that look back into another one.
CREATE INDEX ledgers_by_base ON ledgers (base) WHERE base IS NOT NULL;
