//! What an agent says to the host and to the people around it: an envelope, in a call of a tool that is nobody's. The
//! engine judges it like any other and answers the call.
//!
//! ```text
//!  called ─► judged ─┬─ a question to people ──► the node waits ──► returned with their answers
//!                    ├─ anything else that is taken ─► noted ─────► returned
//!                    ├─ not taken ────────────────────────────────► returned with what is wrong
//!                    └─ one too many ─────────────────────────────► the node fails
//! ```

use std::collections::BTreeMap;

use baton_model::event::{
    CONTENT_TRUST, CapBreached, CapKind, ClarificationResolved, LogAppended, Outcome as Answered, Words,
};
use baton_model::native::ENVELOPE_SCHEMA_VERSION;
use baton_model::{Draft, Event, EventId, Fault, Timestamp, ToolOutcome, Trust, TurnBounds, code};
use serde_json::{Map, Value, json};

use super::human_answer::Answer;
use super::{finish, human_answer, suspend, tool_records};
use crate::acceptor::{
    Consequence, Counter, Counters, Earlier, Host, Kinds, Limit, Offer, Outcome, Place, RefusalMode, Strictness,
    UNIVERSAL, accept, adopt, consequences,
};
use crate::command::Refusal;
use crate::invocation::{Call, Invocation};
use crate::nodes::Ask;
use crate::state::RunState;

/// What becomes of an envelope that was announced.
pub(super) fn handled(state: &RunState, node: usize, call: &Call, at: Timestamp) -> Vec<Draft> {
    let Some(invocation) = state.invocation(node) else { return Vec::new() };
    let returned = |outcome: ToolOutcome| tool_records::settled(state, node, call, outcome, &[]);
    if state.plan.nodes[node].sensitive {
        let message = "This node works with what nobody should read, so nothing is said about it. Go on without.";
        return returned(ToolOutcome::failed(code::FORBIDDEN, message));
    }
    let envelope = adopted(state, node, invocation, call, at);
    let kind = envelope["type"].as_str().unwrap_or_default();
    let before = Before::of(invocation, call);
    let counters = before.counters(invocation.brief.bounds);
    let versions: BTreeMap<String, u64> =
        UNIVERSAL.iter().map(|kind| ((*kind).to_owned(), ENVELOPE_SCHEMA_VERSION)).collect();
    let host = Host {
        enabled: true,
        supported: &[],
        versions: &versions,
        strictness: Strictness::Warn,
        kinds: Kinds::shared(),
    };
    // Secrets are out of an answer before the engine sees it.
    let offer =
        Offer { counters, boundary: Some(Trust::Untrusted), earlier: Some(&before.earlier), ..Offer::default() };
    let judgement = accept(&envelope, &host, &offer);
    if !judgement.fresh {
        // The same answer as before; nothing happens a second time.
        let correlation = envelope["correlationId"].as_str().unwrap_or_default();
        return returned(
            before.outcomes.get(correlation).map_or_else(|| ToolOutcome::ok(Value::Null), |o| (*o).clone()),
        );
    }
    match &judgement.outcome {
        Outcome::Accepted { .. } | Outcome::Breached { .. } => {}
        Outcome::Invalid { reason, .. } | Outcome::Gated { reason, .. } => {
            let counts = judgement.counts.contains(&Limit::SchemaRounds);
            if let Some(spent) = counters.spent(Limit::SchemaRounds).filter(|_| counts) {
                return breached(state, node, call, CapKind::Schema, spent.cap, at);
            }
            return returned(ToolOutcome::failed(code::ENVELOPE_INVALID, told(reason, &judgement.outcome)));
        }
    }
    let mut drafts = Vec::new();
    let mut result = json!({"status": judgement.outcome.status()});
    for consequence in consequences(kind, &judgement, RefusalMode::FailNode) {
        match consequence {
            Consequence::Clarify { questions, context_type } => {
                return asks(state, node, invocation, call, questions, context_type, at);
            }
            Consequence::Log { level, message, data } => {
                let mut fields =
                    Map::from_iter([("envelopeType".to_owned(), json!(kind)), ("payload".to_owned(), data)]);
                if state.rule() >= 4 {
                    fields.insert(CONTENT_TRUST.to_owned(), Trust::Untrusted.as_str().into());
                }
                let node_id = state.plan.nodes[node].id.clone();
                let event = LogAppended { level: level.as_str().to_owned(), message, node_id, fields };
                drafts.push(Draft { event: event.into(), causation: call.seq });
            }
            Consequence::TeachSchema { kind } => {
                result["schema"] = Kinds::shared().schema(&kind).cloned().unwrap_or_default();
            }
            Consequence::CapBreached { kind, limit, .. } => {
                let kind = match kind.as_str() {
                    "clarification" => CapKind::Clarification,
                    "schema" => CapKind::Schema,
                    _ => CapKind::Envelopes,
                };
                return breached(state, node, call, kind, limit, at);
            }
            Consequence::NodeFailed(fault) => return finish::fail(state, node, fault, at),
        }
    }
    drafts.extend(returned(ToolOutcome::ok(result)));
    drafts
}

