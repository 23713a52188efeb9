//! An agent at work within one visit of a node: what it was briefed with, what has been said, and what it waits for.
//! Everything is folded from the log; what a model is asked next follows from it (see [`crate::conversation`]).

use std::sync::Arc;

use baton_model::event::Verbosity;
use baton_model::native::ENVELOPE;
use baton_model::tool::{SafetyTier, Transport};
use baton_model::{AgentCard, InvocationContext, ModelReply, NodeId, OutcomePolicy, ToolOutcome, ToolSpec, ToolUse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Kind;
use crate::schema::{Schema, SchemaCache};
use crate::step_work::StepWork;
use crate::transcript::Transcript;

/// What a summary of a thought may have: about 512 tokens.
const SUMMARY_CHARS: usize = 2048;
/// What is told of a thought piece by piece where all of it is wanted. The rest comes with the whole.
const TOLD_CHARS: usize = 64 * 1024;
/// In how many pieces at most.
pub(crate) const TOLD_PIECES: u32 = 512;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Invocation {
    pub(crate) id: String,
    pub(crate) brief: Arc<InvocationContext>,
    /// The numbered behaviour of its run.
    pub(crate) rule: u32,
    /// For a supervisor: what it is told of the turns before.
    pub(crate) transcript: Option<Transcript>,
    /// Rounds of tool calls; the last one may be under way.
    pub(crate) rounds: Vec<Round>,
    pub(crate) over: bool,
    /// The thought that is being told, if one is.
    pub(crate) thinking: Thinking,
    /// It has said what it thought, once at least.
    pub(crate) reasoned: bool,
}

/// A thought as far as it was told piece by piece.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Thinking {
    pub(crate) pieces: u32,
    pub(crate) text: String,
}

impl Thinking {
    /// Pieces were told, and not yet the whole.
    pub(crate) fn is_open(&self) -> bool {
        self.pieces > 0
    }
}

/// What a model said when it wanted tools called, and what came of the calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Round {
    pub(crate) reply: Arc<ModelReply>,
    pub(crate) calls: Vec<Call>,
}

/// One call of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    /// The record that announced it, which causes the one that ends it; none for a call that was never made.
    pub(crate) seq: Option<u64>,
    pub(crate) asked: ToolUse,
    pub(crate) outcome: Option<ToolOutcome>,
    /// Nobody knows whether it took place, and this is what is done about it.
    pub(crate) unknown: Option<OutcomePolicy>,
    /// How often it was taken up again.
    pub(crate) again: u32,
    /// It is being looked up instead of made.
    pub(crate) verify: bool,
    /// It was taken up again while the run was paused, and is made when the run goes on.
    pub(crate) waits: bool,
    /// It was said that no runner has taken it yet.
    pub(crate) told_waiting: bool,
    /// What the program that makes it has asked and kept.
    #[serde(default)]
    pub(crate) work: StepWork,
}

impl Call {
    pub(crate) fn open(id: String, seq: u64, asked: ToolUse) -> Self {
        Self {
            id,
            seq: Some(seq),
            asked,
            outcome: None,
            unknown: None,
            again: 0,
            verify: false,
            waits: false,
            told_waiting: false,
            work: StepWork::default(),
        }
    }

    /// It is to be made, or on its way.
    pub(crate) fn is_wanted(&self) -> bool {
        self.outcome.is_none() && self.unknown.is_none()
    }

    /// It is addressed to the host and the people around the agent, not to a tool.
    pub(crate) fn is_envelope(&self) -> bool {
        self.asked.name == ENVELOPE
    }

    /// Nobody has said yet what becomes of it.
    pub(crate) fn is_unknown(&self) -> bool {
        self.outcome.is_none() && self.unknown.is_some()
    }
}

/// An open call, and the tool it is a call of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenCall<'a> {
    pub(crate) call: &'a Call,
    pub(crate) tool: &'a ToolSpec,
}

