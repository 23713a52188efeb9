//! Two events that stand at the same place of two logs, told by the lines in which they differ.

use baton_client::VerifiedDifference;
use serde_json::Value;

use super::hunk::signed;
use crate::diff::{Op, hunks};

/// Names and clock readings differ between any two runs and say nothing; the host does not compare them either.
const SAYS_NOTHING: [&str; 11] = [
    "_ts",
    "causationId",
    "correlationId",
    "emittedAt",
    "eventId",
    "observedAt",
    "occurredAt",
    "runId",
    "timestamp",
    "transport",
    "writtenAt",
];

/// "type node" of both, told once where it is the same.
pub(crate) fn heading(old: Option<&Value>, new: Option<&Value>) -> String {
    match (old.map(title), new.map(title)) {
        (Some(old), Some(new)) if old != new => format!("{old} | {new}"),
        (Some(title), _) | (None, Some(title)) => title,
        (None, None) => String::new(),
    }
}

/// The payload lines of the old event that the new one does not have, and the other way round, with what surrounds
/// them. An event that is missing on one side is shown whole on the other.
pub(crate) fn lines(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let text = |event: Option<&Value>| event.map(payload).unwrap_or_default();
    compared(&text(old), &text(new))
}

/// The same of what stands around the payloads.
pub(crate) fn surroundings(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let text = |event: Option<&Value>| {
        let mut event = event.cloned().unwrap_or_default();
        event.as_object_mut().and_then(|members| members.remove("payload"));
        serde_json::to_string_pretty(&event).unwrap_or_default() + "\n"
    };
    compared(&text(old), &text(new))
}

fn compared(old: &str, new: &str) -> Vec<String> {
    let mut out = Vec::new();
    for (place, hunk) in hunks(old, new).iter().enumerate() {
        if place > 0 {
            out.push(signed(Op::Same, "  …"));
        }
        out.extend(hunk.lines.iter().map(|line| signed(line.op, line.text.trim_end_matches('\n'))));
    }
    out
}

fn title(event: &Value) -> String {
    let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let title = format!("{} {}", text("type"), text("nodeId"));
    // A name may come from anywhere; it must not move the cursor.
    title.trim_end().replace(char::is_control, " ")
}

fn payload(event: &Value) -> String {
    let mut payload = event.get("payload").cloned().unwrap_or_default();
    strip(&mut payload);
    serde_json::to_string_pretty(&payload).unwrap_or_default() + "\n"
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !SAYS_NOTHING.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// "at sequence 7 (output)".
pub(crate) fn place(difference: &VerifiedDifference) -> String {
    format!("at sequence {} ({})", difference.seq, difference.kind.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn plain(old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
        let bare = |line: String| anstream::adapter::strip_str(&line).to_string();
        lines(old, new).into_iter().map(bare).collect()
    }

    #[test]
    fn only_what_differs_is_printed() {
        let old = json!({"type": "node.completed", "nodeId": "sum", "eventId": "a:4", "timestamp": "then",
            "payload": {"outputs": {"total": 3}, "runId": "run_a"}});
        let mut new = old.clone();
        new["payload"]["outputs"]["total"] = json!(4);
        new["payload"]["runId"] = json!("run_b");
        new["eventId"] = json!("b:4");
        assert_eq!(
            plain(Some(&old), Some(&new)),
            [" {", "   \"outputs\": {", "-    \"total\": 3", "+    \"total\": 4", "   }", " }"]
        );
        assert_eq!(heading(Some(&old), Some(&new)), "node.completed sum");
        assert_eq!(plain(Some(&old), Some(&old)), Vec::<String>::new());
    }

    #[test]
    fn an_event_that_only_one_has_is_shown_whole() {
        let event = json!({"type": "run.completed", "payload": {}});
        assert_eq!(plain(None, Some(&event)), ["+{}"]);
        assert_eq!(heading(None, Some(&event)), "run.completed");
        let other = json!({"type": "node.started", "nodeId": "a\nb"});
        assert_eq!(heading(Some(&event), Some(&other)), "run.completed | node.started a b");
        assert_eq!(plain(Some(&event), None), ["-{}"]);
    }
}
