//! Asking models. A call is made after the records it follows from are durable, and its answer comes back as a command.
//!
//! ```text
//!  effect ──► waits for its commit ──► provider ──► answer in hand ──► command, durable
//!                  │ lost with it          │ nobody wants it any more       │ disk in trouble: kept, told again
//! ```

pub(crate) mod calls;
pub(crate) mod clean;
pub(crate) mod fault;
pub(crate) mod options;
pub(crate) mod providers;
pub(crate) mod reasoning;
pub(crate) mod reserve_budget;
pub(crate) mod service;
pub(crate) mod turns;

pub(crate) use calls::{Calls, Wanted};
pub(crate) use options::check_options;
pub use providers::Models;
pub(crate) use turns::MODEL_CALLS;

use crate::services::in_flight::InFlightToken;
use std::sync::Arc;

use baton_engine::{Command, Made, Phase, Returned};
use baton_model::{Fault, ModelReply, ModelRequest, RunId, TenantId, Usage, code};
use baton_provider::DeltaSink;
use baton_store::WriteChain;
use baton_tool::runner;

use self::calls::Whose;
use self::clean::clean;
use self::fault::NoAnswer;
use self::reasoning::{Listener, Thinker};
use self::reserve_budget::CallPermission;
use crate::Error;
use crate::clock::RETRY_MS;
use crate::services::budgets::{Reservation, cost};
use crate::services::models::service::ModelCalls;
use crate::services::tools::invocation::ToolInvocation;

impl ModelCalls {
    /// Makes the calls in flight for a run those that it wants. `count` records must be on disk before one is made.
    pub(crate) fn see_to_calls(
        self: &Arc<Self>,
        chain: &Arc<WriteChain>,
        run: &RunId,
        count: u64,
        wanted: Vec<Wanted>,
    ) {
        for (wanted, ticket) in self.calls.reconcile(run, chain, wanted) {
            let (chain, run) = (Arc::clone(chain), run.clone());
            self.tasks
                .spawn(self, |room| async move { room.see_through_call(&chain, run, count, wanted, ticket).await });
        }
    }

