-- Every table has a key that says where its rows belong (a run, a tenant, a ledger), and nothing needs a counter without
-- gaps, so the tables can be spread over several machines by that key. Instants are microseconds since 1970. Texts are
-- compared by byte (COLLATE "C"), as everywhere else in Baton; see text.rs for the two characters that are written
-- otherwise. Numbers of migrations are the same as of the embedded store.

-- The order in which runs were created, more or less: gaps and swaps between hosts are fine.
CREATE SEQUENCE run_positions;

CREATE TABLE runs (
    id           TEXT COLLATE "C" PRIMARY KEY, -- Reader::run; every append
    position     BIGINT  NOT NULL DEFAULT nextval('run_positions'),
    tenant       TEXT COLLATE "C" NOT NULL,
    workflow     TEXT COLLATE "C" NOT NULL,
    digest       TEXT COLLATE "C" NOT NULL,
    status       TEXT COLLATE "C" NOT NULL,
    created_at   BIGINT  NOT NULL,
    updated_at   BIGINT  NOT NULL,
    next_seq     BIGINT  NOT NULL,
    wake_at      BIGINT,
    busy         BOOLEAN NOT NULL,
    parent       TEXT COLLATE "C",
    root         TEXT COLLATE "C",
    scope        TEXT COLLATE "C",
    tags         TEXT[]  NOT NULL,
    current_node TEXT COLLATE "C",
    error_code   TEXT COLLATE "C"
);

-- Reader::runs of one workflow in a tenant, newest first.
CREATE INDEX runs_by_workflow ON runs (tenant, workflow, position);
-- Reader::runs of one tenant, newest first.
CREATE INDEX runs_by_tenant ON runs (tenant, position);
-- Reader::runs by status. Nearly all runs end well, so those are left out and cost nothing here.
CREATE INDEX runs_by_status ON runs (tenant, status, position) WHERE status <> 'completed';
-- Reader::runs by parent: the children of a run.
CREATE INDEX runs_by_parent ON runs (parent, position) WHERE parent IS NOT NULL;
-- Reader::descendants, Reader::runs of one tree, and a change of owner.
CREATE INDEX runs_by_root ON runs (root, position) WHERE root IS NOT NULL;
-- Reader::active_run.
CREATE INDEX runs_active ON runs (tenant, scope, position) WHERE status NOT IN ('completed', 'failed', 'cancelled');

CREATE TABLE events (
    run     TEXT COLLATE "C" NOT NULL,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    kind    TEXT COLLATE "C" NOT NULL,
    body    TEXT COLLATE "C" NOT NULL, -- the public event, served verbatim
    private TEXT COLLATE "C",          -- never leaves the process
    PRIMARY KEY (run, seq) -- Reader::records; also the last guard against two records in one place
);

CREATE TABLE interrupts (
    run          TEXT COLLATE "C" NOT NULL,
    node         TEXT COLLATE "C" NOT NULL,
    tenant       TEXT COLLATE "C" NOT NULL,
    workflow     TEXT COLLATE "C" NOT NULL,
    interrupt_id TEXT COLLATE "C" NOT NULL,
    key          TEXT COLLATE "C" NOT NULL,
    kind         TEXT COLLATE "C" NOT NULL,
    data         TEXT COLLATE "C" NOT NULL, -- JSON
    requested_at BIGINT NOT NULL,
    expires_at   BIGINT,
    PRIMARY KEY (run, node) -- Reader::interrupt, and Reader::interrupts of one run
);

-- Reader::interrupts of one tenant, oldest first.
CREATE INDEX interrupts_by_tenant ON interrupts (tenant, requested_at, run, node);

CREATE TABLE blobs (
    digest TEXT COLLATE "C" PRIMARY KEY, -- Reader::blob
    bytes  BYTEA NOT NULL
);

CREATE TABLE workflows (
    tenant     TEXT COLLATE "C" NOT NULL,
    id         TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, id, version) -- Reader::workflow and Reader::workflows
);

CREATE TABLE replies (
    key        TEXT COLLATE "C" PRIMARY KEY, -- Reader::reply
    request    TEXT COLLATE "C" NOT NULL,
    status     INTEGER NOT NULL,
    body       TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL
);

-- Write::PruneReplies.
CREATE INDEX replies_by_expiry ON replies (expires_at);

CREATE TABLE webhooks (
    id                   TEXT COLLATE "C" PRIMARY KEY, -- Reader::webhook
    tenant               TEXT COLLATE "C" NOT NULL,
    url                  TEXT COLLATE "C" NOT NULL,
    events               TEXT[] NOT NULL,
    tags                 TEXT[] NOT NULL,
    secret               TEXT COLLATE "C" NOT NULL,
    status               TEXT COLLATE "C" NOT NULL,
    consecutive_failures BIGINT NOT NULL,
    failures             BIGINT NOT NULL,
    window_start         BIGINT NOT NULL,
    open_until           BIGINT,
    created_at           BIGINT NOT NULL
);

CREATE TABLE deliveries (
    webhook  TEXT COLLATE "C" NOT NULL,
    run      TEXT COLLATE "C" NOT NULL,
    seq      BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at   BIGINT NOT NULL,
    PRIMARY KEY (webhook, run, seq) -- Write::PutDelivery, Write::DeleteDelivery, Write::DeleteWebhook
);

-- Reader::deliveries, earliest first.
CREATE INDEX deliveries_by_due ON deliveries (due_at);
