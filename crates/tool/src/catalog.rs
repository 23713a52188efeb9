//! The catalogue: tools as clients are shown them.

use baton_model::ToolSpec;
use baton_model::tool::{OutcomePolicy, SafetyTier};
use serde::Serialize;
use serde_json::Value;

/// What a tool is, beyond what an agent needs to call it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    pub source: Source,
    pub title: Option<String>,
    pub output_schema: Option<Value>,
    pub egress: Option<Egress>,
    pub approval: Approval,
    pub latency: Option<Latency>,
}

/// A tool in the catalogue. The shape is closed: no other members.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolDescriptor {
    /// The string that an allowlist names it by.
    pub tool_id: String,
    #[cfg_attr(feature = "schema", schema(inline))]
    pub source: Source,
    #[cfg_attr(feature = "schema", schema(inline))]
    pub safety_tier: SafetyTier,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub title: Option<String>,
    pub description: String,
    pub input_schema: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub output_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub auth: Option<Auth>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(inline, nullable = false))]
    pub egress: Option<Egress>,
    #[cfg_attr(feature = "schema", schema(inline))]
    pub approval: Approval,
    #[cfg_attr(feature = "schema", schema(inline))]
    pub replay_policy: ReplayPolicy,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(inline, nullable = false))]
    pub latency_hint: Option<Latency>,
}

/// Scopes its caller must hold. Credentials that the host keeps for a tool are not named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolAuth))]
pub struct Auth {
    pub scopes: Vec<String>,
}

/// Where a tool comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolSource))]
pub enum Source {
    NodePack,
    Workflow,
    Mcp,
    Connector,
    /// Part of this host.
    #[default]
    HostExtension,
}

impl Source {
    pub fn read(word: &str) -> Option<Self> {
        [Self::NodePack, Self::Workflow, Self::Mcp, Self::Connector, Self::HostExtension]
            .into_iter()
            .find(|source| serde_json::to_value(source).is_ok_and(|shown| shown == word))
    }
}

/// What a tool sends out of this process, and through whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolEgress))]
pub enum Egress {
    None,
    /// To addresses of the caller's choice, through the guard.
    SafeFetch,
    /// To where the operator's configuration says.
    HostMediated,
    HostOwned,
}

/// Whether a human is asked before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolApproval))]
pub enum Approval {
    #[default]
    Never,
    Conditional,
    Always,
}

/// What a call made again would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolReplayPolicy))]
pub enum ReplayPolicy {
    Deterministic,
    Idempotent,
    NonDeterministic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolLatency))]
pub enum Latency {
    Low,
    Medium,
    High,
}

impl ToolDescriptor {
    pub fn new(spec: &ToolSpec, about: About) -> Self {
        Self {
            tool_id: spec.id.clone(),
            source: about.source,
            safety_tier: spec.tier,
            title: about.title,
            description: spec.description.clone(),
            input_schema: spec.input_schema.clone(),
            output_schema: about.output_schema,
            auth: (!spec.scopes.is_empty()).then(|| Auth { scopes: spec.scopes.clone() }),
            egress: about.egress,
            approval: about.approval,
            replay_policy: match (spec.tier, spec.outcome_policy) {
                (SafetyTier::Pure, _) => ReplayPolicy::Deterministic,
                (_, OutcomePolicy::Retry) => ReplayPolicy::Idempotent,
                (_, OutcomePolicy::Verify | OutcomePolicy::Ask | OutcomePolicy::Fail) => ReplayPolicy::NonDeterministic,
            },
            latency_hint: about.latency,
        }
    }
}
