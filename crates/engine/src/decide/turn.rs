//! The supervisor's turn. Entry checks the bound before anything runs; one execution makes exactly one decision; a
//! decision that is not sure enough is held, off the log, until a human ratifies it.
//!
//! ```text
//!  TURN(i) ──decide──► sure enough? ──yes──► decided(i) ──► dispatch
//!     ▲                     │ no                 ▲
//!     │ refine              ▼                    │ accept, edit-accept
//!     └───────────── held, interrupt ────────────┘        reject, timeout ──► failed
//! ```

use std::collections::BTreeMap;

use baton_model::event::{NodeStarted, NodeStartedFacts, OrchestratorDecided, TurnTranscript};
use baton_model::{Decision, Draft, Event, Fault, InvocationContext, Timestamp, TurnSnapshot, code};
use serde_json::{Map, Value, json};

use super::caps::too_many_turns;
use super::held_decision::{escalated, held, place};
use super::low_confidence::{Unsure, low_confidence};
use super::{finish, invocation, node_records, request, suspend, transcript};
use crate::eval_context::EvalContext;
use crate::expr::Scope as _;
use crate::node_request::TurnContext;
use crate::nodes::{Done, LowConfidence};
use crate::plan::{Kind, Supervisor};
use crate::state::RunState;
use crate::transcript::Transcript;

/// Comes to turn `i`, or to the same turn again. What it sees is asked for first, unless that is known already.
pub(super) fn enter(state: &RunState, node: usize, supervisor: &Supervisor, attempt: u32, at: Timestamp) -> Vec<Draft> {
    if let Some(drafts) = too_many_turns(state, node) {
        return drafts;
    }
    if let Some(turn_context) = known_view(state, node, supervisor, attempt) {
        return begin(state, node, supervisor, attempt, &turn_context, at);
    }
    // It starts when the answer comes; one that cannot even ask starts and fails.
    let visit = node_records::visit_of(state, node, attempt);
    match request::request(state, node, visit, attempt, at) {
        Ok(_) => Vec::new(),
        Err(fault) => finish::started_and_failed(state, node, visit, attempt, fault),
    }
}

/// What a turn sees when nobody has to be asked: it is taken again and looks at neither memory nor workspace, or its
/// agent was briefed already.
pub(super) fn known_view(state: &RunState, node: usize, supervisor: &Supervisor, attempt: u32) -> Option<TurnContext> {
    let frozen = state.nodes[node].snapshot.filter(|_| attempt > 0)?;
    if supervisor.is_agent() {
        let brief = &state.nodes[node].invocation.as_ref()?.brief;
        return Some(TurnContext {
            versions: frozen.versions,
            memory: brief.memory.clone(),
            workspace: BTreeMap::new(),
            brief: Some(Box::new((**brief).clone())),
        });
    }
    let blind = !supervisor.reads_memory && !supervisor.reads_workspace;
    blind.then(|| TurnContext { versions: frozen.versions, ..TurnContext::default() })
}

/// Takes turn `i` with what it sees, which is frozen from here on: a turn taken again sees the same.
pub(super) fn begin(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    attempt: u32,
    turn_context: &TurnContext,
    at: Timestamp,
) -> Vec<Draft> {
    let turn = state.turns + 1;
    let plan = &state.plan.nodes[node];
    let visit = node_records::visit_of(state, node, attempt);
    let first_sight = TurnSnapshot { versions: turn_context.versions, at };
    let frozen = state.nodes[node].snapshot.filter(|_| attempt > 0).unwrap_or(first_sight);
    let mut turn_context = turn_context.clone();
    turn_context.memory.retain(|entry| !entry.is_expired(frozen.at));
    // Rules decide at once; an agent may take its time, as much as there is.
    let deadline = plan.timeout_ms.filter(|_| supervisor.is_agent()).map(|ms| at.plus_millis(ms));
    // A turn that is taken again was told already what it is told.
    let told = if attempt == 0 { transcript::turn(state, node, supervisor) } else { None };
    let private = NodeStartedFacts {
        visit,
        deadline,
        frozen: Some(frozen),
        transcript: told.clone(),
        ..NodeStartedFacts::default()
    };
    let started = NodeStarted { node_id: plan.id.clone(), type_id: plan.type_id.clone(), attempt, private };
    let mut drafts: Vec<Draft> = vec![Event::from(started).into()];
    let mut context = EvalContext::new(state, node, visit, attempt, Map::new(), false, at);
    context.turn = Some(turn);
    context.feedback = state.nodes[node].refine.clone();
    context.turn_context = Some(&turn_context);
    if supervisor.reads_transcript && state.context().is_some() {
        context.transcript = Some(seen(state, told.as_deref()));
    }
    match supervisor.decide(turn, &context) {
        Ok(Some(decision)) => {
            // The escalation is caused by the turn's own start, which is the first record of this step.
            let cause = state.next_seq;
            let threshold = state.threshold(None);
            let unsure = supervisor.agent_confidence(turn).filter(|confidence| *confidence < threshold);
            let unsure = unsure.map(|observed| Unsure { observed, threshold });
            drafts.extend(judge(state, node, supervisor, &context, decision, unsure, cause, at));
        }
        Ok(None) => match turn_context.brief.as_deref() {
            Some(brief) => match situation(&context, brief) {
                Ok(situation) => {
                    let mut brief =
                        InvocationContext { situation, memory: turn_context.memory.clone(), ..brief.clone() };
                    if let (Some(origins), Some(Value::Object(told)), 0) =
                        (&mut brief.origins, brief.situation.get("variables"), attempt)
                    {
                        origins.variables = state.origins_of(told.keys());
                    }
                    drafts.extend(invocation::open(state, node, visit, attempt, &brief));
                }
                Err(fault) => drafts.extend(finish::failed(state, node, attempt, fault, at)),
            },
            None => drafts.extend(finish::failed_for_good(state, node, attempt, crate::nodes::wrong_answer())),
        },
        Err(fault) => drafts.extend(finish::failed(state, node, attempt, fault, at)),
    }
    drafts
}

