//! A live agent: briefed, asked, its tools called, its answer judged. Each answer and each result is recorded before
//! anybody judges it; what follows is decided from the record.
//!
//! ```text
//!  started ─► prompts ─► model ─┬─► tools wanted ─► called ─► returned ─┐   (`tool`, `unknown_outcome`)
//!                  ▲            │                                       │
//!                  └────────────┼───────────────────────────────────────┘
//!                               ├─► no good ─► asked again, or failed       (`answer`)
//!                               └─► decided ─► sure enough? ─► completed │ escalated
//! ```
//!
//! The bracket is closed by whoever says how it ended: the judge of the answer, or [`super::bracket::stop`] when something else ends
//! the attempt.

use baton_model::event::{
    AgentInvocationCompleted, AgentInvocationStarted, AgentPromptResolved, InvocationFacts, InvocationOutcome,
    NodeStarted, NodeStartedFacts, PromptComposed, ToolsMissing,
};
use baton_model::{Digest, Draft, Event, Fault, InvocationContext, Scope, Timestamp, code};
use serde_json::Value;

use super::node_records::place;
use super::{finish, handoff, node_records};
use crate::depth;
use crate::node_request::covers;
use crate::plan::Kind;
use crate::state::RunState;

/// Starts an attempt of an agent node.
pub(super) fn begin(
    state: &RunState,
    node: usize,
    attempt: u32,
    brief: &InvocationContext,
    at: Timestamp,
) -> Vec<Draft> {
    let plan = &state.plan.nodes[node];
    let visit = node_records::visit_of(state, node, attempt);
    let deadline = plan.timeout_ms.map(|ms| at.plus_millis(ms));
    let private = NodeStartedFacts { visit, deadline, ..NodeStartedFacts::default() };
    let started = NodeStarted { node_id: plan.id.clone(), type_id: plan.type_id.clone(), attempt, private };
    let mut drafts: Vec<Draft> = vec![Event::from(started).into()];
    drafts.extend(open(state, node, visit, attempt, brief));
    drafts
}

/// The bracket opens, and says where the prompts came from. It closes at once where the task is not what the agent was
/// made for.
pub(super) fn open(state: &RunState, node: usize, visit: u32, attempt: u32, brief: &InvocationContext) -> Vec<Draft> {
    let mut brief = brief.clone();
    // What cannot be read back must not get onto the log, whoever wrote it.
    brief.tools.retain(|tool| depth::check(&tool.id, &tool.input_schema).is_ok());
    let node_id = &state.plan.nodes[node].id;
    let card = &brief.card;
    let started = AgentInvocationStarted {
        invocation_id: id(state, node, visit, attempt),
        agent_id: card.agent_id.clone(),
        source: state.start.as_ref().and_then(|start| start.event.private.source).unwrap_or_default(),
        model_class: Some(card.model_class),
        resolved_provider: Some(brief.model.provider.clone()),
        resolved_model: Some(brief.model.model.clone()),
        resolved_agent_version: Some(card.pack_version.clone()),
        tool_surface_count: Some(u32::try_from(brief.tools.len()).unwrap_or(u32::MAX)),
        memory_bound: (card.memory.any() && remembers(state)).then_some(true),
        private: InvocationFacts { place: place(state, node), brief: None },
    };
    let handoffs = match &state.plan.nodes[node].kind {
        Kind::Agent(_) if attempt == 0 => handoff::taken_over(state, node, &card.agent_id),
        _ => Vec::new(),
    };
    // Whoever takes over says so before it begins; it did not hand over itself.
    let (before, mut drafts) = if state.rule() >= 4 { (handoffs, Vec::new()) } else { (Vec::new(), handoffs) };
    let missing = if state.rule() >= 4 { brief.missing_tools.clone() } else { Vec::new() };
    if !missing.is_empty() {
        let event = ToolsMissing {
            node_id: node_id.clone(),
            agent_id: card.agent_id.clone(),
            invocation_id: started.invocation_id.clone(),
            tools: missing.clone(),
        };
        drafts.push(Event::from(event).into());
    }
    for prompt in &brief.prompts {
        let event = AgentPromptResolved {
            node_id: node_id.clone(),
            kind: prompt.kind.clone(),
            chain: prompt.chain.clone(),
            resolved: prompt.resolved.clone(),
            agent_id: Some(card.agent_id.clone()),
        };
        drafts.push(Event::from(event).into());
        if let (Some(text), Some(source)) = (&prompt.text, &prompt.resolved) {
            // Of a node that works with what nobody should read, nobody reads the prompt either.
            let show = brief.show_prompts && !state.plan.nodes[node].sensitive;
            let shown = |wanted: bool| (show && wanted).then(|| text.clone());
            let event = PromptComposed {
                node_id: node_id.clone(),
                refs: vec![source.clone()],
                kind: match prompt.kind.as_str() {
                    "system" => "system-only",
                    "user" => "user-only",
                    _ => "agent-reasoning",
                }
                .to_owned(),
                hash: format!("sha256:{}", Digest::of_bytes(text)),
                variable_hashes: prompt.variable_hashes.clone(),
                content_trust: prompt.untrusted.then(|| "untrusted".to_owned()),
                composed: shown(true),
                system_prompt: shown(prompt.kind == "system"),
                user_prompt: shown(prompt.kind == "user"),
                variable_bindings: None,
            };
            drafts.push(Event::from(event).into());
        }
    }
    let toolless = || required_tools_missing(state, node, &card.agent_id, &missing);
    if let Some(fault) = unfit_task(state, &brief).or_else(toolless) {
        let event = AgentInvocationCompleted {
            invocation_id: started.invocation_id.clone(),
            agent_id: started.agent_id.clone(),
            outcome: InvocationOutcome::Failed,
            schema_validated: None,
            confidence: None,
            private: place(state, node),
        };
        drafts.push(Event::from(event).into());
        drafts.extend(finish::failed_for_good(state, node, attempt, fault));
    }
    let private = InvocationFacts { brief: Some(Box::new(brief)), ..started.private };
    let started = Event::from(AgentInvocationStarted { private, ..started });
    state.substitution(node).into_iter().chain(before).chain(std::iter::once(started.into())).chain(drafts).collect()
}

