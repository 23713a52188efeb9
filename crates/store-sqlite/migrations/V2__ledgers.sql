-- Memory scopes and workspaces: append-only ledgers of changes, numbered 1, 2, 3, … in each ledger. `ledger` is a small
-- integer that stands for (tenant, kind, scope), as `run` does for a run's id.

CREATE TABLE ledgers (
    ledger     INTEGER PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    kind       TEXT    NOT NULL, -- memory or workspace
    scope      TEXT    NOT NULL,
    version    INTEGER NOT NULL, -- of the last change; goes on when changes are forgotten
    updated_at INTEGER NOT NULL,
    forgotten  INTEGER NOT NULL DEFAULT 0, -- changes up to this version may be missing
    UNIQUE (tenant, kind, scope) -- every question about a ledger; Reader::ledgers, by scope
) STRICT;

-- A plain rowid table, like the log. `content` comes last: what is long lies on pages of its own, and nobody who looks
-- for a version, a tag or an expiry has to walk over them.
CREATE TABLE changes (
    ledger     INTEGER NOT NULL REFERENCES ledgers,
    version    INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    run        TEXT,
    expires_at INTEGER,
    meta       TEXT    NOT NULL, -- JSON
    content    TEXT,             -- NULL for a deletion
    PRIMARY KEY (ledger, version) -- views newest first; Reader::ledger_changes; no version twice
) STRICT;

-- Whether something newer replaced a change; Reader::ledger_item; Reader::ledger_changes of one key; views by key.
CREATE INDEX changes_by_key ON changes (ledger, key, version);
-- Which keys one run wrote, for views that include its own writes.
CREATE INDEX changes_by_run ON changes (ledger, run, version, key) WHERE run IS NOT NULL;

-- How far memory and workspace of a run had been written once the record was there.
ALTER TABLE events ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN workspace INTEGER NOT NULL DEFAULT 0;
-- How the record came about; see rows::part. Unknown (NULL) for records from before this was kept.
ALTER TABLE events ADD COLUMN part INTEGER;

-- Empty where it is what nearly every run has: its scope, else its root, else itself.
ALTER TABLE runs ADD COLUMN memory_scope TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN pruned_at INTEGER;
ALTER TABLE runs ADD COLUMN pruned_log INTEGER NOT NULL DEFAULT 0; -- 0 or 1

-- Reader::ledger_floor, for scopes with a name of their own: few runs have one, so the others cost nothing here.
CREATE INDEX runs_by_memory_scope ON runs (tenant, memory_scope) WHERE memory_scope <> '' AND pruned_at IS NULL;
CREATE INDEX runs_by_scope ON runs (tenant, scope) WHERE scope IS NOT NULL AND pruned_at IS NULL;
