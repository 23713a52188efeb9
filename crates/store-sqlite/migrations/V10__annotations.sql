-- What people and programs say about runs, beside their logs. Goes with the log.

CREATE TABLE annotations (
    run  TEXT    NOT NULL,
    id   TEXT    NOT NULL,
    at   INTEGER NOT NULL,
    body TEXT    NOT NULL, -- the whole of it, as callers see it
    PRIMARY KEY (run, id)  -- Reader::annotations, by id; Reader::annotation; Write::Prune
) STRICT, WITHOUT ROWID;
