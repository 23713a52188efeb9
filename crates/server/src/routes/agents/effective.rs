//! What an agent comes to on this host: what is left of its manifest once the host, the tenant and a grant had their say.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::tool::{SafetyTier, Transport};
use baton_model::{AgentCard, Digest, MemoryShape, OutcomePolicy, TenantId, ToolSpec};
use baton_runtime::Host;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::AnyKey;
use crate::error::ApiError;
use crate::path::Ids;
use crate::query::Params;
use crate::reply::Reply;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EffectiveAgent {
    agent_id: String,
    pack_name: String,
    pack_version: String,
    /// What runs are pinned to.
    #[schema(value_type = String)]
    digest: Digest,
    /// What the agent wants and this host lacks.
    degraded: Vec<String>,
    tools: Vec<EffectiveTool>,
    /// On the manifest's list, and not to be had.
    unavailable: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<EffectiveModel>,
    memory: EffectiveMemory,
    bounds: Bounds,
    confidence: Confidence,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EffectiveTool {
    tool_id: String,
    description: String,
    #[schema(value_type = String)]
    transport: Transport,
    #[schema(value_type = String)]
    safety_tier: SafetyTier,
    /// What is done about a call of which nobody knows whether it took place.
    #[schema(value_type = String)]
    outcome_policy: OutcomePolicy,
    /// What whoever starts the run must hold.
    scopes: Vec<String>,
    /// Whether this caller does.
    held: bool,
}

#[derive(Serialize, ToSchema)]
struct EffectiveModel {
    class: &'static str,
    provider: String,
    model: String,
    /// This host knows the provider.
    configured: bool,
    /// It has a price, so what it costs can be bounded.
    priced: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct EffectiveMemory {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    shape: MemoryShape,
    /// `tree`: that of the run and everything below it, unless the run is started with a `scopeId`.
    scope: &'static str,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Bounds {
    max_loop_iterations: u64,
    max_node_executions: u64,
    max_run_duration_ms: u64,
    max_fan_out: u32,
    envelopes_per_turn: u32,
    schema_rounds: u32,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Confidence {
    /// Answers that are less sure are held.
    threshold: f64,
    /// `agent` or `host`: who says so. A run may say otherwise.
    from: &'static str,
    /// Decisions of a supervisor that are less sure are held.
    decision_floor: f64,
}

/// What an agent may do here, and with what (host extension).
#[utoipa::path(get, path = "/v1/host/baton/agents/{agentId}/effective", tag = "agents",
    params(
        ("agentId" = String, Path),
        ("toolGrant" = Option<String>, Query, description = "Comma separated: what a run would grant at most")),
    responses(
        (status = 200, description = "The agent as it would run", body = EffectiveAgent),
        (status = 404, description = "No such agent", body = baton_api::ErrorBody)))]
pub(crate) async fn get(
    State(app): State<App>,
    who: AnyKey,
    Ids(id): Ids<String>,
    params: Params,
) -> Result<Response, ApiError> {
    params.only(&["toolGrant"])?;
    let (host, options) = (&app.host, app.host.options());
    let unknown = || ApiError::not_found("There is no such agent here. GET /v1/agents lists those that are.");
    let card = host.agent(&who.tenant, &id).ok_or_else(unknown)?;
    // A grant of nothing is a grant too.
    let grant = params
        .one("toolGrant")?
        .map(|_| params.list("toolGrant").filter(|tool| !tool.is_empty()).map(str::to_owned).collect::<Vec<_>>());
    let grants: Vec<Vec<String>> = grant.into_iter().collect();
    let offered = host.tool_surface(&who.tenant, &card, &grants);
    let scopes = who.scopes.names();
    let limits = &options.limits;
    let effective = EffectiveAgent {
        agent_id: card.agent_id.clone(),
        pack_name: card.pack_name.clone(),
        pack_version: card.pack_version.clone(),
        digest: card.digest(),
        degraded: app.inventory_entry(&who.tenant, &id).map(|entry| entry.degraded).unwrap_or_default(),
        unavailable: unavailable(host, &who.tenant, &card, &grants),
        tools: offered.into_iter().map(|tool| effective_tool(tool, &scopes)).collect(),
        model: host.model_route(&card).map(|route| EffectiveModel {
            class: card.model_class.as_str(),
            provider: route.choice.provider,
            model: route.choice.model,
            configured: route.configured,
            priced: route.priced,
        }),
        memory: EffectiveMemory { shape: card.memory, scope: "tree" },
        bounds: Bounds {
            max_loop_iterations: limits.max_loop_iterations,
            max_node_executions: limits.max_node_executions,
            max_run_duration_ms: limits.max_run_duration_ms,
            max_fan_out: limits.max_fan_out,
            envelopes_per_turn: limits.envelopes_per_turn,
            schema_rounds: limits.schema_rounds,
        },
        confidence: Confidence {
            threshold: card.threshold.unwrap_or(options.escalation.agent_threshold),
            from: if card.threshold.is_some() { "agent" } else { "host" },
            decision_floor: options.escalation.floor,
        },
    };
    Ok(Reply::ok(&effective).into_response())
}

fn effective_tool(tool: ToolSpec, held: &[String]) -> EffectiveTool {
    EffectiveTool {
        held: tool.scopes.iter().all(|scope| held.contains(scope)),
        tool_id: tool.id,
        description: tool.description,
        transport: tool.transport,
        safety_tier: tool.tier,
        outcome_policy: tool.outcome_policy,
        scopes: tool.scopes,
    }
}

/// What the manifest lists and is not to be had: nothing here answers to it, or the grant leaves it out.
fn unavailable(host: &Host, tenant: &TenantId, card: &AgentCard, grants: &[Vec<String>]) -> Vec<String> {
    let alone = |tool: &&String| {
        let only = AgentCard { tools: vec![(*tool).clone()], ..card.clone() };
        host.tool_surface(tenant, &only, grants).is_empty()
    };
    card.tools.iter().filter(alone).cloned().collect()
}
