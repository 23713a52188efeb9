//! Marks for the vendor's cache: up to here a request will come again. They change what a call costs and not what it
//! answers, so they are put onto the finished request and no key knows of them.
//!
//! ```text
//!  tools ─┤1  system ─┤2  … earlier rounds ─┤3  … this round ─┤4
//! ```
//!
//! What agents share stands first. A conversation that has tools goes on, so its end is marked too: the next round reads
//! up to there. The mark before it is where the round before ended, so that a long round does not hide it.

use serde_json::{Map, Value, json};

/// As many marks as the vendor takes.
pub(super) const MOST: usize = 4;

/// Puts the marks onto a request. Whoever set some by an option knows better.
pub(super) fn put(body: &mut Map<String, Value>) {
    if body.contains_key("cache_control") {
        return;
    }
    if let Some(Value::String(text)) = body.get("system").cloned() {
        body.insert("system".to_owned(), json!([{"type": "text", "text": text, "cache_control": mark()}]));
    }
    let Some(Value::Array(tools)) = body.get_mut("tools") else { return };
    let Some(last) = tools.last_mut().and_then(Value::as_object_mut) else { return };
    last.insert("cache_control".to_owned(), mark());
    let Some(Value::Array(messages)) = body.get_mut("messages") else { return };
    let asked = |message: &&mut Value| message.get("role").and_then(Value::as_str) == Some("user");
    for message in messages.iter_mut().rev().filter(asked).take(MOST - 2) {
        let blocks = message.get_mut("content").and_then(Value::as_array_mut);
        if let Some(block) = blocks.and_then(|blocks| blocks.last_mut()).and_then(Value::as_object_mut) {
            block.insert("cache_control".to_owned(), mark());
        }
    }
}

fn mark() -> Value {
    json!({"type": "ephemeral"})
}
