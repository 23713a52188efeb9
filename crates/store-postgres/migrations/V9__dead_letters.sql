-- Events that a subscriber did not take, until somebody sends them again or they are too old. A letter names its event and
-- holds nothing of it.
CREATE TABLE dead_letters (
    webhook  TEXT COLLATE "C" NOT NULL,
    run      TEXT COLLATE "C" NOT NULL,
    seq      BIGINT NOT NULL,
    kind     TEXT COLLATE "C" NOT NULL,
    attempts BIGINT NOT NULL,
    reason   TEXT COLLATE "C" NOT NULL,
    status   BIGINT, -- what was answered last
    at       BIGINT NOT NULL,
    PRIMARY KEY (webhook, run, seq) -- Reader::dead_letter, LetterWrite::Put, Redeliver and Forget
);

-- Reader::dead_letters, newest first; LetterWrite::Trim.
CREATE INDEX dead_letters_by_webhook ON dead_letters (webhook, at, run, seq);
-- Reader::oldest_dead_letter, LetterWrite::Expire.
CREATE INDEX dead_letters_by_age ON dead_letters (at);

ALTER TABLE webhooks ADD COLUMN last_failed_at BIGINT;
ALTER TABLE webhooks ADD COLUMN last_status BIGINT; -- what was answered then
ALTER TABLE webhooks ADD COLUMN letters_dropped BIGINT NOT NULL DEFAULT 0;

-- Reader::webhooks_of, Reader::webhook_loads.
CREATE INDEX webhooks_by_tenant ON webhooks (tenant, id);
