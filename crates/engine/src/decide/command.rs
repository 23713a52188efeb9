//! Which decision answers which command.

use baton_model::{Draft, Timestamp};

use super::model_call::{self, Broken};
use super::{
    advance, budget, children, lifecycle, node_request, resolve, start, step_work, thought, tool, tool_progress,
};
use crate::command::{Command, Refusal};
use crate::state::RunState;

/// Says what happened because of `command`, or why nothing may.
pub fn decide(state: &RunState, command: &Command, at: Timestamp) -> Result<Vec<Draft>, Refusal> {
    state.meter.restart();
    let at = state.not_before(at);
    match command {
        Command::Start(start) => start::start(state, start),
        Command::Advance => Ok(advance::advance(state, at)),
        Command::ChildStarted { child } => Ok(children::started(state, child, None)),
        Command::RemoteStarted { remote } => Ok(children::started(state, &remote.place, Some(remote))),
        Command::ChildRefused { child, fault } => Ok(children::refused(state, child, fault, at)),
        Command::ChildStatus { child, status } => Ok(children::status(state, child, *status)),
        Command::ChildEnded { child, outcome } => Ok(children::ended(state, child, outcome, at)),
        Command::ModelReplied { node, visit, attempt, call, reply, cost_usd, made } => {
            Ok(model_call::replied(state, node, (*visit, *attempt, *call), reply, *cost_usd, made, at))
        }
        Command::ModelBroke { node, visit, attempt, call, fault, again, usage, cost_usd, made } => {
            let broken = Broken { fault, again: *again, usage: usage.as_ref(), cost_usd: *cost_usd };
            Ok(model_call::broke(state, node, (*visit, *attempt, *call), &broken, made, at))
        }
        Command::ModelThinks { node, visit, attempt, call, sequence, pieces } => {
            Ok(thought::told(state, node, (*visit, *attempt, *call), *sequence, pieces))
        }
        Command::Spent { node, spent } => Ok(budget::spent(state, node, spent)),
        Command::OutOfBudget { what, short } => Ok(budget::exhausted(state, what, short, at)),
        Command::BudgetDecided { node, extended } => Ok(budget::settled(state, node, *extended, at)),
        Command::ToolReturned { node, call_id, returned } => Ok(tool::returned(state, node, call_id, returned)),
        Command::RunnerAwaited { node, call_id, wait_for_runner_ms } => {
            Ok(tool_progress::awaited(state, node, call_id, *wait_for_runner_ms))
        }
        Command::ToolProgressed { node, call_id, progress, total, message } => {
            Ok(tool_progress::told(state, node, call_id, *progress, *total, message.as_deref()))
        }
        Command::StepAsked { node, call_id, asked } => step_work::asked(state, node, call_id, asked),
        Command::StepKept { node, call_id, key, value } => step_work::kept(state, node, call_id, key, value),
        Command::RequestAnswered { node_request, answer } => {
            Ok(node_request::answered(state, node_request, answer, at))
        }
        Command::SetVariables { variables } => lifecycle::set_variables(state, variables),
        Command::Resolve { node, interrupt, value, actor } => {
            resolve::resolve(state, node, interrupt.as_deref(), value, actor, at)
        }
        Command::Cancel { reason, by, parent } => {
            Ok(lifecycle::cancel(state, reason.as_deref(), by.as_deref(), parent.as_ref()))
        }
        Command::Pause { reason, drain } => lifecycle::pause(state, reason.as_deref(), *drain),
        Command::Resume { reason } => lifecycle::resume(state, reason.as_deref(), at),
    }
}