/// The envelope that the arguments are, with what only the host can know.
fn adopted(state: &RunState, node: usize, invocation: &Invocation, call: &Call, at: Timestamp) -> Value {
    let mut value = call.asked.arguments.clone();
    // What follows from it is caused by the record that announced it, and that is what it is correlated by.
    if let (Value::Object(envelope), Some(seq)) = (&mut value, call.seq) {
        envelope.entry("correlationId").or_insert_with(|| json!(EventId::at(&state.run, seq)));
        envelope.entry("schemaVersion").or_insert_with(|| ENVELOPE_SCHEMA_VERSION.into());
    }
    let last = invocation.rounds.last();
    let ordinal = last.and_then(|round| round.calls.iter().position(|other| other.id == call.id)).unwrap_or(0);
    let place = Place {
        run: &state.run,
        node: &state.plan.nodes[node].id,
        turn: u32::try_from(invocation.rounds.len()).unwrap_or(u32::MAX),
        ordinal: u32::try_from(ordinal).unwrap_or(u32::MAX),
    };
    adopt(value, &place, at)
}

/// What the agent has said before, in this invocation.
struct Before<'a> {
    earlier: BTreeMap<String, Earlier>,
    outcomes: BTreeMap<String, &'a ToolOutcome>,
    asked: u64,
    schema_rounds: u64,
    this_turn: u64,
}

impl<'a> Before<'a> {
    fn of(invocation: &'a Invocation, call: &Call) -> Self {
        let (mut earlier, mut outcomes) = (BTreeMap::new(), BTreeMap::new());
        let (mut asked, mut schema_rounds, mut this_turn) = (0, 0, 0);
        for (round, calls) in invocation.rounds.iter().map(|round| &round.calls).enumerate() {
            for (other, outcome) in calls
                .iter()
                .filter(|other| other.is_envelope() && other.id != call.id)
                .filter_map(|other| Some((other, other.outcome.as_ref()?)))
            {
                let text = |key: &str| other.asked.arguments.get(key).and_then(Value::as_str).map(str::to_owned);
                let kind = text("type").unwrap_or_default();
                let taken = outcome.error.is_none();
                asked += u64::from(taken && kind == "clarification.request");
                schema_rounds += u64::from(!taken || kind == "schema.request");
                this_turn += u64::from(round + 1 == invocation.rounds.len());
                if let Some(correlation) = text("correlationId") {
                    // What it was is in the record of its call.
                    let outcome_of = Outcome::Invalid { reason: String::new(), details: Vec::new() };
                    earlier.insert(correlation.clone(), Earlier { envelope_type: kind, outcome: outcome_of });
                    outcomes.insert(correlation, outcome);
                }
            }
        }
        Self { earlier, outcomes, asked, schema_rounds, this_turn }
    }

    fn counters(&self, bounds: TurnBounds) -> Counters {
        let counter = |current: u64, cap: u32| Some(Counter { current, cap: cap.into() });
        Counters {
            envelopes_per_turn: counter(self.this_turn, bounds.envelopes_per_turn),
            schema_rounds: counter(self.schema_rounds, bounds.schema_rounds),
            clarification_rounds: counter(self.asked, bounds.clarification_rounds),
        }
    }
}

/// What is wrong, in words for the model that wrote it.
fn told(reason: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Invalid { details, .. } if !details.is_empty() => {
            let details = details.iter().map(|violation| {
                let place = if violation.instance_path.is_empty() { "it" } else { &violation.instance_path };
                format!("{place} breaks the rule {}", violation.schema_path)
            });
            format!("{reason}: {}.", details.collect::<Vec<_>>().join("; "))
        }
        Outcome::Gated { allowed_kinds, .. } => format!("{reason}. Use one of {}.", allowed_kinds.join(", ")),
        _ => format!("{reason}."),
    }
}

/// People are asked, and the node waits for them.
fn asks(
    state: &RunState,
    node: usize,
    invocation: &Invocation,
    call: &Call,
    questions: Value,
    context_type: Option<String>,
    at: Timestamp,
) -> Vec<Draft> {
    let mut data = json!({"questions": questions, "agentId": invocation.card().agent_id, "callId": call.id});
    if let Some(context) = context_type {
        data["contextType"] = context.into();
    }
    let drafts = suspend::suspend(state, node, &call.id, Ask::new("clarification", data), at);
    drafts.into_iter().map(|draft| Draft { causation: call.seq, ..draft }).collect()
}

/// People have answered: the agent goes on with what they said.
pub(super) fn answered(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, actor, .. } = answer;
    let answers = human_answer::answers(&answer)?;
    let Some(call) = state.asked_in_envelope(node, interrupt) else {
        return Err(Refusal::invalid("Nobody waits for this answer any more."));
    };
    let by = actor.subject.clone();
    let mut drafts = answer.closes(by.as_deref(), Answered::Answered);
    let node_id = state.plan.nodes[node].id.clone();
    drafts.push(
        Event::from(ClarificationResolved {
            node_id,
            answers: answers.clone(),
            answered_by: by,
            private: Words::default(),
        })
        .into(),
    );
    drafts.extend(tool_records::settled(state, node, call, ToolOutcome::ok(json!({"answers": answers})), &[]));
    Ok(drafts)
}

/// One too many: the agent is stopped.
fn breached(state: &RunState, node: usize, call: &Call, kind: CapKind, limit: u64, at: Timestamp) -> Vec<Draft> {
    let node_id = Some(state.plan.nodes[node].id.clone()).filter(|_| kind != CapKind::Envelopes);
    let event = CapBreached { kind, limit: limit.into(), observed: limit.saturating_add(1).into(), node_id };
    let mut drafts = vec![Draft { event: event.into(), causation: call.seq }];
    let fault = Fault::new(code::CAP_BREACHED, "The agent went on for too long: it sent more envelopes than it may.")
        .with("kind", json!(kind))
        .with("limit", limit)
        .with("observed", limit.saturating_add(1));
    drafts.extend(finish::fail(state, node, fault, at));
    drafts
}