    async fn see_through_call(
        &self,
        chain: &WriteChain,
        run: RunId,
        count: u64,
        wanted: Wanted,
        ticket: InFlightToken,
    ) {
        let reply = tokio::select! {
            biased;
            reply = self.ask(chain, &run, count, &wanted, &ticket) => reply,
            () = ticket.cancelled.cancelled() => {
                metrics::counter!("baton_model_calls_abandoned_total").increment(1);
                Ok(None)
            }
            () = self.tasks.stop.cancelled() => Ok(None),
        };
        let (mut refused, unasked) = (false, reply.is_err());
        match reply {
            // What was set aside for the call is given back once the log says what it used.
            Ok(Some((command, _hold))) if self.calls.answering(&run, &wanted, &ticket) => {
                refused = matches!(command, Command::OutOfBudget { .. });
                self.tell(&run, &wanted, command).await;
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%run, node = %wanted.node(), %error, "a call could not be made; trying again shortly")
            }
        }
        self.calls.finished(&run, &wanted, &ticket);
        if unasked {
            // Nobody else would: the run wants the call, and waits for it.
            self.timers.set(&run, self.clock.now().plus_millis(RETRY_MS));
        }
        if refused {
            self.ask_again(&run).await;
        }
    }

    /// The budget may have been extended before the refused call was forgotten: then it is still wanted, and this is who
    /// notices.
    async fn ask_again(&self, run: &RunId) {
        let Ok(live) = self.storage.live() else { return };
        let Ok(handle) = self.loader.handle(&live, run).await else { return };
        let active = handle.head().await.is_some_and(|head| *head.state.phase() == Phase::Active);
        if active && let Err(error) = self.commands.advance(run).await {
            tracing::warn!(%run, %error, "a run could not be woken after a refused call");
        }
    }

    /// The answer, unless nobody waits for it any more. An error means that nobody was asked: what the call follows from
    /// was lost, or could not be read.
    async fn ask(
        &self,
        chain: &WriteChain,
        run: &RunId,
        count: u64,
        wanted: &Wanted,
        ticket: &InFlightToken,
    ) -> Result<Option<(Command, Option<Reservation>)>, Error> {
        let tenant = self.until_durable(chain, run, count).await?;
        match wanted {
            Wanted::Model { node, visit, attempt, call, request, reasoning_chars, not_before, .. } => {
                if let Some(at) = not_before {
                    self.clock.until(*at).await;
                }
                let hold = match self.reserve_budget(run, request, (*visit, *attempt, *call)).await? {
                    CallPermission::Granted(hold) => hold,
                    CallPermission::Refused(command) => return Ok(Some((*command, None))),
                };
                let _turn = self.turns.turn(&request.semantic.provider, &tenant).await?;
                if self.calls.calling(run, wanted, ticket).is_none() {
                    return Ok(None);
                }
                let capped = capped(request, hold.as_ref().and_then(Reservation::cap));
                let request = capped.as_ref().unwrap_or(request);
                let (visit, attempt, call) = (*visit, *attempt, *call);
                let thinker = Thinker { run, node, visit, attempt, call };
                let listener = Listener::new(*reasoning_chars, &self.secrets);
                let reply = tokio::select! {
                    biased;
                    reply = self.call_model(request, &listener) => reply,
                    () = self.tell_thoughts(&listener, &thinker) => return Ok(None),
                };
                if reply.is_ok() {
                    self.tell_last_thought(&listener, &thinker).await;
                }
                let node = node.clone();
                let made = Box::new(Made { cap: request.cap, retried: listener.retried(request) });
                let command = match reply {
                    Ok(reply) => {
                        let cost_usd = self.cost(request, &reply);
                        Command::ModelReplied { node, visit, attempt, call, reply: Ok(reply), cost_usd, made }
                    }
                    Err(NoAnswer { fault, broken: None }) => {
                        Command::ModelReplied { node, visit, attempt, call, reply: Err(fault), cost_usd: None, made }
                    }
                    Err(NoAnswer { fault, broken: Some((usage, again)) }) => {
                        let usage = Some(usage).filter(|usage| usage.total() > 0);
                        let asked = &request.semantic;
                        let price = |usage: &Usage| cost(&self.options.prices, &asked.provider, &asked.model, usage);
                        let cost_usd = usage.as_ref().and_then(price);
                        Command::ModelBroke { node, visit, attempt, call, fault, again, usage, cost_usd, made }
                    }
                };
                Ok(Some((command, hold)))
            }
            Wanted::Tool(invocation) => {
                let whose = self.calls.calling(run, wanted, ticket);
                if let Some(whose) = &whose
                    && invocation.call.tool.id.starts_with(runner::PREFIX)
                    && !self.options.tools.is_shared(&invocation.call.tool.id)
                    && !invocation.simulated
                    && !invocation.call.verify
                {
                    let returned = self.call_runner(run, invocation, matches!(whose, Whose::Ours)).await?;
                    return Ok(Some((self.tools.tool_command(&invocation.call, returned), None)));
                }
                let returned = match whose {
                    None => return Ok(None),
                    Some(Whose::Ours) => self.tools.call_tool(run, invocation).await?,
                    Some(Whose::Anybodys) => {
                        Returned::Unknown { reason: "The host stopped while the call was open.".to_owned() }
                    }
                };
                Ok(Some((self.tools.tool_command(&invocation.call, returned), None)))
            }
        }
    }

    /// A call of a tool that a runner brings. One that another process began may still be with its runner.
    async fn call_runner(&self, run: &RunId, invocation: &ToolInvocation, first: bool) -> Result<Returned, Error> {
        if first {
            if let Some(refused) = self.tools.refused(invocation) {
                return Ok(refused);
            }
            self.tools.reaches_out(run);
        }
        self.runner_calls.call(run, invocation, first).await
    }

    /// Says whose run it is.
    async fn until_durable(&self, chain: &WriteChain, run: &RunId, count: u64) -> Result<TenantId, Error> {
        let live = self.storage.live()?;
        let handle = self.loader.handle(&live, run).await?;
        // Asked with the handle in hand: one that was loaded after the records were lost would have to get as far again.
        if chain.is_broken() {
            return Err(Error::unavailable("The records this follows from were lost."));
        }
        handle.durable(&live.ending, count).await?;
        Ok(handle.tenant.clone())
    }

    /// What a call cost, where the model that answered has a price, or the one that was asked.
    pub(crate) fn cost(&self, request: &ModelRequest, reply: &ModelReply) -> Option<f64> {
        let of = |model: &str| cost(&self.options.prices, &request.semantic.provider, model, &reply.usage);
        reply.model.as_deref().and_then(of).or_else(|| of(&request.semantic.model))
    }

    /// One call of one model, counted.
    pub(crate) async fn call_model(&self, request: &ModelRequest, ear: &dyn DeltaSink) -> Result<ModelReply, NoAnswer> {
        let name = request.semantic.provider.as_str();
        let Some(provider) = self.models.get(name) else {
            let message = format!("No model provider `{name}` is here to ask.");
            return Err(Fault::new(code::CAPABILITY_NOT_PROVIDED, message).into());
        };
        let (label, began) = (name.to_owned(), self.clock.now());
        let answer = provider.call(request, ear).await;
        self.connections.provider_asked(name, answer.as_ref().err());
        let seconds = self.clock.now().millis_since(began) as f64 / 1000.0;
        metrics::histogram!("baton_model_call_seconds", "provider" => label.clone()).record(seconds);
        let outcome = match &answer {
            Ok(reply) if reply.is_refusal() => "refused",
            Ok(_) => "answered",
            Err(fault) => fault.outcome(),
        };
        metrics::counter!("baton_model_calls_total", "provider" => label.clone(), "outcome" => outcome).increment(1);
        if let Ok(reply) = &answer {
            let tokens = |direction: &'static str, count: u64| {
                let name = "baton_model_tokens_total";
                metrics::counter!(name, "provider" => label.clone(), "direction" => direction).increment(count);
            };
            tokens("input", reply.usage.input_tokens);
            tokens("output", reply.usage.output_tokens);
        }
        answer.map(|reply| clean(reply, &self.secrets)).map_err(|fault| NoAnswer::of(&fault, request))
    }

    /// Hands an answer to its run. It has been paid for, so a disk in trouble is waited for, not answered by asking again.
    async fn tell(&self, run: &RunId, wanted: &Wanted, command: Command) {
        if let Err(error) = self.commands.tell_until_durable(run, command).await {
            tracing::warn!(%run, node = %wanted.node(), %error, "an answer could not be handed to its run");
        }
    }
}

/// The request with no more room for its answer than there is to pay for.
pub(crate) fn capped(request: &ModelRequest, cap: Option<u64>) -> Option<ModelRequest> {
    let semantic = Arc::new(request.semantic.capped(Some(cap?)).into_owned());
    Some(ModelRequest { semantic, cap, ..request.clone() })
}
