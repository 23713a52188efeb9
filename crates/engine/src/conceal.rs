//! Keeping sensitive values out of what outlives the run. Masking on the log goes by name; what a node writes to memory
//! or to a file is free text, so there the values themselves are looked for.

use baton_model::{Secret, redact};
use serde_json::Value;

use crate::state::RunState;

/// The text without the values of sensitive variables, channels and inputs.
pub(crate) fn without_sensitive(state: &RunState, text: &str) -> String {
    let mut secrets = Vec::new();
    for name in &state.plan.sensitive {
        if let Some(value) = state.value(name) {
            collect(name, &value, &mut secrets);
        }
    }
    // A variable may have changed since; the input it came from can still be read.
    if let Some(start) = &state.start {
        start.event.private.hidden_inputs.iter().for_each(|(name, value)| collect(name, value, &mut secrets));
    }
    redact(text, &secrets)
}

/// Every text and number in the value, also as JSON would write it.
fn collect(name: &str, value: &Value, secrets: &mut Vec<Secret>) {
    match value {
        Value::String(text) => {
            let quoted = value.to_string();
            secrets.push(Secret::new(name, &quoted[1..quoted.len() - 1]));
            secrets.push(Secret::new(name, text));
        }
        Value::Number(number) => secrets.push(Secret::new(name, number.to_string())),
        Value::Array(items) => items.iter().for_each(|item| collect(name, item, secrets)),
        Value::Object(map) => map.values().for_each(|item| collect(name, item, secrets)),
        Value::Null | Value::Bool(_) => {}
    }
}
