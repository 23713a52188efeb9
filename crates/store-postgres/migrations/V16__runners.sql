-- Tokens that the host gave out, runners that signed in with one, and the steps of runs that runners do.

CREATE TABLE tokens (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- RunnerReads::tokens; RunnerWrite::DeleteToken
    kind       TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT COLLATE "C" NOT NULL, -- SHA-256 of the token
    scopes     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

-- RunnerReads::token
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);

CREATE TABLE runners (
    key     TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- RunnerReads::runners; a digest of tenant, subject and the runner's id
    version BIGINT NOT NULL, -- the greater one counts
    epoch   BIGINT NOT NULL, -- the session that it is connected to
    seen_at BIGINT NOT NULL,
    body    TEXT NOT NULL
);

CREATE TABLE runner_steps (
    key     TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- RunnerReads::step; a digest of the run and the step
    run     TEXT COLLATE "C" NOT NULL,
    owner   TEXT COLLATE "C" NOT NULL, -- a digest of tenant and subject
    state   TEXT COLLATE "C" NOT NULL, -- queued, leased, lost, done
    version BIGINT NOT NULL, -- the greater one counts
    at      BIGINT NOT NULL,
    body    TEXT NOT NULL
);

-- RunnerReads::steps_of
CREATE INDEX runner_steps_by_owner ON runner_steps (owner, state, at);
-- RunnerWrite::ForgetSteps
CREATE INDEX runner_steps_by_age ON runner_steps (at);