impl OpenCall<'_> {
    /// It lives outside the process, so it may take place without anybody here hearing of it.
    pub(crate) fn is_external(&self) -> bool {
        self.tool.transport != Transport::Native
    }

    /// Doing it twice would do harm, as far as anybody knows.
    pub(crate) fn changes_the_world(&self) -> bool {
        self.is_external() && self.tool.tier > SafetyTier::Read
    }
}

impl Invocation {
    pub(crate) fn new(id: String, brief: InvocationContext, rule: u32, transcript: Option<Transcript>) -> Self {
        Self {
            id,
            brief: Arc::new(brief),
            rule,
            transcript,
            rounds: Vec::new(),
            over: false,
            thinking: Thinking::default(),
            reasoned: false,
        }
    }

    pub(crate) fn card(&self) -> &AgentCard {
        &self.brief.card
    }

    pub(crate) fn tool(&self, id: &str) -> Option<&ToolSpec> {
        self.brief.tools.iter().find(|tool| tool.id == id)
    }

    /// Calls that have not come back, of the round under way.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Call> {
        let last = self.rounds.last().into_iter();
        last.flat_map(|round| round.calls.iter().filter(|call| call.outcome.is_none()))
    }

    pub(crate) fn call_mut(&mut self, id: &str) -> Option<&mut Call> {
        self.rounds.last_mut()?.calls.iter_mut().find(|call| call.id == id)
    }

    /// A model's words are wanted: nothing is on its way back.
    pub(crate) fn asks_model(&self) -> bool {
        !self.over && self.pending().next().is_none()
    }

    /// The schema an answer is held against: what a supervisor must decide, or what the manifest says.
    pub(crate) fn answer_schema<'a>(&'a self, kind: &'a Kind) -> Option<&'a Value> {
        match kind {
            Kind::Supervisor(_) => Some(crate::plan::decision_schema(self.rule)),
            _ => self.card().return_schema.as_ref(),
        }
    }

    /// Whether an answer that counts is one that the manifest promises. Once a supervisor's decision was taken for that.
    pub(crate) fn promised(&self, kind: &Kind, rule: u32) -> bool {
        match rule {
            ..3 => self.answer_schema(kind).is_some(),
            _ => self.card().return_schema.is_some(),
        }
    }

    /// What a supervisor's manifest has against its decision. The decision counts by itself, or with what the host asks
    /// for besides: how sure the agent is, and why.
    pub(crate) fn objection(
        &self,
        answer: &Value,
        decision: &Value,
        schemas: &SchemaCache,
    ) -> Result<Option<String>, String> {
        let Some(schema) = &self.card().return_schema else { return Ok(None) };
        let schema = schemas.of(schema)?;
        let mut whole = decision.clone();
        for name in ["reasoning", "agentConfidence"] {
            if let Some(aside) = answer.get(name).filter(|aside| !aside.is_null()) {
                whole[name] = aside.clone();
            }
        }
        Ok(schema.broken_rule(decision).and_then(|_| schema.broken_rule(&whole)))
    }

    pub(crate) fn answer_shape(&self, kind: &Kind, schemas: &SchemaCache) -> Option<Result<Arc<Schema>, String>> {
        self.answer_schema(kind).map(|schema| schemas.of(schema))
    }
}

/// A thought, as far as the run wants to know.
pub(crate) fn thought(text: &str, verbosity: Verbosity) -> Option<String> {
    match verbosity {
        Verbosity::Off => None,
        Verbosity::Full => Some(text.to_owned()),
        Verbosity::Summary => Some(match text.char_indices().nth(SUMMARY_CHARS) {
            None => text.to_owned(),
            Some((end, _)) => format!("{}…", &text[..end]),
        }),
    }
}

/// How much of a thought is told while it is being thought.
pub(crate) const fn told(verbosity: Verbosity) -> usize {
    match verbosity {
        Verbosity::Off => 0,
        Verbosity::Summary => SUMMARY_CHARS,
        Verbosity::Full => TOLD_CHARS,
    }
}

/// The id of a call: its place in the run. Of an agent's, `attempt` is the one that began the conversation.
pub(crate) fn call_id(node: &NodeId, visit: u32, attempt: u32, round: usize, place: usize) -> String {
    format!("{node}:{visit}:{attempt}:{round}:{place}")
}
