//! Templates that conformance mode has beside the host's own.

use std::sync::Arc;

use baton_agent::prompts::{Library, PromptTemplate};
use serde_json::{Value, json};

/// The library that they stand in.
const LIBRARY: &str = "conformance";

pub(crate) fn library() -> Library {
    let mut library = Library::new();
    for (name, kind, text, variables) in templates() {
        let template = json!({
            "templateId": format!("conformance.prompt.{name}"), "version": "1.0.0", "kind": kind, "text": text,
            "tags": ["conformance"], "variables": variables, "meta": {"source": "host"},
        });
        if let Ok(template) = PromptTemplate::read(&template, "") {
            library.add(LIBRARY, Arc::new(template));
        }
    }
    library
}

/// Name, kind, text and variables.
fn templates() -> [(&'static str, &'static str, &'static str, Value); 7] {
    let visitor = json!([{"name": "userPayload", "type": "string", "required": true}]);
    let key = json!([{"name": "apiKey", "type": "string", "required": true, "source": "secret"}]);
    [
        ("trust-marker", "user", "A visitor wrote: {{userPayload}}\nSay what they want.", visitor),
        ("secret-redaction", "user", "Use the key {{apiKey}} and say whether it works.", key),
        ("writer-system", "system", "You write short, plain letters. You invent nothing.", json!([])),
        ("writer-user", "user", "Write three sentences about the weather.", json!([])),
        ("schema-hint", "schema-hint", "Answer with a JSON object that has the key `answer`.", json!([])),
        ("few-shot", "few-shot", "Q: Rain?\nA: {\"answer\": \"It rains.\"}", json!([])),
        ("few-shot-2", "few-shot", "Q: Snow?\nA: {\"answer\": \"It snows.\"}", json!([])),
    ]
}
