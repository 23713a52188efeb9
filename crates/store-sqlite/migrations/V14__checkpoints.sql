-- What is kept beside logs so that they need not be read again. All of it may be deleted at any time.

CREATE TABLE checkpoints (
    run    TEXT    NOT NULL,
    seq    INTEGER NOT NULL, -- how many records are in it
    key    TEXT    NOT NULL, -- what it is made by and of
    chunks TEXT    NOT NULL, -- JSON array of the names of the chunks that it needs
    digest TEXT    NOT NULL, -- of the body
    body   BLOB    NOT NULL,
    PRIMARY KEY (run, seq)   -- Reader::checkpoint, newest first; Reader::checkpoint_marks; Write::Prune
) STRICT;

-- The long lists of a state, in parts that checkpoints of one run share. Named by their digests.
CREATE TABLE checkpoint_chunks (
    run   TEXT NOT NULL,
    name  TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (run, name) -- Reader::checkpoint_chunks; Write::Prune
) STRICT;

-- What each run of a tree with a budget has spent, as of some of its records.
CREATE TABLE spending (
    run  TEXT    NOT NULL PRIMARY KEY, -- Write::PutSpending, Write::Prune
    root TEXT    NOT NULL,
    seq  INTEGER NOT NULL,
    body TEXT    NOT NULL -- JSON
) STRICT, WITHOUT ROWID;

-- Reader::spending, by run.
CREATE INDEX spending_by_root ON spending (root, run);
