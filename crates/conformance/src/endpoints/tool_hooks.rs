//! One call of a tool behind its hooks: may this caller, is it too soon, what came of it. The answer is what the log of
//! an agent's run would show.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use baton_model::event::{AgentToolCalled, AgentToolReturned, ToolFacts};
use baton_model::tool::{ToolOutcome, ToolRequest, Transport};
use baton_model::{Digest, Principal, code};
use baton_server::endpoint::scope::RunsCreate;
use baton_server::endpoint::{Allowed, ApiError, App, Reply};
use baton_tool::hooks::{self, Held};
use baton_tool::{Called, redact_value};
use serde::Deserialize;
use serde_json::{Value, json};

use super::mock_ai::wrong;
use super::stage::Body;

/// Who calls where no agent does.
const SYSTEM: &str = "core.system";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invoke {
    #[serde(default)]
    principal: String,
    #[serde(default)]
    tool_name: String,
    #[serde(default)]
    required_scopes: Vec<String>,
    /// What the principal holds. Absent: nobody could find out.
    granted_scopes: Option<Vec<String>>,
    #[serde(default)]
    args: Value,
    #[serde(default)]
    simulate_rate_limit_exhausted: bool,
}

pub(super) async fn post(
    State(app): State<App>,
    who: Allowed<RunsCreate>,
    Body(call): Body<Invoke>,
) -> Result<Response, ApiError> {
    for (field, text) in [("principal", &call.principal), ("toolName", &call.tool_name)] {
        if text.is_empty() {
            return Err(wrong(field, format!("`{field}` is required.")));
        }
    }
    let options = app.host.options();
    let call_id = format!("seam:{}", uuid::Uuid::now_v7().simple());
    let outcome = call.made(&app, &who, &call_id).await;
    let error = outcome.error.map(|error| baton_model::tool::ToolFault {
        message: baton_model::redact(&error.message, &options.secrets),
        ..error
    });
    let returned = AgentToolReturned {
        agent_id: SYSTEM.to_owned(),
        tool_name: call.tool_name.clone(),
        call_id: call_id.clone(),
        outcome: error.is_none().then(|| redact_value(&outcome.value, &options.secrets)),
        error,
        status: Some(outcome.status),
        duration_ms: outcome.duration_ms,
        private: ToolFacts::default(),
    };
    let called = AgentToolCalled {
        agent_id: SYSTEM.to_owned(),
        call_id,
        // The arguments themselves stay away: their hash stands for them.
        inputs: None,
        args_hash: Some(Digest::of_json(&redact_value(&call.args, &options.secrets))),
        principal: Some(call.principal),
        transport: Some(if call.tool_name.starts_with("mcp:") { Transport::Mcp } else { Transport::Native }),
        tool_name: call.tool_name,
        private: ToolFacts::default(),
    };
    Ok(Reply::ok(&json!({"toolCalled": called, "toolReturned": returned})).into_response())
}

impl Invoke {
    /// What every call goes through, in the same order.
    async fn made(&self, app: &App, who: &Principal, key: &str) -> ToolOutcome {
        let options = app.host.options();
        let held = self.granted_scopes.as_deref().map_or(Held::Unknown, Held::Only);
        let limits = options.tool_limits.as_deref();
        if let Err(refused) = hooks::admit(&self.tool_name, &self.required_scopes, &self.principal, held, limits) {
            return refused;
        }
        if self.simulate_rate_limit_exhausted {
            return hooks::too_soon(&self.tool_name, std::time::Duration::from_secs(1));
        }
        let request = ToolRequest {
            key: key.to_owned(),
            tool: self.tool_name.clone(),
            arguments: self.args.clone(),
            tenant: who.tenant.clone(),
            principal: self.principal.clone(),
            scopes: self.granted_scopes.clone(),
            trace: None,
            timeout_ms: None,
            runner: Default::default(),
            beside: Default::default(),
        };
        match options.tools.call(&request).await {
            Called::Done(outcome) => outcome,
            Called::Unknown { reason } => ToolOutcome::failed(code::EFFECT_OUTCOME_UNKNOWN, reason),
        }
    }
}
