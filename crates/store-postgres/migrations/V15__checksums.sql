-- What tells whether a row is as it was written. Rows from before have none, and are not rewritten: a column that may be
-- NULL is added at once.

-- Of a record and all before it in its log; of the first of a fork, behind its source's.
ALTER TABLE events ADD COLUMN sum BYTEA;
-- The sum that the log begins behind, and that of its last record.
ALTER TABLE runs ADD COLUMN chain_base BYTEA;
ALTER TABLE runs ADD COLUMN chain BYTEA;
-- What a run is, where it stands, and what was pruned of it.
ALTER TABLE runs ADD COLUMN made_sum BIGINT;
ALTER TABLE runs ADD COLUMN sum BIGINT;
ALTER TABLE runs ADD COLUMN pruned_sum BIGINT;

ALTER TABLE changes ADD COLUMN sum BIGINT; -- of all but the content
ALTER TABLE changes ADD COLUMN content_sum BIGINT;
ALTER TABLE interrupts ADD COLUMN sum BIGINT;
ALTER TABLE workflows ADD COLUMN sum BIGINT;
ALTER TABLE replies ADD COLUMN sum BIGINT;
ALTER TABLE webhooks ADD COLUMN sum BIGINT; -- of where it goes and what it gets
ALTER TABLE quarantine ADD COLUMN sum BIGINT;
ALTER TABLE annotations ADD COLUMN sum BIGINT;
