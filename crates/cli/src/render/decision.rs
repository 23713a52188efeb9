//! A supervisor's decision in one line.

use serde_json::Value;

use super::brief;

const LONGEST_PROMPT: usize = 80;

/// "next-worker summarise, confidence 0.82".
pub(crate) fn decision(value: &Value) -> String {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let kind = text("kind").unwrap_or("?");
    let mut line = match kind {
        "next-worker" => format!("{kind} {}", workers(value)),
        "ask-user" => format!("{kind} \"{}\"", brief(&text("prompt").unwrap_or_default().into(), LONGEST_PROMPT)),
        _ => match text("reason") {
            Some(reason) => format!("{kind}: {}", brief(&reason.into(), LONGEST_PROMPT)),
            None => kind.to_owned(),
        },
    };
    if let Some(confidence) = value.get("confidence").and_then(Value::as_f64) {
        line.push_str(&format!(", confidence {}", share(confidence)));
    }
    line
}

/// Whether a supervisor says this; an agent's answer to a task has whatever form its schema gives it.
pub(crate) fn is_decision(value: &Value) -> bool {
    matches!(value.get("kind").and_then(Value::as_str), Some("next-worker" | "ask-user" | "terminate"))
}

/// A number between 0 and 1, to the precision people state it in, but never rounded across a threshold.
pub(crate) fn share(value: f64) -> String {
    let plain = format!("{value}");
    let short = format!("{value:.2}");
    if plain.len() > short.len() { plain } else { short }
}

fn workers(value: &Value) -> String {
    let ids = value.get("nextWorkerIds").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    ids.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_says_what_will_happen() {
        for (value, line) in [
            (
                json!({"kind": "next-worker", "nextWorkerIds": ["a", "b"], "confidence": 0.82}),
                "next-worker a, b, confidence 0.82",
            ),
            (json!({"kind": "ask-user", "prompt": "Which?"}), "ask-user \"Which?\""),
            (json!({"kind": "terminate", "reason": "done", "confidence": 1}), "terminate: done, confidence 1.00"),
            (json!({"kind": "terminate"}), "terminate"),
        ] {
            assert_eq!(decision(&value), line);
        }
    }

    #[test]
    fn an_answer_is_no_decision() {
        assert!(is_decision(&json!({"kind": "terminate"})));
        assert!(!is_decision(&json!({"verdict": "accept"})) && !is_decision(&json!({"kind": "memo"})));
    }

    #[test]
    fn a_share_just_below_a_floor_does_not_look_equal_to_it() {
        assert_eq!(
            (share(0.5), share(0.4999), share(0.0)),
            ("0.50".to_owned(), "0.4999".to_owned(), "0.00".to_owned())
        );
    }
}
