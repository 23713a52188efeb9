-- Memory scopes and workspaces: append-only ledgers of changes, numbered 1, 2, 3, … in each ledger. `ledger` is a digest
-- of (tenant, kind, scope), so nobody has to look it up.

CREATE TABLE ledgers (
    ledger     BYTEA PRIMARY KEY,
    tenant     TEXT COLLATE "C" NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL, -- memory or workspace
    scope      TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL, -- of the last change; goes on when changes are forgotten
    updated_at BIGINT NOT NULL,
    forgotten  BIGINT NOT NULL DEFAULT 0 -- changes up to this version may be missing
);

-- Reader::ledgers, by scope.
CREATE UNIQUE INDEX ledgers_by_scope ON ledgers (tenant, kind, scope);

CREATE TABLE changes (
    ledger     BYTEA  NOT NULL,
    version    BIGINT NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    at         BIGINT NOT NULL,
    run        TEXT COLLATE "C",
    expires_at BIGINT,
    tags       TEXT[] NOT NULL,
    meta       TEXT COLLATE "C" NOT NULL, -- JSON, without the tags
    content    TEXT COLLATE "C",          -- NULL for a deletion
    PRIMARY KEY (ledger, version) -- views newest first; Reader::ledger_changes; no version twice
);

-- Whether something newer replaced a change; Reader::ledger_item; Reader::ledger_changes of one key; views by key.
CREATE INDEX changes_by_key ON changes (ledger, key, version);
-- Which keys one run wrote, for views that include its own writes.
CREATE INDEX changes_by_run ON changes (ledger, run, version, key) WHERE run IS NOT NULL;

-- How far memory and workspace of a run had been written once the record was there.
ALTER TABLE events ADD COLUMN memory BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN workspace BIGINT NOT NULL DEFAULT 0;
-- How the record came about; see rows::part.
ALTER TABLE events ADD COLUMN part SMALLINT;

-- Empty where it is what nearly every run has: its scope, else its root, else itself.
ALTER TABLE runs ADD COLUMN memory_scope TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN pruned_at BIGINT;
ALTER TABLE runs ADD COLUMN pruned_log BOOLEAN NOT NULL DEFAULT false;

-- Reader::ledger_floor, for scopes with a name of their own: few runs have one, so the others cost nothing here.
CREATE INDEX runs_by_memory_scope ON runs (tenant, memory_scope) WHERE memory_scope <> '' AND pruned_at IS NULL;
CREATE INDEX runs_by_scope ON runs (tenant, scope) WHERE scope IS NOT NULL AND pruned_at IS NULL;
