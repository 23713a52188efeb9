-- An index row has room for 2704 bytes, and people choose names as long as they like. A column that an index knows holds a
-- text of at most 512 bytes as it is. Of a longer one it holds the beginning and a digest (see text.rs), and the whole text
-- is in a column beside it, which no index knows and which is NULL for nearly every row.

ALTER TABLE runs ADD COLUMN long_workflow TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN long_scope TEXT COLLATE "C";
ALTER TABLE runs ADD COLUMN long_memory_scope TEXT COLLATE "C";
ALTER TABLE interrupts ADD COLUMN long_node TEXT COLLATE "C";
ALTER TABLE workflows ADD COLUMN long_id TEXT COLLATE "C";
ALTER TABLE ledgers ADD COLUMN long_scope TEXT COLLATE "C";
ALTER TABLE changes ADD COLUMN long_key TEXT COLLATE "C";

UPDATE runs SET long_workflow = workflow, workflow = rtrim(left(workflow, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(workflow, 'UTF8')), 'hex') WHERE octet_length(workflow) > 512;
UPDATE runs SET long_scope = scope, scope = rtrim(left(scope, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(scope, 'UTF8')), 'hex') WHERE octet_length(scope) > 512;
UPDATE runs SET long_memory_scope = memory_scope, memory_scope = rtrim(left(memory_scope, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(memory_scope, 'UTF8')), 'hex') WHERE octet_length(memory_scope) > 512;
UPDATE interrupts SET long_node = node, node = rtrim(left(node, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(node, 'UTF8')), 'hex') WHERE octet_length(node) > 512;
UPDATE workflows SET long_id = id, id = rtrim(left(id, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(id, 'UTF8')), 'hex') WHERE octet_length(id) > 512;
UPDATE ledgers SET long_scope = scope, scope = rtrim(left(scope, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(scope, 'UTF8')), 'hex') WHERE octet_length(scope) > 512;
UPDATE changes SET long_key = key, key = rtrim(left(key, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(key, 'UTF8')), 'hex') WHERE octet_length(key) > 512;
-- Nobody reads a claim's name back.
UPDATE claims SET name = rtrim(left(name, 100), chr(1)) || chr(1) || chr(3)
    || encode(sha256(convert_to(name, 'UTF8')), 'hex') WHERE octet_length(name) > 512;
