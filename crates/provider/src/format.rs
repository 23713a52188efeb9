//! What form an answer is asked for in, and how a vendor is told.

use serde_json::Value;

use crate::schema_compat::Shape;

#[derive(Debug)]
pub(crate) enum Format<'a> {
    Text,
    /// Any JSON object.
    Json,
    /// The vendor holds its model to this.
    Native {
        name: String,
        shape: Shape,
    },
    /// No vendor can be held to this; the prompt asks for it.
    Asked(&'a Value),
}

impl<'a> Format<'a> {
    pub(crate) fn read(asked: Option<&'a Value>, native: bool) -> Self {
        let Some(asked) = asked else { return Self::Text };
        match (asked.get("type").and_then(Value::as_str), asked.get("schema")) {
            (Some("json_object"), _) => Self::Json,
            (Some("json_schema") | None, Some(schema)) => {
                let name = name(asked.get("name").and_then(Value::as_str));
                let shape = Shape::read(schema).filter(|_| native);
                shape.map_or(Self::Asked(schema), |shape| Self::Native { name, shape })
            }
            _ => Self::Text,
        }
    }

    /// What the prompt has to say where the vendor's own means do not reach.
    pub(crate) fn instruction(&self) -> Option<String> {
        match self {
            Self::Text | Self::Native { .. } => None,
            Self::Json => Some("Answer with one JSON object and nothing else.".to_owned()),
            Self::Asked(schema) => {
                Some(format!("Answer with JSON and nothing else. It must be valid against this JSON Schema:\n{schema}"))
            }
        }
    }

    pub(crate) fn into_shape(self) -> Option<Shape> {
        match self {
            Self::Native { shape, .. } => Some(shape),
            _ => None,
        }
    }
}

fn name(asked: Option<&str>) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = asked.unwrap_or_default().chars().map(letter).take(64).collect();
    if name.is_empty() { "answer".to_owned() } else { name }
}
