-- Trees of runs that nobody may step until somebody releases them.

CREATE TABLE quarantine (
    root   TEXT COLLATE "C" PRIMARY KEY, -- Reader::quarantine; Reader::quarantined of all tenants, by root
    tenant TEXT COLLATE "C" NOT NULL,
    run    TEXT COLLATE "C" NOT NULL, -- the run that failed
    seq    BIGINT NOT NULL, -- its next sequence then
    cause  TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C" NOT NULL,
    at     BIGINT NOT NULL
);

-- Reader::quarantined of one tenant, by root.
CREATE INDEX quarantine_by_tenant ON quarantine (tenant, root);

-- Somebody else had to end it: its host may have died of what it was at.
ALTER TABLE sessions ADD COLUMN died BOOLEAN NOT NULL DEFAULT false;

-- Trees that were taken over from such sessions while there was something to be done in them. Few, and none for a tree
-- that makes progress.
CREATE TABLE suspects (
    root      TEXT COLLATE "C" PRIMARY KEY,
    takeovers BIGINT NOT NULL DEFAULT 0,
    deaths    BIGINT NOT NULL DEFAULT 0, -- of sessions that had it marked
    marked_by BIGINT -- the session that is about to step it
);

-- Written again and again to see whether writes get through; one row for each session.
CREATE TABLE canary (
    epoch  BIGINT PRIMARY KEY,
    number BIGINT NOT NULL
);
