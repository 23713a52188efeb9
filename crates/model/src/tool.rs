//! Tools: what an agent may call, and what comes back.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{TenantId, TraceContext};

/// A tool as an agent is shown it. Recorded with the invocation, so that a server that changes its mind about a tool
/// does not change a call that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpec {
    /// `scope:tool`, as allowlists write it.
    pub id: String,
    pub description: String,
    pub input_schema: Value,
    pub transport: Transport,
    pub tier: SafetyTier,
    /// What to do when nobody knows whether a call took place.
    pub outcome_policy: OutcomePolicy,
    /// Scopes its caller must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// What a simulated call answers where no real outcome is on record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stub: Option<Value>,
}

/// A tool as it was found when a node wanted it. Recorded with the call, so that what came back is judged by what was
/// promised then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FoundTool {
    pub spec: ToolSpec,
    /// What its results fit, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// What a node asks of the runner that makes its call. Other sources of tools do not read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunnerRequirement {
    /// How long the call may wait for a runner that can make it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Which versions of a runner will do, as a semver range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Mcp,
    Http,
    /// In this process: memory and workspace.
    Native,
}

/// What a tool may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum SafetyTier {
    Pure,
    Read,
    Write,
    Exec,
}

/// What to do about a call that was begun and never heard of again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutcomePolicy {
    /// It may be made again: the callee recognises the key, or doing it twice does no harm.
    Retry,
    /// Somewhere it can be looked up.
    Verify,
    /// A human says.
    #[default]
    Ask,
    /// It counts as failed.
    Fail,
}

/// A call that a model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The model's own name for it, unique within its reply.
    pub id: String,
    /// The tool's canonical id.
    pub name: String,
    pub arguments: Value,
}

/// A call to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    /// Names this call for ever, and is handed to the callee: made again after a crash, it is the same call.
    pub key: String,
    pub tool: String,
    pub arguments: Value,
    pub tenant: TenantId,
    /// On whose behalf, and with which scopes; `None` means all of the tenant's.
    pub principal: String,
    pub scopes: Option<Vec<String>>,
    pub trace: Option<TraceContext>,
    pub timeout_ms: Option<u64>,
    pub runner: RunnerRequirement,
    /// What the callee is told beside it, where it can be.
    pub beside: Beside,
}

/// Members of a call's metadata. What they say is for the callee alone, and is never printed.
#[derive(Clone, Default, PartialEq)]
pub struct Beside(pub Map<String, Value>);

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    pub status: ToolStatus,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFault>,
    /// How long it took, where it was made at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Ok,
    Error,
    Forbidden,
    RateLimited,
}

/// Why a call has no result. Neither part repeats a credential.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolFault {
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

impl ToolOutcome {
    pub fn ok(value: Value) -> Self {
        Self { status: ToolStatus::Ok, value, error: None, duration_ms: None }
    }

    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        Self::refused(ToolStatus::Error, code, message)
    }

    pub fn refused(status: ToolStatus, code: &str, message: impl Into<String>) -> Self {
        let error = ToolFault { code: code.to_owned(), message: message.into(), details: None, retryable: None };
        Self { status, value: Value::Null, error: Some(error), duration_ms: None }
    }

    #[must_use]
    pub fn took(self, duration_ms: u64) -> Self {
        Self { duration_ms: Some(duration_ms), ..self }
    }
}
