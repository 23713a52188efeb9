-- Lists go from the newest to the oldest by `created_at`, then by `run`: a range of time is a range of every index, and a
-- page costs the same whatever came before it. In SQLite every index ends with the rowid, which is `run`.

DROP INDEX runs_by_workflow;
DROP INDEX runs_by_tenant;
DROP INDEX runs_by_status;
DROP INDEX runs_by_parent;
DROP INDEX runs_by_root;
DROP INDEX runs_diverged;
DROP INDEX runs_over_budget;
DROP INDEX runs_by_memory_scope;
DROP INDEX runs_by_scope;
DROP INDEX ledgers_by_base;

-- What the first record of a run knew of its memory and its workspace: how far it looks back. NULL as long as it has none.
ALTER TABLE runs ADD COLUMN first_memory INTEGER;
ALTER TABLE runs ADD COLUMN first_workspace INTEGER;
UPDATE runs SET
    first_memory = (SELECT memory FROM events WHERE events.run = runs.run ORDER BY seq LIMIT 1),
    first_workspace = (SELECT workspace FROM events WHERE events.run = runs.run ORDER BY seq LIMIT 1)
WHERE pruned_at IS NULL;

-- Reader::runs of one workflow in a tenant.
CREATE INDEX runs_by_workflow ON runs (tenant, workflow, created_at);
-- Reader::runs of one tenant.
CREATE INDEX runs_by_tenant ON runs (tenant, created_at);
-- Reader::runs by status. Nearly all runs end well, so those are left out and cost nothing here.
CREATE INDEX runs_by_status ON runs (tenant, status, created_at) WHERE status <> 'completed';
-- Reader::runs by parent: the children of a run.
CREATE INDEX runs_by_parent ON runs (parent, created_at) WHERE parent IS NOT NULL;
-- Reader::descendants, and Reader::runs of one tree.
CREATE INDEX runs_by_root ON runs (root, created_at) WHERE root IS NOT NULL;
-- Reader::runs that diverged, or have nothing left of their budget: few, so the others cost nothing here.
CREATE INDEX runs_diverged ON runs (tenant, created_at) WHERE summary ->> '$.diverged';
CREATE INDEX runs_over_budget ON runs (tenant, created_at) WHERE summary ->> '$.overBudget';
-- Reader::kept_trees: what retention may take.
CREATE INDEX runs_with_log ON runs (tenant, created_at) WHERE root IS NULL AND NOT pruned_log;

-- Reader::versioned_floor, the lowest first. Few runs have a memory scope with a name of its own.
CREATE INDEX runs_by_memory_scope ON runs (tenant, memory_scope, first_memory)
    WHERE memory_scope <> '' AND pruned_at IS NULL;
CREATE INDEX runs_by_scope ON runs (tenant, scope, first_memory) WHERE scope IS NOT NULL AND pruned_at IS NULL;
CREATE INDEX runs_by_workspace ON runs (tenant, workspace_scope, first_workspace) WHERE pruned_at IS NULL;
CREATE INDEX ledgers_by_base ON ledgers (base, base_version) WHERE base IS NOT NULL;

-- Reader::runs by tag, in the order of lists. A run's tags never change.
CREATE TABLE run_tags (
    tenant     TEXT    NOT NULL,
    tag        TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    run        INTEGER NOT NULL,
    PRIMARY KEY (tenant, tag, created_at, run)
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO run_tags (tenant, tag, created_at, run)
    SELECT tenant, value, created_at, run FROM runs, json_each(runs.tags) WHERE runs.tags <> '[]';

-- How many runs of each status a tenant has. Kept as runs come and go on: counting them would take longer the more there
-- are.
CREATE TABLE run_counts (
    tenant TEXT    NOT NULL,
    status TEXT    NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (tenant, status)
) STRICT, WITHOUT ROWID;

INSERT INTO run_counts (tenant, status, count) SELECT tenant, status, count(*) FROM runs GROUP BY tenant, status;

CREATE TRIGGER count_new_run AFTER INSERT ON runs BEGIN
    INSERT INTO run_counts (tenant, status, count) VALUES (new.tenant, new.status, 1)
        ON CONFLICT (tenant, status) DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER count_moved_run AFTER UPDATE OF status ON runs WHEN new.status <> old.status BEGIN
    UPDATE run_counts SET count = count - 1 WHERE tenant = old.tenant AND status = old.status;
    INSERT INTO run_counts (tenant, status, count) VALUES (new.tenant, new.status, 1)
        ON CONFLICT (tenant, status) DO UPDATE SET count = count + 1;
END;
