-- The log is a plain rowid table: pages fill in order and only the narrow index (run, seq) is scattered. `run` is a
-- small integer that stands for the public id everywhere inside this file. Instants are microseconds since 1970.
-- In SQLite every index ends with the rowid, so an index on (tenant) is also ordered by `run`, newest last.

CREATE TABLE runs (
    run          INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE, -- Reader::run; the writer's lookup
    tenant       TEXT    NOT NULL,
    workflow     TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    next_seq     INTEGER NOT NULL,
    wake_at      INTEGER,
    busy         INTEGER NOT NULL, -- 0 or 1
    parent       TEXT,
    root         TEXT,
    scope        TEXT,
    tags         TEXT    NOT NULL, -- JSON array of strings
    current_node TEXT,
    error_code   TEXT
) STRICT;

-- Reader::runs of one workflow in a tenant, newest first.
CREATE INDEX runs_by_workflow ON runs (tenant, workflow);
-- Reader::runs of one tenant, newest first.
CREATE INDEX runs_by_tenant ON runs (tenant);
-- Reader::runs by status. Nearly all runs end well, so those are left out and cost nothing here.
CREATE INDEX runs_by_status ON runs (tenant, status) WHERE status <> 'completed';
-- Reader::runs by parent: the children of a run.
CREATE INDEX runs_by_parent ON runs (parent) WHERE parent IS NOT NULL;
-- Reader::descendants, and Reader::runs of one tree.
CREATE INDEX runs_by_root ON runs (root) WHERE root IS NOT NULL;
-- Reader::unfinished, oldest first.
CREATE INDEX runs_unfinished ON runs (run, id) WHERE busy;
-- Reader::due, earliest first.
CREATE INDEX runs_due ON runs (wake_at) WHERE wake_at IS NOT NULL;
-- Reader::active_run.
CREATE INDEX runs_active ON runs (tenant, scope) WHERE status NOT IN ('completed', 'failed', 'cancelled');

CREATE TABLE events (
    pos     INTEGER PRIMARY KEY, -- position in the whole log, across runs
    run     INTEGER NOT NULL REFERENCES runs,
    seq     INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    body    TEXT    NOT NULL, -- the public event, served verbatim
    private TEXT              -- never leaves the process
) STRICT;

-- Reader::records; also the last guard against two records in one place.
CREATE UNIQUE INDEX events_by_run ON events (run, seq);

CREATE TABLE interrupts (
    run          TEXT    NOT NULL,
    node         TEXT    NOT NULL,
    tenant       TEXT    NOT NULL,
    workflow     TEXT    NOT NULL,
    interrupt_id TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    kind         TEXT    NOT NULL,
    data         TEXT    NOT NULL, -- JSON
    requested_at INTEGER NOT NULL,
    expires_at   INTEGER,
    PRIMARY KEY (run, node) -- Reader::interrupt, and Reader::interrupts of one run
) STRICT;

-- Reader::interrupts of one tenant, oldest first.
CREATE INDEX interrupts_by_tenant ON interrupts (tenant, requested_at);

CREATE TABLE blobs (
    digest TEXT PRIMARY KEY, -- Reader::blob
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE workflows (
    tenant     TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    digest     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, id, version) -- Reader::workflow and Reader::workflows
) STRICT, WITHOUT ROWID;

CREATE TABLE replies (
    key        TEXT    PRIMARY KEY, -- Reader::reply
    request    TEXT    NOT NULL,
    status     INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

-- Write::PruneReplies.
CREATE INDEX replies_by_expiry ON replies (expires_at);

CREATE TABLE webhooks (
    id                   TEXT    PRIMARY KEY, -- Reader::webhook
    tenant               TEXT    NOT NULL,
    url                  TEXT    NOT NULL,
    events               TEXT    NOT NULL, -- JSON array of strings
    tags                 TEXT    NOT NULL, -- JSON array of strings
    secret               TEXT    NOT NULL,
    status               TEXT    NOT NULL,
    consecutive_failures INTEGER NOT NULL,
    failures             INTEGER NOT NULL,
    window_start         INTEGER NOT NULL,
    open_until           INTEGER,
    created_at           INTEGER NOT NULL
) STRICT;

CREATE TABLE deliveries (
    webhook  TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due_at   INTEGER NOT NULL,
    PRIMARY KEY (webhook, run, seq) -- Write::PutDelivery, Write::DeleteDelivery, Write::DeleteWebhook
) STRICT, WITHOUT ROWID;

-- Reader::deliveries, earliest first.
CREATE INDEX deliveries_by_due ON deliveries (due_at);

-- Written and emptied again to prove that the disk takes writes after it did not; see Journal::recover.
CREATE TABLE probe (
    filler BLOB NOT NULL
) STRICT;