/// Whether agents of this run are reminded of anything: only where whoever started it might read it, too.
fn remembers(state: &RunState) -> bool {
    let held = state.start.as_ref().and_then(|start| start.event.private.tool_scopes.as_deref());
    state.rule() < 3 || covers(held, Scope::MemoryRead)
}

/// Why an agent does not begin that lacks tools: the node or the run wants it with all of them or not at all.
fn required_tools_missing(state: &RunState, node: usize, agent: &str, missing: &[String]) -> Option<Fault> {
    let node_says = state.plan.nodes[node].kind.agent_options().is_some_and(|options| options.require_tools);
    let run_says = state.configurable().get("requireTools") == Some(&Value::Bool(true));
    if missing.is_empty() || !(node_says || run_says) {
        return None;
    }
    let message = format!(
        "`{agent}` needs tools that this host does not have: {}. Set up what offers them, say under `[tool_aliases]` which \
         tools stand for them, or do not require them.",
        missing.join(", ")
    );
    Some(
        Fault::new(code::CAPABILITY_NOT_PROVIDED, message)
            .with("agentId", agent)
            .with("missingTools", missing.to_vec()),
    )
}

/// What is wrong with the task, told without a word of it: it may hold what nobody should read.
fn unfit_task(state: &RunState, brief: &InvocationContext) -> Option<Fault> {
    let fault = |why: String| {
        let message = format!("The task is not what `{}` takes: {why}.", brief.card.agent_id);
        Fault::new(code::HANDOFF_TASK_SCHEMA_VIOLATION, message)
    };
    match state.schemas.of(brief.card.task_schema.as_ref()?) {
        Err(error) => Some(fault(format!("its schema is broken ({error})"))),
        Ok(schema) => {
            let broken = schema.broken(&brief.task)?;
            let why = format!("{} breaks the rule {}", broken.place(), broken.rule);
            Some(fault(why).with("path", broken.path).with("rule", broken.rule))
        }
    }
}

fn id(state: &RunState, node: usize, visit: u32, attempt: u32) -> String {
    format!("{}:{}:{visit}:{attempt}", state.run, state.plan.nodes[node].id)
}
