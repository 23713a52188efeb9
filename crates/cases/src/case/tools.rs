//! Tools that answer what the case says.

use std::collections::BTreeMap;

use baton_model::tool::SafetyTier;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A stubbed tool: what it is, and what it answers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct ToolDef {
    pub description: Option<String>,
    /// None: takes any arguments.
    pub input_schema: Option<Value>,
    pub output_schema: Option<Value>,
    pub tier: Option<SafetyTier>,
    /// The first of these that is for a call answers it.
    pub calls: Vec<StubCall>,
    /// Every other call.
    #[serde(deserialize_with = "given")]
    pub returns: Option<Value>,
    pub fails: Option<Fails>,
    pub takes: Option<String>,
    #[serde(skip)]
    pub takes_ms: u64,
}

/// What a call with these arguments comes to.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct StubCall {
    /// Part of the arguments.
    pub when: BTreeMap<String, Value>,
    #[serde(deserialize_with = "given")]
    pub returns: Option<Value>,
    pub fails: Option<Fails>,
    /// How long the tool takes, in simulated time.
    pub takes: Option<String>,
    /// None: any number of times.
    pub times: Option<u32>,
    #[serde(skip)]
    pub takes_ms: u64,
}

/// A text, or a code and a text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a mapping with `message`, and perhaps `code` or `outcomeUnknown`")]
pub enum Fails {
    Message(String),
    Full(FullFailure),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FullFailure {
    #[serde(default)]
    pub code: Option<String>,
    pub message: String,
    /// Nobody can tell whether the call took place.
    #[serde(default)]
    pub outcome_unknown: bool,
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum StubAnswer {
    Returns(Value),
    Fails { code: Option<String>, message: String },
    Unknown { reason: String },
}

impl StubAnswer {
    pub(crate) fn of(returns: Option<&Value>, fails: Option<&Fails>) -> Option<Self> {
        Some(match (returns, fails) {
            (Some(value), _) => Self::Returns(value.clone()),
            (None, Some(Fails::Message(message))) => Self::Fails { code: None, message: message.clone() },
            (None, Some(Fails::Full(full))) if full.outcome_unknown => Self::Unknown { reason: full.message.clone() },
            (None, Some(Fails::Full(full))) => Self::Fails { code: full.code.clone(), message: full.message.clone() },
            (None, None) => return None,
        })
    }
}

/// `returns: null` is an answer, too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
