-- Checksums of what had none: what runs have spent, and tokens. Rows from before have none, and are not rewritten.

ALTER TABLE spending ADD COLUMN sum INTEGER;
ALTER TABLE tokens ADD COLUMN sum INTEGER;
