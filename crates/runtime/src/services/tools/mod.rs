//! Calling tools. The intent is on disk before the call is made; what comes back is a command. A call that this process
//! did not begin itself, and whose answer is not on the log, may or may not have taken place: that is said, not guessed.

pub(crate) mod call;
pub(crate) mod invocation;
pub(crate) mod prior_runs;
pub(crate) mod service;
pub(crate) mod simulated;

use baton_engine::{Command, Returned, ToolCall};
use baton_model::tool::{ToolFault, ToolOutcome, ToolRequest};
use baton_model::{RunId, Secret, ToolSpec, redact};
use baton_tool::http::{HttpCall, Verified};
use baton_tool::{Called, hooks, redact_value};
use serde_json::Value;

use crate::Error;
use crate::services::tools::invocation::ToolInvocation;
use crate::services::tools::service::ToolCalls;

/// The argument that says where a call can be looked up.
const VERIFY_URL: &str = "verifyUrl";

impl ToolCalls {
    /// Whether a tool may be called on behalf of this caller, and not too soon. A refusal is what the call comes to.
    #[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
    pub(crate) fn admit(&self, tool: &ToolSpec, principal: &str, scopes: Option<&[String]>) -> Result<(), ToolOutcome> {
        let (held, limits) = (hooks::Held::from(scopes), self.options.tool_limits.as_deref());
        hooks::admit(&tool.id, &tool.scopes, principal, held, limits).inspect_err(|_| {
            metrics::counter!("baton_tool_calls_total", "outcome" => "refused").increment(1);
        })
    }

    /// What a call comes to that may not be made.
    pub(crate) fn refused(&self, invocation: &ToolInvocation) -> Option<Returned> {
        let tool = &invocation.call.tool;
        let refused = self.admit(tool, &invocation.principal, invocation.scopes.as_deref()).err()?;
        Some(done(refused, &self.secrets))
    }

    /// Makes the call, once.
    pub(crate) async fn call_tool(&self, run: &RunId, invocation: &ToolInvocation) -> Result<Returned, Error> {
        let call = &invocation.call;
        if invocation.simulated {
            return Ok(done(self.simulate(run, call).await?, &self.secrets));
        }
        if let Some(refused) = self.refused(invocation) {
            return Ok(refused);
        }
        if call.verify {
            return Ok(self.look_up(invocation).await);
        }
        let mut arguments = call.arguments.clone();
        // Where to look a call up is not part of the call.
        if let Some(map) = arguments.as_object_mut() {
            map.remove(VERIFY_URL);
        }
        let request = ToolRequest {
            key: call.key.clone(),
            tool: call.tool.id.clone(),
            arguments,
            tenant: invocation.tenant.clone(),
            principal: invocation.principal.clone(),
            scopes: invocation.scopes.clone(),
            trace: invocation.trace.clone(),
            timeout_ms: call.timeout_ms,
            runner: call.runner.clone(),
            beside: Default::default(),
        };
        let called = self.really_call(run, &request).await;
        let outcome = match &called {
            Called::Done(outcome) if outcome.error.is_none() => "ok",
            Called::Done(_) => "error",
            Called::Unknown { .. } => "unknown",
        };
        metrics::counter!("baton_tool_calls_total", "outcome" => outcome).increment(1);
        Ok(match called {
            Called::Done(outcome) => done(outcome, &self.secrets),
            Called::Unknown { reason } => Returned::Unknown { reason },
        })
    }

    /// Finds out whether a call took place, without making it.
    async fn look_up(&self, invocation: &ToolInvocation) -> Returned {
        let call = &invocation.call;
        let url = call.arguments.get(VERIFY_URL).and_then(Value::as_str);
        let (Some(http), Some(url)) = (&self.options.http, url) else {
            return Returned::Unknown { reason: "There is no place to look it up.".to_owned() };
        };
        let headers = call.arguments.get("headers").and_then(Value::as_object);
        let lookup = HttpCall {
            key: call.key.clone(),
            method: "GET".to_owned(),
            url: url.to_owned(),
            headers: headers.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: Value::Null,
            tenant: invocation.tenant.clone(),
            trace: invocation.trace.clone(),
            timeout_ms: call.timeout_ms,
        };
        match http.verify(&lookup).await {
            Verified::Done(value) => done(ToolOutcome::ok(value), &self.secrets),
            Verified::NotDone => Returned::NotDone,
            Verified::Unknown { reason } => Returned::Unknown { reason },
        }
    }

    pub(crate) fn tool_command(&self, call: &ToolCall, returned: Returned) -> Command {
        Command::ToolReturned { node: call.node.clone(), call_id: call.call_id.clone(), returned }
    }
}

/// What came back, without anything that must not be stored.
fn done(outcome: ToolOutcome, secrets: &[Secret]) -> Returned {
    let error = outcome.error.map(|error| ToolFault { message: redact(&error.message, secrets), ..error });
    let outcome = ToolOutcome { value: redact_value(&outcome.value, secrets), error, ..outcome };
    Returned::Outcome { outcome, written: Vec::new() }
}
