//! How runs, events and questions read in a terminal.

pub(crate) mod agent_event;
pub(crate) mod decision;
pub(crate) mod event;
pub(crate) mod event_pair;
pub(crate) mod held_decision;
pub(crate) mod hunk;
pub(crate) mod loop_event;
pub(crate) mod question;
pub(crate) mod snapshot;
pub(crate) mod state_at;
pub(crate) mod tree;
pub(crate) mod usage;
pub(crate) mod versioned;

use serde_json::Value;

/// JSON on one line, cut to a readable length.
pub(crate) fn brief(value: &Value, longest: usize) -> String {
    let text = match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    };
    // A value may come from anywhere; it must not move the cursor.
    let line = text.replace(char::is_control, " ");
    if line.chars().count() <= longest {
        return line;
    }
    line.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// "code: message".
pub(crate) fn fault(error: Option<&Value>) -> String {
    let text = |name: &str| error.and_then(|e| e.get(name)).and_then(Value::as_str).unwrap_or_default();
    format!("{}: {}", text("code"), text("message"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_at_a_character() {
        assert_eq!(brief(&Value::from("äöüß"), 3), "äö…");
        assert_eq!(brief(&serde_json::json!({"a": 1}), 20), "{\"a\":1}");
        assert_eq!(brief(&Value::from("a\nb"), 9), "a b");
        assert_eq!(brief(&Value::from(""), 9), "\"\"");
    }
}
