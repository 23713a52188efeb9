use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What went wrong, in the shape that events and snapshots carry: a stable code, a sentence, and facts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Fault {
    pub code: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub details: Option<Map<String, Value>>,
}

impl Fault {
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), details: None }
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.get_or_insert_default().insert(key.to_owned(), value.into());
        self
    }
}

/// Stable codes that appear on the log or on the wire. Each has a page under `docs/errors/`.
pub mod code {
    pub const APPROVAL_REJECTED: &str = "approval_rejected";
    pub const BUDGET_EXHAUSTED: &str = "budget_exhausted";
    pub const BUDGET_MODEL_DENIED: &str = "budget_model_denied";
    pub const CAPABILITY_NOT_PROVIDED: &str = "capability_not_provided";
    pub const CAPABILITY_REQUIRED: &str = "capability_required";
    pub const CAP_BREACHED: &str = "cap_breached";
    pub const CHANNEL_ACCESS_DENIED: &str = "channel_access_denied";
    pub const CHILD_CANCELLED: &str = "child_cancelled";
    pub const CHILD_FAILED: &str = "child_failed";
    pub const CONTENT_TOO_LONG: &str = "content_too_long";
    pub const CREDENTIAL_FORBIDDEN: &str = "credential_forbidden";
    pub const DISPATCH_JOIN_FAILED: &str = "dispatch_join_failed";
    pub const EFFECT_NOT_SIMULATED: &str = "effect_not_simulated";
    pub const EFFECT_OUTCOME_UNKNOWN: &str = "effect_outcome_unknown";
    pub const EGRESS_DENIED: &str = "egress_denied";
    pub const ENVELOPE_CONTRACT_VIOLATION: &str = "envelope_contract_violation";
    pub const ENVELOPE_INVALID: &str = "envelope_invalid";
    pub const ENVELOPE_RECOVERY_CONTENT_LEAK: &str = "envelope_recovery_content_leak";
    pub const ENVELOPE_REFUSAL: &str = "envelope_refusal";
    pub const ENVELOPE_RELIABILITY_CREDENTIAL_LEAK: &str = "envelope_reliability_credential_leak";
    pub const ENVELOPE_TRUNCATION_UNRECOVERABLE: &str = "envelope_truncation_unrecoverable";
    pub const EXPRESSION_ERROR: &str = "expression_error";
    pub const EXPRESSION_TOO_COSTLY: &str = "expression_too_costly";
    pub const EXTERNAL_CALL_FAILED: &str = "external_call_failed";
    pub const FAN_OUT_UNSUPPORTED: &str = "fan_out_unsupported";
    pub const FORBIDDEN: &str = "forbidden";
    pub const FORCE_ENGINE_VERSION_FORBIDDEN: &str = "force_engine_version_forbidden";
    pub const HANDOFF_RETURN_SCHEMA_VIOLATION: &str = "handoff_return_schema_violation";
    pub const HANDOFF_TASK_SCHEMA_VIOLATION: &str = "handoff_task_schema_violation";
    pub const IDEMPOTENCY_IN_FLIGHT: &str = "idempotency_in_flight";
    pub const IDEMPOTENCY_KEY_MISMATCH: &str = "idempotency_key_mismatch";
    pub const INPUT_MISSING: &str = "input_missing";
    pub const INTERNAL_ERROR: &str = "internal_error";
    pub const INTERRUPT_ALREADY_RESOLVED: &str = "interrupt_already_resolved";
    pub const INTERRUPT_CANCELLED: &str = "interrupt_cancelled";
    pub const INTERRUPT_EXPIRED: &str = "interrupt_expired";
    pub const INTERRUPT_GONE: &str = "interrupt_gone";
    pub const INTERRUPT_NOT_FOUND: &str = "interrupt_not_found";
    pub const INTERRUPT_TIMEOUT: &str = "interrupt_timeout";
    pub const INVALID_ARGUMENT: &str = "invalid_argument";
    pub const INVALID_FROM_SEQ: &str = "invalid_from_seq";
    pub const INVALID_MANIFEST: &str = "invalid_manifest";
    pub const KEY_EXPIRED: &str = "key_expired";
    pub const LOOP_LIMIT_EXCEEDED: &str = "loop_limit_exceeded";
    pub const MCP_SERVER_DISCONNECTED: &str = "mcp_server_disconnected";
    pub const MCP_SERVER_NOT_FOUND: &str = "mcp_server_not_found";
    pub const MCP_TOOL_INVOCATION_FAILED: &str = "mcp_tool_invocation_failed";
    pub const MCP_TOOL_NOT_FOUND: &str = "mcp_tool_not_found";
    pub const MEMORY_FULL: &str = "memory_full";
    pub const METHOD_NOT_ALLOWED: &str = "method_not_allowed";
    pub const MOCK_PROVIDER_FORBIDDEN: &str = "mock_provider_forbidden";
    pub const MODEL_NOT_SUPPORTED: &str = "model_not_supported";
    pub const NESTING_LIMIT_EXCEEDED: &str = "nesting_limit_exceeded";
    pub const NODE_TIMEOUT: &str = "node_timeout";
    pub const NOT_FOUND: &str = "not_found";
    pub const NO_PENDING_DECISION: &str = "no_pending_decision";
    pub const PACK_INTEGRITY_FAILURE: &str = "pack_integrity_failure";
    pub const PACK_KIND_INVALID: &str = "pack_kind_invalid";
    pub const PACK_PEER_DEPENDENCY_MISSING: &str = "pack_peer_dependency_missing";
    pub const PACK_RUNTIME_REQUIREMENT_UNMET: &str = "pack_runtime_requirement_unmet";
    pub const PACK_SIGNATURE_INVALID: &str = "pack_signature_invalid";
    pub const PACK_VERSION_NOT_FOUND: &str = "pack_version_not_found";
    pub const PAYLOAD_TOO_LARGE: &str = "payload_too_large";
    pub const PROMPT_PACK_DEPENDENCY_UNRESOLVABLE: &str = "prompt_pack_dependency_unresolvable";
    pub const PROMPT_REF_AMBIGUOUS: &str = "prompt_ref_ambiguous";
    pub const PROMPT_REF_INVALID: &str = "prompt_ref_invalid";
    pub const PROMPT_TEMPLATE_INVALID: &str = "prompt_template_invalid";
    pub const PROMPT_VARIABLE_TYPE_MISMATCH: &str = "prompt_variable_type_mismatch";
    pub const PROMPT_VARIABLE_UNRESOLVED: &str = "prompt_variable_unresolved";
    pub const PROTOCOL_VERSION_UNSUPPORTED: &str = "protocol_version_unsupported";
    pub const PROVIDER_QUOTA_EXHAUSTED: &str = "provider_quota_exhausted";
    pub const PROVIDER_UNAVAILABLE: &str = "provider_unavailable";
    pub const PROVIDER_USAGE_CREDENTIAL_LEAK: &str = "provider_usage_credential_leak";
    pub const RATE_LIMITED: &str = "rate_limited";
    pub const RECURSION_LIMIT_EXCEEDED: &str = "recursion_limit_exceeded";
    pub const REMOTE_REFUSED: &str = "remote_refused";
    pub const REMOTE_UNREACHABLE: &str = "remote_unreachable";
    pub const REPLAY_DIVERGED_AT_REFUSAL: &str = "replay_diverged_at_refusal";
    pub const REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE: &str = "replay_memory_snapshot_unavailable";
    pub const REPLAY_SOURCE_MISSING: &str = "replay_source_missing";
    pub const REQUEST_TIMEOUT: &str = "request_timeout";
    pub const RESIDENCY_UNAVAILABLE: &str = "residency_unavailable";
    pub const RUN_ALREADY_ACTIVE: &str = "run_already_active";
    pub const RUN_CONFLICT: &str = "run_conflict";
    pub const RUN_NOT_FOUND: &str = "run_not_found";
    pub const RUN_PRUNED: &str = "run_pruned";
    pub const RUN_QUARANTINED: &str = "run_quarantined";
    pub const RUN_TERMINAL: &str = "run_terminal";
    pub const RUN_TIMEOUT: &str = "run_timeout";
    pub const SERVICE_UNAVAILABLE: &str = "service_unavailable";
    pub const SUBSCRIPTION_NOT_ACTIVE: &str = "subscription_not_active";
    pub const SUBSCRIPTION_NOT_FOUND: &str = "subscription_not_found";
    pub const TOOL_ROUNDS_EXCEEDED: &str = "tool_rounds_exceeded";
    pub const UNAUTHENTICATED: &str = "unauthenticated";
    pub const UNKNOWN_CHILD_WORKFLOW: &str = "unknown_child_workflow";
    pub const UNSUPPORTED_FORCE_ENGINE_VERSION: &str = "unsupported_force_engine_version";
    pub const UNSUPPORTED_MOCK_PROVIDER: &str = "unsupported_mock_provider";
    pub const UNSUPPORTED_RUNTIME: &str = "unsupported_runtime";
    pub const UNSUPPORTED_STREAM_MODE: &str = "unsupported_stream_mode";
    pub const VALIDATION_ERROR: &str = "validation_error";
    pub const WEBHOOK_URL_REJECTED: &str = "webhook_url_rejected";
    pub const WORKFLOW_NOT_FOUND: &str = "workflow_not_found";
    pub const WORKSPACE_CONFLICT: &str = "workspace_conflict";
    pub const WORKSPACE_MEMBERSHIP_REQUIRED: &str = "workspace_membership_required";
    pub const WORKSPACE_TOO_LARGE: &str = "workspace_too_large";
}
