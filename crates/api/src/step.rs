//! What programs keep under the steps that they have in hand.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A value to be kept.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeepValue {
    pub value: Value,
}

/// The value that counts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct StepValue {
    pub key: String,
    pub value: Value,
    /// It was not there before; only where one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub created: Option<bool>,
}

/// What a program shows for the step that it has in hand. It is never printed.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct StepToken(String);

impl StepToken {
    /// For whoever hands it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StepToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepToken(…)")
    }
}
