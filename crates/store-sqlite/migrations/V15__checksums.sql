-- What tells whether a row is as it was written. Rows from before have none, and are not rewritten: NULL takes no room.

-- Of a record and all before it in its log; of the first of a fork, behind its source's.
ALTER TABLE events ADD COLUMN sum BLOB;
-- The sum that the log begins behind, and that of its last record.
ALTER TABLE runs ADD COLUMN chain_base BLOB;
ALTER TABLE runs ADD COLUMN chain BLOB;
-- What a run is, where it stands, and what was pruned of it.
ALTER TABLE runs ADD COLUMN made_sum INTEGER;
ALTER TABLE runs ADD COLUMN sum INTEGER;
ALTER TABLE runs ADD COLUMN pruned_sum INTEGER;

ALTER TABLE changes ADD COLUMN sum INTEGER; -- of all but the content
ALTER TABLE changes ADD COLUMN content_sum INTEGER;
ALTER TABLE interrupts ADD COLUMN sum INTEGER;
ALTER TABLE workflows ADD COLUMN sum INTEGER;
ALTER TABLE replies ADD COLUMN sum INTEGER;
ALTER TABLE webhooks ADD COLUMN sum INTEGER; -- of where it goes and what it gets
ALTER TABLE quarantine ADD COLUMN sum INTEGER;
ALTER TABLE annotations ADD COLUMN sum INTEGER;

-- How many transactions there were; see `note.rs`. One row.
CREATE TABLE commits (
    only   INTEGER PRIMARY KEY CHECK (only = 1),
    number INTEGER NOT NULL,
    -- The number once more, so that a damaged one is noticed.
    mirror INTEGER NOT NULL CHECK (mirror = -number),
    -- Tells this file from all others.
    file   TEXT NOT NULL
) STRICT;
INSERT INTO commits (only, number, mirror, file) VALUES (1, 0, 0, lower(hex(randomblob(8))));
