//! What a schema describes, as far as all vendors can be told.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// What the author says about it, and the bounds that are not enforced.
    pub(super) note: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Object(Vec<Field>),
    List(Box<Shape>),
    /// One of the choices, if there are any.
    Scalar(ScalarType, Vec<Value>),
    AnyOf(Vec<Shape>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// May be absent; a vendor is told that it may be null.
    pub(super) optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarType {
    String,
    Integer,
    Number,
    Boolean,
    Null,
}

impl ScalarType {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }

    pub(super) fn read(word: &str) -> Option<Self> {
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Null].into_iter().find(|w| w.as_str() == word)
    }

    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(_) => Some(Self::String),
            Value::Number(number) if number.is_f64() => Some(Self::Number),
            Value::Number(_) => Some(Self::Integer),
            Value::Bool(_) => Some(Self::Boolean),
            Value::Null => Some(Self::Null),
            Value::Array(_) | Value::Object(_) => None,
        }
    }
}

impl Shape {
    pub(super) const fn new(kind: Kind) -> Self {
        Self { kind, nullable: false, note: None }
    }

    /// The one text that a field of this shape can be.
    pub(super) fn constant(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(ScalarType::String, choices) if choices.len() == 1 && !self.nullable => choices[0].as_str(),
            _ => None,
        }
    }
}
