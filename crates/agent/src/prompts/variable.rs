//! The gaps of a template, and what may fill them.

use baton_model::code;
use serde::Serialize;
use serde_json::Value;

use super::path::Path;
use crate::names;
use crate::problem::Problem;
use crate::shape::{self, Fields, Text};

/// A gap and what may fill it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptVariable {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: VariableType,
    pub required: bool,
    #[serde(skip_serializing_if = "VariableSource::is_input")]
    pub source: VariableSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract_path: Option<Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableType {
    String,
    Number,
    Boolean,
    Array,
    Object,
}

impl VariableType {
    const WORDS: &'static [&'static str] = &["string", "number", "boolean", "array", "object"];

    fn read(word: &str) -> Self {
        match word {
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => Self::String,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    pub fn fits(self, value: &Value) -> bool {
        match self {
            Self::String => value.is_string(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableSource {
    #[default]
    Input,
    Variable,
    Secret,
    Context,
}

impl VariableSource {
    fn is_input(&self) -> bool {
        *self == Self::Input
    }

    fn read(word: &str) -> Self {
        match word {
            "variable" => Self::Variable,
            "secret" => Self::Secret,
            "context" => Self::Context,
            _ => Self::Input,
        }
    }
}

pub(crate) fn read_all(fields: &mut Fields<'_, '_>) -> Vec<PromptVariable> {
    let mut variables: Vec<PromptVariable> = Vec::new();
    let at = fields.place("variables");
    for (index, entry) in fields.list("variables").into_iter().flatten().enumerate() {
        let at = format!("{at}/{index}");
        let read = shape::object(entry, &at, code::PROMPT_TEMPLATE_INVALID, fields.problems(), read).flatten();
        let Some(variable) = read else { continue };
        if variables.iter().any(|other| other.name == variable.name) {
            let message = format!("`{}` is declared twice; keep one of them.", variable.name);
            fields.problems().push(Problem::new(code::PROMPT_TEMPLATE_INVALID, at, message));
        }
        variables.push(variable);
    }
    variables
}

fn read(fields: &mut Fields<'_, '_>) -> Option<PromptVariable> {
    let name = fields.required_text("name", Text::ANY.which(names::is_variable_name, names::VARIABLE_NAME));
    fields.required("type");
    let kind = fields.word("type", VariableType::WORDS).map(|word| VariableType::read(&word));
    fields.required("required");
    let required = fields.flag("required");
    let sources = ["input", "variable", "secret", "context"];
    let source = fields.word("source", &sources).map(|word| VariableSource::read(&word)).unwrap_or_default();
    let extract_path = fields.text("extractPath", Text::ANY).and_then(|text| match Path::read(&text) {
        Ok(path) => Some(path),
        Err(why) => {
            fields.problem("extractPath", format!("`extractPath` {why}; it looks like `$.user.names[0]`."));
            None
        }
    });
    if extract_path.is_some() && source == VariableSource::Secret {
        fields.problem("extractPath", "A secret is taken whole; leave `extractPath` out.");
    }
    let default_value = fields.value("defaultValue").filter(|value| !value.is_null()).cloned();
    if let (Some(kind), Some(value)) = (kind, &default_value)
        && !kind.fits(value)
    {
        fields.problem("defaultValue", format!("`defaultValue` is of the variable's type, {}.", kind.as_str()));
    }
    let description = fields.text("description", Text::up_to(500));
    Some(PromptVariable {
        name: name?,
        kind: kind?,
        required: required?,
        source,
        extract_path,
        default_value,
        description,
    })
}
