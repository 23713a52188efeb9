//! What only one vendor knows: `vendor.<provider>.<option>` goes into the body of the request as it is.

use baton_model::SemanticRequest;
use serde_json::{Map, Value};

use crate::ProviderFault;

/// What the rest of a request says already. Through an option, it would get past whoever checks the request.
const TAKEN: &[&str] = &[
    "background",
    "contents",
    "conversation",
    "fallbacks",
    "include",
    "input",
    "instructions",
    "messages",
    "model",
    "models",
    "previous_response_id",
    "prompt",
    "response_format",
    "route",
    "stream",
    "stream_options",
    "system",
    "systemInstruction",
    "system_instruction",
    "text",
    "tools",
];

/// Adds the options meant for this provider, be it by its name or by its kind.
pub(crate) fn apply(body: &mut Map<String, Value>, request: &SemanticRequest, kind: &str) -> Result<(), ProviderFault> {
    for (key, value) in request.provider_options.iter().flatten() {
        let Some((provider, option)) = key.strip_prefix("vendor.").and_then(|rest| rest.split_once('.')) else {
            continue;
        };
        if provider != request.provider && provider != kind {
            continue;
        }
        if TAKEN.contains(&option) {
            let why = format!("the option `{option}` cannot be set: the request says it already");
            return Err(ProviderFault::Rejected(why));
        }
        // Parts of two ways to think do not make a third.
        if option == "thinking" {
            body.insert(option.to_owned(), value.clone());
            continue;
        }
        merge(body.entry(option).or_insert(Value::Null), value);
    }
    Ok(())
}

/// Whatever the options say, no more than this is said, and it is said once.
pub(crate) fn hold_to(body: &mut Map<String, Value>, cap: Option<u64>, bounds: &[&str]) {
    let Some(cap) = cap else { return };
    for bound in bounds {
        if let Some(room) = body.get_mut(*bound)
            && room.as_u64().is_none_or(|room| room > cap)
        {
            *room = cap.into();
        }
    }
    for several in ["n", "best_of", "candidateCount"] {
        body.remove(several);
    }
}

fn merge(have: &mut Value, more: &Value) {
    match (have, more) {
        (Value::Object(have), Value::Object(more)) => {
            for (key, value) in more {
                merge(have.entry(key).or_insert(Value::Null), value);
            }
        }
        (have, more) => *have = more.clone(),
    }
}
