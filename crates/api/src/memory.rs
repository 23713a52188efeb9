//! Memory from outside a run.

use baton_model::{MemoryEntry, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryScopes {
    pub scopes: Vec<MemoryScope>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryScope {
    pub scope: String,
    /// Grows with every change.
    pub version: u64,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryList {
    /// Newest first.
    pub entries: Vec<MemoryEntry>,
    /// Where the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Something to be remembered. Unknown members are refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Remember))]
pub struct NewMemory {
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How long it is to be remembered; not together with `expiresAt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<f64>,
    /// Until when it is to be remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
}