/// The transcript as the turn sees it, whose start is not folded yet.
fn seen(state: &RunState, told: Option<&TurnTranscript>) -> Transcript {
    let mut transcript = state.transcript.clone();
    if let Some(change) = told {
        transcript.take(change);
    }
    transcript
}

/// Takes a live supervisor's decision. `unsure` is set where its agent is not sure enough of itself; that is the agents'
/// own rule, beside the decision's.
pub(super) fn take(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    decision: Decision,
    unsure: Option<Unsure>,
    at: Timestamp,
) -> Vec<Draft> {
    let run = &state.nodes[node];
    let context = EvalContext::new(state, node, run.visit, run.attempt, Map::new(), false, at);
    judge(state, node, supervisor, &context, decision, unsure, run.started_seq, at)
}

/// What a live supervisor sees: the frozen turn, told as data. A turn that is taken again is told the same, and what a
/// human wants changed.
fn situation(context: &EvalContext<'_>, brief: &InvocationContext) -> Result<Map<String, Value>, Fault> {
    let state = context.state;
    let mut all = brief.situation.clone();
    if context.attempt > 0 {
        all.extend(context.feedback.clone().map(|feedback| ("feedback".to_owned(), feedback)));
        return Ok(all);
    }
    for name in ["iteration", "variables", "children"] {
        let value = match name {
            // What workers failed of is told in the transcript, in a fence: it is theirs to say.
            "children" => Some(context.children(false)),
            _ => context.lookup(name),
        };
        let Some(value) = value else { continue };
        let most = state.bounds().max_run_bytes;
        let known = value.plain(most).map_err(|_| {
            let message = format!("The supervisor's `{name}` have more than {most} bytes (`max_run_bytes`).");
            Fault::new(code::EXPRESSION_TOO_COSTLY, message).with("limit", most).with("bound", "max_run_bytes")
        })?;
        all.extend(known.filter(|value| !value.is_null()).map(|value| (name.to_owned(), value)));
    }
    if let Kind::Supervisor(supervisor) = &state.plan.nodes[context.node].kind {
        all.extend(supervisor.workers.clone().map(|workers| ("workers".to_owned(), workers)));
    }
    if let Some(Value::Object(variables)) = all.get_mut("variables") {
        variables.retain(|name, _| !state.plan.is_sensitive(name));
    }
    if !state.decisions.is_empty() {
        all.insert("decisions".to_owned(), json!(state.decisions));
    }
    if let Some(turn_context) = context.turn_context.filter(|turn_context| !turn_context.workspace.is_empty()) {
        let files: Vec<Value> = turn_context
            .workspace
            .iter()
            .map(|(path, file)| json!({"path": path, "version": file.meta.version, "content": excerpt(&file.content)}))
            .collect();
        all.insert("workspace".to_owned(), files.into());
    }
    Ok(all)
}

/// The beginning of a file: a supervisor that needs the rest has a tool for it.
fn excerpt(content: &str) -> String {
    const MOST_CHARS: usize = 2000;
    content.chars().take(MOST_CHARS).collect()
}

/// Lets a decision through, or holds it.
#[expect(clippy::too_many_arguments, reason = "one judgement, made in two places")]
fn judge(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    context: &EvalContext<'_>,
    decision: Decision,
    agent_unsure: Option<Unsure>,
    cause: u64,
    at: Timestamp,
) -> Vec<Draft> {
    let rule = state.escalation();
    let unsure = decision.confidence().filter(|confidence| *confidence < rule.floor);
    let mut drafts = Vec::new();
    let ask = match (unsure, agent_unsure) {
        (None, None) => return decided(state, node, supervisor, decision, at),
        (Some(confidence), _) => {
            drafts.push(escalated(state, node, supervisor, &decision, confidence, &rule, cause));
            let low =
                LowConfidence { agent_id: supervisor.agent_id.clone(), threshold: rule.floor, observed: confidence };
            held(state, supervisor, &decision, rule.interrupt, low)
        }
        (None, Some(agent_unsure)) => {
            low_confidence(&supervisor.agent_id, &json!(decision), agent_unsure, supervisor.hold_timeout_ms)
        }
    };
    drafts.extend(suspend::suspend(
        state,
        node,
        &suspend::key(context.node_id(), context.visit, context.attempt),
        ask,
        at,
    ));
    drafts
}

/// The turn's one decision goes on the log, and the supervisor is done for this turn.
pub(super) fn decided(
    state: &RunState,
    node: usize,
    supervisor: &Supervisor,
    decision: Decision,
    at: Timestamp,
) -> Vec<Draft> {
    let iteration = state.turns + 1;
    let outputs = [("decision".to_owned(), json!(decision)), ("iteration".to_owned(), json!(iteration))];
    let event = OrchestratorDecided {
        agent_id: supervisor.agent_id.clone(),
        decision,
        iteration,
        private: place(state, node, supervisor),
    };
    let mut drafts: Vec<Draft> = vec![Event::from(event).into()];
    drafts.extend(finish::complete(state, node, Done::with(outputs.into_iter().collect()), at));
    drafts
}
