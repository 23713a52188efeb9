//! What happens to an answer that has to have a shape. None of these repeats what was asked or answered.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::NodeId;

/// Why an answer does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetryReason {
    SchemaViolation,
    Truncation,
    ParseError,
}

/// The model is asked again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeRetryAttempted {
    pub node_id: NodeId,
    /// The attempt that begins; the first one is not announced.
    pub attempt: u32,
    pub reason: RetryReason,
    /// What was wrong, in the host's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_error: Option<String>,
}

/// It is not asked any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeRetryExhausted {
    pub node_id: NodeId,
    pub total_attempts: u32,
    pub final_reason: RetryReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_error: Option<String>,
}

/// The answer stops where its room ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeTruncated {
    pub node_id: NodeId,
    pub provider: String,
    pub model: String,
    pub stop_reason: String,
    /// Whether anything was said before the end. Absent in runs before rule 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_payload_available: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_token_count: Option<u64>,
}

/// The answer was wrapped in something, or slightly broken, and could be read all the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeRecoveryApplied {
    pub node_id: NodeId,
    pub path: RecoveryPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryPath {
    Direct,
    Jsonrepair,
    MarkdownFence,
    BraceWalker,
    Custom,
}

/// The answer was prose, and the model is asked once to put it into its shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeNlToFormat {
    pub node_id: NodeId,
    pub original_envelope_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_calls: Option<u32>,
}

/// Something worth noting, for whoever looks closely: what an agent told the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogAppended {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    pub message: String,
    pub node_id: NodeId,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
}
