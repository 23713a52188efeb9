-- What is kept beside logs so that they need not be read again. All of it may be deleted at any time.

CREATE TABLE checkpoints (
    run    TEXT COLLATE "C" NOT NULL,
    seq    BIGINT NOT NULL, -- how many records are in it
    key    TEXT   NOT NULL, -- what it is made by and of
    chunks TEXT[] NOT NULL, -- the names of the chunks that it needs
    digest TEXT   NOT NULL, -- of the body
    body   BYTEA  NOT NULL,
    PRIMARY KEY (run, seq)  -- Reader::checkpoint, newest first; Reader::checkpoint_marks; Write::Prune
);

-- The long lists of a state, in parts that checkpoints of one run share. Named by their digests.
CREATE TABLE checkpoint_chunks (
    run   TEXT COLLATE "C" NOT NULL,
    name  TEXT COLLATE "C" NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (run, name) -- Reader::checkpoint_chunks; Write::Prune
);

-- The bodies are compressed already.
ALTER TABLE checkpoints ALTER COLUMN body SET STORAGE EXTERNAL;
ALTER TABLE checkpoint_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- What each run of a tree with a budget has spent, as of some of its records.
CREATE TABLE spending (
    run  TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- Write::PutSpending, Write::Prune
    root TEXT COLLATE "C" NOT NULL,
    seq  BIGINT NOT NULL,
    body TEXT   NOT NULL -- JSON
);

-- Reader::spending, by run.
CREATE INDEX spending_by_root ON spending (root, run);
