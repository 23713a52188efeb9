-- Trees of runs that nobody may step until somebody releases them. There is no V5: it is about several hosts, and the
-- numbers are the same as of the store that several hosts share.

CREATE TABLE quarantine (
    root   TEXT    PRIMARY KEY, -- Reader::quarantine; Reader::quarantined of all tenants, by root
    tenant TEXT    NOT NULL,
    run    TEXT    NOT NULL, -- the run that failed
    seq    INTEGER NOT NULL, -- its next sequence then
    cause  TEXT    NOT NULL,
    detail TEXT    NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Reader::quarantined of one tenant, by root.
CREATE INDEX quarantine_by_tenant ON quarantine (tenant, root);

-- Written again and again to see whether writes get through; one row.
CREATE TABLE canary (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    number INTEGER NOT NULL
) STRICT;
