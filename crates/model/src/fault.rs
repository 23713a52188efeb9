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
    /// Declares the codes, and lists them: Rust cannot list the items of a module.
    macro_rules! codes {
        ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
            $($(#[$doc])* pub const $name: &str = $text;)*

            /// Every code there is.
            pub const ALL: &[&str] = &[$($name),*];
        };
    }

    codes! {
        APPROVAL_REJECTED = "approval_rejected";
        BUDGET_EXCEEDED = "budget_exceeded";
        BUDGET_EXHAUSTED = "budget_exhausted";
        BUDGET_MODEL_DENIED = "budget_model_denied";
        CAPABILITY_NOT_PROVIDED = "capability_not_provided";
        CAPABILITY_REQUIRED = "capability_required";
        CAP_BREACHED = "cap_breached";
        CHANNEL_ACCESS_DENIED = "channel_access_denied";
        CHILD_CANCELLED = "child_cancelled";
        CHILD_FAILED = "child_failed";
        CONTENT_TOO_LONG = "content_too_long";
        CREDENTIAL_FORBIDDEN = "credential_forbidden";
        DISPATCH_JOIN_FAILED = "dispatch_join_failed";
        EFFECT_NOT_SIMULATED = "effect_not_simulated";
        EFFECT_OUTCOME_UNKNOWN = "effect_outcome_unknown";
        EGRESS_DENIED = "egress_denied";
        ENVELOPE_CONTRACT_VIOLATION = "envelope_contract_violation";
        ENVELOPE_INVALID = "envelope_invalid";
        ENVELOPE_RECOVERY_CONTENT_LEAK = "envelope_recovery_content_leak";
        ENVELOPE_REFUSAL = "envelope_refusal";
        ENVELOPE_RELIABILITY_CREDENTIAL_LEAK = "envelope_reliability_credential_leak";
        ENVELOPE_TRUNCATION_UNRECOVERABLE = "envelope_truncation_unrecoverable";
        EXPRESSION_ERROR = "expression_error";
        EXPRESSION_TOO_COSTLY = "expression_too_costly";
        EXTERNAL_CALL_FAILED = "external_call_failed";
        FAN_OUT_UNSUPPORTED = "fan_out_unsupported";
        FORBIDDEN = "forbidden";
        FORCE_ENGINE_VERSION_FORBIDDEN = "force_engine_version_forbidden";
        HANDOFF_RETURN_SCHEMA_VIOLATION = "handoff_return_schema_violation";
        HANDOFF_TASK_SCHEMA_VIOLATION = "handoff_task_schema_violation";
        IDEMPOTENCY_IN_FLIGHT = "idempotency_in_flight";
        IDEMPOTENCY_KEY_MISMATCH = "idempotency_key_mismatch";
        INPUT_MISSING = "input_missing";
        INTERNAL_ERROR = "internal_error";
        INTERRUPT_ALREADY_RESOLVED = "interrupt_already_resolved";
        INTERRUPT_CANCELLED = "interrupt_cancelled";
        INTERRUPT_EXPIRED = "interrupt_expired";
        INTERRUPT_GONE = "interrupt_gone";
        INTERRUPT_NOT_FOUND = "interrupt_not_found";
        INTERRUPT_TIMEOUT = "interrupt_timeout";
        INVALID_ARGUMENT = "invalid_argument";
        INVALID_FROM_SEQ = "invalid_from_seq";
        INVALID_MANIFEST = "invalid_manifest";
        KEY_EXPIRED = "key_expired";
        LOOP_LIMIT_EXCEEDED = "loop_limit_exceeded";
        MAP_ITEM_FAILED = "map_item_failed";
        MCP_SERVER_DISCONNECTED = "mcp_server_disconnected";
        MCP_SERVER_NOT_FOUND = "mcp_server_not_found";
        MCP_TOOL_INVOCATION_FAILED = "mcp_tool_invocation_failed";
        MCP_TOOL_NOT_FOUND = "mcp_tool_not_found";
        MEMORY_FULL = "memory_full";
        METHOD_NOT_ALLOWED = "method_not_allowed";
        MOCK_PROVIDER_FORBIDDEN = "mock_provider_forbidden";
        MODEL_NOT_FOUND = "model_not_found";
        MODEL_NOT_SUPPORTED = "model_not_supported";
        NESTING_LIMIT_EXCEEDED = "nesting_limit_exceeded";
        NODE_TIMEOUT = "node_timeout";
        NOT_FOUND = "not_found";
        NO_PENDING_DECISION = "no_pending_decision";
        PACK_INTEGRITY_FAILURE = "pack_integrity_failure";
        PACK_KIND_INVALID = "pack_kind_invalid";
        PACK_PEER_DEPENDENCY_MISSING = "pack_peer_dependency_missing";
        PACK_RUNTIME_REQUIREMENT_UNMET = "pack_runtime_requirement_unmet";
        PACK_SIGNATURE_INVALID = "pack_signature_invalid";
        PACK_VERSION_NOT_FOUND = "pack_version_not_found";
        PAYLOAD_TOO_LARGE = "payload_too_large";
        PROMPT_PACK_DEPENDENCY_UNRESOLVABLE = "prompt_pack_dependency_unresolvable";
        PROMPT_REF_AMBIGUOUS = "prompt_ref_ambiguous";
        PROMPT_REF_INVALID = "prompt_ref_invalid";
        PROMPT_TEMPLATE_INVALID = "prompt_template_invalid";
        PROMPT_VARIABLE_TYPE_MISMATCH = "prompt_variable_type_mismatch";
        PROMPT_VARIABLE_UNRESOLVED = "prompt_variable_unresolved";
        PROTOCOL_VERSION_UNSUPPORTED = "protocol_version_unsupported";
        PROVIDER_QUOTA_EXHAUSTED = "provider_quota_exhausted";
        PROVIDER_UNAVAILABLE = "provider_unavailable";
        PROVIDER_USAGE_CREDENTIAL_LEAK = "provider_usage_credential_leak";
        RATE_LIMITED = "rate_limited";
        RECURSION_LIMIT_EXCEEDED = "recursion_limit_exceeded";
        REMOTE_REFUSED = "remote_refused";
        REMOTE_UNREACHABLE = "remote_unreachable";
        REPLAY_DIVERGED_AT_REFUSAL = "replay_diverged_at_refusal";
        REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE = "replay_memory_snapshot_unavailable";
        REPLAY_SOURCE_MISSING = "replay_source_missing";
        REQUEST_TIMEOUT = "request_timeout";
        RESIDENCY_UNAVAILABLE = "residency_unavailable";
        RESULT_CONFLICT = "result_conflict";
        RUNNER_UNAVAILABLE = "runner_unavailable";
        RUN_ALREADY_ACTIVE = "run_already_active";
        RUN_CONFLICT = "run_conflict";
        RUN_NOT_FOUND = "run_not_found";
        RUN_PRUNED = "run_pruned";
        RUN_QUARANTINED = "run_quarantined";
        STORAGE_DAMAGED = "storage_damaged";
        RUN_TERMINAL = "run_terminal";
        RUN_TIMEOUT = "run_timeout";
        SERVICE_UNAVAILABLE = "service_unavailable";
        STEP_NOT_LEASED = "step_not_leased";
        SUBSCRIPTION_NOT_ACTIVE = "subscription_not_active";
        SUBSCRIPTION_NOT_FOUND = "subscription_not_found";
        TOOL_RESULT_INVALID = "tool_result_invalid";
        TOOL_ROUNDS_EXCEEDED = "tool_rounds_exceeded";
        UNAUTHENTICATED = "unauthenticated";
        UNKNOWN_CHILD_WORKFLOW = "unknown_child_workflow";
        UNSUPPORTED_FORCE_ENGINE_VERSION = "unsupported_force_engine_version";
        UNSUPPORTED_MOCK_PROVIDER = "unsupported_mock_provider";
        UNSUPPORTED_RUNTIME = "unsupported_runtime";
        UNSUPPORTED_STREAM_MODE = "unsupported_stream_mode";
        VALIDATION_ERROR = "validation_error";
        WEBHOOK_URL_REJECTED = "webhook_url_rejected";
        WORKFLOW_NOT_FOUND = "workflow_not_found";
        WORKSPACE_CONFLICT = "workspace_conflict";
        WORKSPACE_MEMBERSHIP_REQUIRED = "workspace_membership_required";
        WORKSPACE_TOO_LARGE = "workspace_too_large";
    }

    /// The constant that says the same, for a code that comes as text.
    pub fn known(text: &str) -> Option<&'static str> {
        ALL.iter().copied().find(|code| *code == text)
    }
}
