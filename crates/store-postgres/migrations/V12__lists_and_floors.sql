-- Lists go from the newest to the oldest by `created_at`, then by `position`: a range of time is a range of every index, and
-- a page costs the same whatever came before it.

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
ALTER TABLE runs ADD COLUMN first_memory BIGINT;
ALTER TABLE runs ADD COLUMN first_workspace BIGINT;
UPDATE runs SET
    first_memory = (SELECT memory FROM events WHERE events.run = runs.id ORDER BY seq LIMIT 1),
    first_workspace = (SELECT workspace FROM events WHERE events.run = runs.id ORDER BY seq LIMIT 1)
WHERE pruned_at IS NULL;

-- Reader::runs of one workflow in a tenant.
CREATE INDEX runs_by_workflow ON runs (tenant, workflow, created_at, position);
-- Reader::runs of one tenant; Reader::tenants.
CREATE INDEX runs_by_tenant ON runs (tenant, created_at, position);
-- Reader::runs by status. Nearly all runs end well, so those are left out and cost nothing here.
CREATE INDEX runs_by_status ON runs (tenant, status, created_at, position) WHERE status <> 'completed';
-- Reader::runs by parent: the children of a run.
CREATE INDEX runs_by_parent ON runs (parent, created_at, position) WHERE parent IS NOT NULL;
-- Reader::descendants, Reader::runs of one tree, and a change of owner.
CREATE INDEX runs_by_root ON runs (root, created_at, position) WHERE root IS NOT NULL;
-- Reader::runs that diverged, or have nothing left of their budget: few, so the others cost nothing here.
CREATE INDEX runs_diverged ON runs (tenant, created_at, position) WHERE diverged;
CREATE INDEX runs_over_budget ON runs (tenant, created_at, position) WHERE over_budget;
-- Reader::kept_trees: what retention may take.
CREATE INDEX runs_with_log ON runs (tenant, created_at, position) WHERE root IS NULL AND NOT pruned_log;

-- Reader::versioned_floor, the lowest first. Few runs have a memory scope with a name of its own.
CREATE INDEX runs_by_memory_scope ON runs (tenant, memory_scope, first_memory)
    WHERE memory_scope <> '' AND pruned_at IS NULL;
CREATE INDEX runs_by_scope ON runs (tenant, scope, first_memory) WHERE scope IS NOT NULL AND pruned_at IS NULL;
-- The beginning of a scope: an index has no room for a long one, and hardly any two begin alike for so long.
CREATE INDEX runs_by_workspace ON runs (tenant, left(workspace_scope, 100), first_workspace) WHERE pruned_at IS NULL;
CREATE INDEX ledgers_by_base ON ledgers (base, base_version) WHERE base IS NOT NULL;

-- Reader::runs by tag, in the order of lists. A run's tags never change. A long one is here by its key; see text.rs.
CREATE TABLE run_tags (
    tenant     TEXT COLLATE "C" NOT NULL,
    tag        TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    position   BIGINT NOT NULL,
    run        TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, tag, created_at, position)
);

INSERT INTO run_tags (tenant, tag, created_at, position, run)
    SELECT DISTINCT tenant, CASE WHEN octet_length(tag) <= 512 THEN tag
        ELSE rtrim(left(tag, 100), chr(1)) || chr(1) || chr(3) || encode(sha256(convert_to(tag, 'UTF8')), 'hex') END,
        created_at, position, id
    FROM runs, unnest(tags) AS tag;
