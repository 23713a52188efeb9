-- Events that a subscriber did not take, until somebody sends them again or they are too old. A letter names its event and
-- holds nothing of it.
CREATE TABLE dead_letters (
    webhook  TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    seq      INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    reason   TEXT    NOT NULL,
    status   INTEGER, -- what was answered last
    at       INTEGER NOT NULL,
    PRIMARY KEY (webhook, run, seq) -- Reader::dead_letter, LetterWrite::Put, Redeliver and Forget
) STRICT, WITHOUT ROWID;

-- Reader::dead_letters, newest first; LetterWrite::Trim.
CREATE INDEX dead_letters_by_webhook ON dead_letters (webhook, at, run, seq);
-- Reader::oldest_dead_letter, LetterWrite::Expire.
CREATE INDEX dead_letters_by_age ON dead_letters (at);

ALTER TABLE webhooks ADD COLUMN last_failed_at INTEGER;
ALTER TABLE webhooks ADD COLUMN last_status INTEGER; -- what was answered then
ALTER TABLE webhooks ADD COLUMN letters_dropped INTEGER NOT NULL DEFAULT 0;

-- Reader::webhooks_of, Reader::webhook_loads.
CREATE INDEX webhooks_by_tenant ON webhooks (tenant, id);
