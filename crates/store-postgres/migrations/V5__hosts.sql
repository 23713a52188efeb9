-- Several hosts on one database. The embedded store has one owner by its very nature and needs none of this, so this
-- number is not used there.

CREATE SEQUENCE session_epochs;

-- One row for every life of a host. Rows stay, so that what an epoch meant can be looked up, and none comes twice.
CREATE TABLE sessions (
    epoch       BIGINT PRIMARY KEY DEFAULT nextval('session_epochs'),
    host        TEXT COLLATE "C" NOT NULL,
    load        BIGINT NOT NULL DEFAULT 0,
    lease_until TIMESTAMPTZ NOT NULL, -- judged by the database's clock only
    ended       BOOLEAN NOT NULL DEFAULT false,
    opened_at   TIMESTAMPTZ NOT NULL DEFAULT now(),
    ended_at    TIMESTAMPTZ
);

-- Shared::sessions and Shared::end_lapsed.
CREATE INDEX sessions_open ON sessions (epoch) WHERE NOT ended;

-- The session that drives a run. 0 is nobody: whoever comes first may take it.
ALTER TABLE runs ADD COLUMN owner BIGINT NOT NULL DEFAULT 0;
-- The session that wrote a record.
ALTER TABLE events ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;

-- Reader::unfinished, oldest first; Shared::adopt.
CREATE INDEX runs_unfinished ON runs (owner, position) WHERE busy;
-- Reader::due, earliest first; Shared::adopt.
CREATE INDEX runs_due ON runs (owner, wake_at, position) WHERE wake_at IS NOT NULL;

-- Named locks. One of a session that has ended is free.
CREATE TABLE claims (
    name  TEXT COLLATE "C" PRIMARY KEY,
    epoch BIGINT NOT NULL
);

CREATE SEQUENCE letter_positions;

CREATE TABLE inbox (
    id          TEXT COLLATE "C" PRIMARY KEY,
    position    BIGINT NOT NULL DEFAULT nextval('letter_positions'),
    run         TEXT COLLATE "C", -- for whoever owns this run, or
    session     BIGINT,           -- for this session
    body        TEXT COLLATE "C" NOT NULL,
    answer      TEXT COLLATE "C",
    answered_at TIMESTAMPTZ
);

-- Shared::letters, oldest first; Shared::adopt.
CREATE INDEX inbox_open ON inbox (position) WHERE answered_at IS NULL;
-- Shared::end_lapsed: answers that were kept long enough.
CREATE INDEX inbox_answered ON inbox (answered_at) WHERE answered_at IS NOT NULL;

-- What is made once and is the same for every host, such as the secret that signs links.
CREATE TABLE common (
    name  TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);
