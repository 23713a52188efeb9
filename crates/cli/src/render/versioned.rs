//! Memory entries, workspace files and what happened to them, as tables and event lines.

use baton_client::{FileChange, RunEvent};
use baton_model::{FileMeta, MemoryEntry, Timestamp};
use comfy_table::Table;
use serde_json::Value;

use super::brief;
use crate::age::{ago, span};
use crate::output::table;
use crate::run_ref::short;

const LONGEST_CONTENT: usize = 80;

/// What is remembered, in the order given.
pub(crate) fn entries(entries: &[MemoryEntry], now: Timestamp) -> Table {
    let mut rows = table(&["ENTRY", "CREATED", "EXPIRES", "TAGS", "CONTENT"]);
    for entry in entries {
        rows.add_row([
            entry.id.as_str(),
            &ago(entry.created_at, now),
            &entry.expires_at.map_or_else(|| "-".to_owned(), |end| until(end, now)),
            &dash(&entry.tags.join(", ")),
            &brief(&Value::from(entry.content.as_str()), LONGEST_CONTENT),
        ]);
    }
    rows
}

pub(crate) fn files(files: &[FileMeta], now: Timestamp) -> Table {
    let mut rows = table(&["PATH", "VERSION", "UPDATED", "ETAG", "TYPE"]);
    for file in files {
        rows.add_row([
            file.path.as_str(),
            &file.version.to_string(),
            &ago(file.updated_at, now),
            &file.etag,
            &file.content_type,
        ]);
    }
    rows
}

pub(crate) fn changes(changes: &[FileChange], now: Timestamp) -> Table {
    let mut rows = table(&["CHANGE", "PATH", "VERSION", "WHEN", "BY"]);
    for change in changes {
        let version = match change.version {
            Some(version) if !change.deleted => version.to_string(),
            _ => "deleted".to_owned(),
        };
        rows.add_row([
            change.change.to_string().as_str(),
            &change.path,
            &version,
            &ago(change.at, now),
            change.run_id.as_ref().map_or("-", |run| short(run.as_str())),
        ]);
    }
    rows
}

/// The fact of an event that tells of a write; `None` for all others.
pub(crate) fn fact(event: &RunEvent) -> Option<String> {
    let payload = &event.payload;
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match event.kind.as_str() {
        "memory.written" => {
            let tags = payload.get("tags").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
            let tagged = if tags.is_empty() { String::new() } else { format!(" [{}]", tags.join(", ")) };
            format!("remembered {}{tagged} in {}", entry_name(text("memoryId")), scope(text("memoryRef")))
        }
        "baton.memory.deleted" => {
            format!("forgot {} in {}", entry_name(text("memoryId")), scope(text("memoryRef")))
        }
        "workspace.updated" => {
            format!("wrote {} version {}", text("path"), payload.get("version").and_then(Value::as_u64)?)
        }
        _ => return None,
    })
}

fn until(end: Timestamp, now: Timestamp) -> String {
    format!("in {}", span(end.millis_since(now)))
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// A scope as a line has room for it: mostly it bears the name of a run.
fn scope(handle: &str) -> &str {
    let name = handle.strip_prefix("memory:").unwrap_or(handle);
    if name.starts_with("run_") { short(name) } else { name }
}

fn entry_name(id: &str) -> &str {
    short(id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;

    fn describe(kind: &str, payload: Value) -> Option<String> {
        let event = json!({
            "eventId": "e", "runId": "run_1", "sequence": 0, "type": kind,
            "timestamp": "2026-01-01T00:00:00Z", "payload": payload,
        });
        fact(&serde_json::from_value(event).unwrap())
    }

    #[test]
    fn writes_are_printed_without_their_content() {
        let scope = "memory:run_0123456789abcdef0123456789abcdef";
        for (kind, payload, line) in [
            (
                "memory.written",
                json!({"memoryRef": scope, "memoryId": "mem_0123456789abcdef", "tags": ["finding", "moon"]}),
                "remembered mem_0123456789ab [finding, moon] in run_0123456789ab",
            ),
            ("memory.written", json!({"memoryRef": "memory:team", "memoryId": "mem_1"}), "remembered mem_1 in team"),
            ("baton.memory.deleted", json!({"memoryRef": "memory:team", "memoryId": "mem_1"}), "forgot mem_1 in team"),
            ("workspace.updated", json!({"path": "report.md", "version": 2}), "wrote report.md version 2"),
        ] {
            assert_eq!(describe(kind, payload).as_deref(), Some(line));
        }
        assert_eq!(describe("node.started", json!({})), None);
    }

    #[test]
    fn an_entry_is_one_line_however_long_it_is() {
        let entry = MemoryEntry {
            id: "mem_1".to_owned(),
            content: "first\nsecond".to_owned(),
            tags: Vec::new(),
            created_at: Timestamp::from_millis(0),
            expires_at: Some(Timestamp::from_millis(63_000)),
        };
        let shown = entries(&[entry], Timestamp::from_millis(2000)).trim_fmt();
        assert_eq!(shown, "ENTRY  CREATED  EXPIRES   TAGS  CONTENT\nmem_1  2s ago   in 1m01s  -     first second");
    }
}
