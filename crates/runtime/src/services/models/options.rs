//! What a run may say about how its models are asked. It is judged when the run is created: a word that nobody would act
//! on is refused then, not passed over in silence.

use baton_engine::{MAX_TOKENS, TEMPERATURE};
use baton_model::{code, provider_options};
use serde_json::{Map, Value};

use crate::{Error, ErrorKind};

const VERBOSITIES: [&str; 3] = ["summary", "full", "off"];

/// Judges the reserved keys of `configurable` that are about models.
pub(crate) fn check_options(configurable: &Map<String, Value>) -> Result<(), Error> {
    if let Some((key, _)) = said(configurable, "credentialRef") {
        // Never another key in its place: whoever names one means it.
        let message = format!(
            "`configurable.{key}` names a credential, and this host calls its providers with keys of its own. Leave it out, or name a provider that has the right key with `ai.provider`."
        );
        return Err(Error::new(ErrorKind::Unprocessable, code::CREDENTIAL_FORBIDDEN, message).with("key", key));
    }
    let wrong = |key: &str, value: &Value, why: &str| {
        Error::invalid(format!("`configurable.{key}` {why}.")).with("key", key).with("value", value.clone())
    };
    for (key, value) in mentions(configurable, "temperature") {
        if !value.as_f64().is_some_and(|number| TEMPERATURE.contains(&number)) {
            let (min, max) = (*TEMPERATURE.start(), *TEMPERATURE.end());
            return Err(wrong(&key, value, &format!("is a number from {min} to {max}"))
                .with("min", min)
                .with("max", max));
        }
    }
    for (key, value) in mentions(configurable, "maxTokens") {
        if !value.as_u64().is_some_and(|number| MAX_TOKENS.contains(&number)) {
            let (min, max) = (*MAX_TOKENS.start(), *MAX_TOKENS.end());
            let why = format!("is a whole number from {min} to {max}");
            return Err(wrong(&key, value, &why).with("min", min).with("max", max));
        }
    }
    for (key, value) in mentions(configurable, "providerOptions") {
        if let Err(wrong) = provider_options::check(value) {
            let error = Error::invalid(format!("`configurable.{key}`: {}", wrong.message)).with("key", key);
            return Err(if wrong.key.is_empty() { error } else { error.with("option", wrong.key) });
        }
    }
    match present(configurable.get("reasoningVerbosity")) {
        Some(value) if !value.as_str().is_some_and(|word| VERBOSITIES.contains(&word)) => {
            let why = format!("is one of {}", VERBOSITIES.join(", "));
            Err(wrong("reasoningVerbosity", value, &why))
        }
        _ => Ok(()),
    }
}

/// Every place where a run says something of this name: by itself, as `ai.NAME`, and in `ai`.
fn mentions<'a>(configurable: &'a Map<String, Value>, name: &str) -> Vec<(String, &'a Value)> {
    let plain = present(configurable.get(name)).map(|value| (name.to_owned(), value));
    plain.into_iter().chain(said(configurable, name)).collect()
}

/// What is said in the namespace that is reserved for models.
fn said<'a>(configurable: &'a Map<String, Value>, name: &str) -> Option<(String, &'a Value)> {
    let dotted = format!("ai.{name}");
    let nested = || configurable.get("ai").and_then(|ai| ai.get(name));
    let value = present(configurable.get(&dotted)).or_else(|| present(nested()))?;
    Some((dotted, value))
}

fn present(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(configurable: Value) -> Option<(String, String)> {
        let error = check_options(configurable.as_object().unwrap()).err()?;
        let key = error.details.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
        Some((error.code.to_string(), key))
    }

    #[test]
    fn what_would_be_passed_over_is_refused() {
        for fine in [
            json!({}),
            json!({"temperature": 0, "maxTokens": 1, "reasoningVerbosity": "off"}),
            json!({"ai.temperature": 2.0, "ai": {"maxTokens": 1_000_000, "model": "m"}}),
            json!({"ai": {"credentialRef": null}, "temperature": null}),
            json!({"ai": "whatever"}),
        ] {
            assert_eq!(refused(fine.clone()), None, "{fine}");
        }
        for (wrong, code, key) in [
            (json!({"ai.credentialRef": "secret:mine"}), "credential_forbidden", "ai.credentialRef"),
            (json!({"ai": {"credentialRef": {"ref": "x"}}}), "credential_forbidden", "ai.credentialRef"),
            (json!({"temperature": 2.1}), "validation_error", "temperature"),
            (json!({"temperature": "hot"}), "validation_error", "temperature"),
            (json!({"temperature": 1, "ai": {"temperature": -1}}), "validation_error", "ai.temperature"),
            (json!({"maxTokens": 0}), "validation_error", "maxTokens"),
            (json!({"maxTokens": 1.5}), "validation_error", "maxTokens"),
            (json!({"ai.maxTokens": 1_000_001}), "validation_error", "ai.maxTokens"),
            (json!({"reasoningVerbosity": "bogus"}), "validation_error", "reasoningVerbosity"),
            (json!({"reasoningVerbosity": 1}), "validation_error", "reasoningVerbosity"),
        ] {
            assert_eq!(refused(wrong.clone()), Some((code.to_owned(), key.to_owned())), "{wrong}");
        }
    }
}
