-- Tokens that the host gave out, runners that signed in with one, and the steps of runs that runners do.

CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY, -- RunnerReads::tokens; RunnerWrite::DeleteToken
    kind       TEXT NOT NULL,
    tenant     TEXT NOT NULL,
    subject    TEXT NOT NULL,
    name       TEXT NOT NULL,
    hash       TEXT NOT NULL, -- SHA-256 of the token
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

-- RunnerReads::token
CREATE UNIQUE INDEX tokens_by_hash ON tokens (hash);

CREATE TABLE runners (
    key     TEXT NOT NULL PRIMARY KEY, -- RunnerReads::runners; a digest of tenant, subject and the runner's id
    version INTEGER NOT NULL, -- the greater one counts
    epoch   INTEGER NOT NULL, -- the session that it is connected to
    seen_at INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runner_steps (
    key     TEXT NOT NULL PRIMARY KEY, -- RunnerReads::step; a digest of the run and the step
    run     TEXT NOT NULL,
    owner   TEXT NOT NULL, -- a digest of tenant and subject
    state   TEXT NOT NULL, -- queued, leased, lost, done
    version INTEGER NOT NULL, -- the greater one counts
    at      INTEGER NOT NULL,
    body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- RunnerReads::steps_of
CREATE INDEX runner_steps_by_owner ON runner_steps (owner, state, at);
-- RunnerWrite::ForgetSteps
CREATE INDEX runner_steps_by_age ON runner_steps (at);
