-- What people and programs say about runs, beside their logs. Goes with the log.

CREATE TABLE annotations (
    run  TEXT COLLATE "C" NOT NULL,
    id   TEXT COLLATE "C" NOT NULL,
    at   BIGINT NOT NULL,
    body TEXT NOT NULL, -- the whole of it, as callers see it
    PRIMARY KEY (run, id) -- Reader::annotations, by id; Reader::annotation; Write::Prune
);
