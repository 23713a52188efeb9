//! A tool as another program lists it, judged: what is too long is cut, what cannot be offered is refused. What the program
//! says about how harmless a tool is does not count; the operator says that.

use baton_model::ToolSpec;
use baton_model::tool::{OutcomePolicy, SafetyTier, Transport};
use serde_json::Value;

use crate::mcp::ToolOverride;

const MAX_NAME_CHARS: usize = 128;
const MAX_TITLE_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 2_000;
const MAX_SCHEMA_BYTES: usize = 64 * 1024;

/// What a program says about one of its tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedTool {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub input_schema: Value,
    pub output_schema: Option<Value>,
}

impl ListedTool {
    /// A tool of which only the name is known: it takes any object.
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), input_schema: serde_json::json!({"type": "object"}), ..Self::default() }
    }
}

/// What of it is offered.
pub(crate) struct Judged {
    pub(crate) spec: ToolSpec,
    pub(crate) title: Option<String>,
    pub(crate) output_schema: Option<Value>,
}

impl ListedTool {
    /// The tool under the id `<of>.<name>`, or why it cannot be offered.
    pub(crate) fn judged(self, of: &str, said: ToolOverride) -> Result<Judged, &'static str> {
        let Self { name, title, description, input_schema, output_schema } = self;
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(letter) {
            return Err("its name has other characters than letters, digits and _ - . /, or too many");
        }
        if input_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("its input is not an object");
        }
        if input_schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err("its input schema is too large");
        }
        let tier = said.tier.unwrap_or(SafetyTier::Write);
        let default_policy = if tier < SafetyTier::Write { OutcomePolicy::Retry } else { OutcomePolicy::Ask };
        let spec = ToolSpec {
            id: format!("{of}.{name}"),
            description: bounded(description.as_deref().unwrap_or_default(), MAX_DESCRIPTION_CHARS),
            input_schema,
            transport: Transport::Mcp,
            tier,
            outcome_policy: said.outcome_policy.unwrap_or(default_policy),
            scopes: said.scopes,
            stub: said.stub,
        };
        Ok(Judged {
            spec,
            title: title.map(|title| bounded(&title, MAX_TITLE_CHARS)),
            output_schema: output_schema.filter(|schema| schema.to_string().len() <= MAX_SCHEMA_BYTES),
        })
    }
}

/// The beginning of a text that is too long.
fn bounded(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
