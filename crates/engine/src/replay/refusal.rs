//! Answering where the source refused, and refusing where it answered. A model's recorded answer is taken as it stands,
//! with one exception: a provider that lives in the process costs nothing to ask again, and is. Only whether it answers
//! is compared, not what. Where that differs, neither can stand for the other and the replay fails.

use baton_model::event::{DivergenceKind, EnvelopeKind, ProviderUsage, ReplayDivergedAtRefusal};
use baton_model::{Draft, Event, EventId, Fault, ModelReply, ModelRequest, NodeId, Record, code};

use super::{Course, Difference, Next, Replay};
use crate::decide::verdict;
use crate::effect::{Effect, outstanding};
use crate::envelope::Verdict;
use crate::plan::Kind;
use crate::state::RunState;

/// The provider that is asked again.
const IN_PROCESS: &str = "mock";

/// A call of the source that can be made again before its recorded answer is taken.
#[derive(Clone, Debug)]
pub struct Question {
    /// Where the source recorded the answer.
    pub seq: u64,
    pub request: Box<ModelRequest>,
}

impl Replay {
    /// What may be asked again before the next step; whoever does hands the answer to [`Replay::heard`]. A replay that
    /// is never told goes by the record alone.
    pub fn question(&self, state: &RunState, window: &[Record]) -> Option<Question> {
        let record = window.first().filter(|_| self.course == Course::Aligned)?;
        let usage = asked_in_process(record)?;
        if self.heard.is_some_and(|(seq, _)| seq == record.seq) || state.plan().is_nondeterministic(&usage.node_id) {
            return None;
        }
        let facts = &usage.private;
        outstanding(state).into_iter().find_map(|effect| match effect {
            Effect::CallModel { node, visit, attempt, call, request, .. }
                if node == usage.node_id && (visit, attempt, call) == (facts.visit, facts.attempt, facts.call) =>
            {
                Some(Question { seq: record.seq, request })
            }
            _ => None,
        })
    }

    /// What was said this time; nothing, when there was no answer to compare.
    pub fn heard(&mut self, state: &RunState, question: &Question, reply: Option<&ModelReply>) {
        let kind = reply.and_then(|reply| envelope_kind(state, &question.request.node, reply));
        self.heard = Some((question.seq, kind));
    }

    /// The end of the replay, if this record's answer and what was heard are not of one kind.
    pub(super) fn refusal(&mut self, state: &RunState, record: &Record) -> Option<Next> {
        let (_, replayed) = self.heard.filter(|(seq, _)| *seq == record.seq)?;
        let usage = asked_in_process(record)?;
        let node_id = &usage.node_id;
        let original = envelope_kind(state, node_id, usage.private.reply.as_ref()?)?;
        let replayed = replayed.filter(|kind| *kind != original)?;
        let event = ReplayDivergedAtRefusal {
            source_run_id: self.source.clone(),
            at_sequence: record.seq,
            original_event_id: Some(EventId::at(&self.source, record.seq)),
            node_id: node_id.clone(),
            original_envelope_kind: original,
            replay_envelope_kind: replayed,
        };
        let fault = Fault::new(
            code::REPLAY_DIVERGED_AT_REFUSAL,
            format!("The model's answer was {} in the source and is {} now.", word(original), word(replayed)),
        )
        .with("sourceRunId", self.source.as_str())
        .with("atSequence", record.seq)
        .with("nodeId", node_id.as_str())
        .with("originalEnvelopeKind", original.as_str())
        .with("replayEnvelopeKind", replayed.as_str());
        let (seq, kind) = (record.seq, DivergenceKind::Output);
        let found = Difference { seq, kind, original: Some(record.event.clone()), replayed: None };
        self.difference.get_or_insert(found);
        self.course = Course::Closing;
        self.next += 1;
        let mut drafts = vec![Draft::from(Event::from(event))];
        drafts.extend(crate::decide::give_up_at(state, node_id, fault));
        Some(Next::Append { drafts, at: record.at, outside: true })
    }
}

const fn word(kind: EnvelopeKind) -> &'static str {
    match kind {
        EnvelopeKind::Valid => "valid",
        EnvelopeKind::Refusal => "a refusal",
    }
}

fn asked_in_process(record: &Record) -> Option<&ProviderUsage> {
    match &record.event {
        Event::ProviderUsage(usage) => {
            // What a step's own program asked is no answer that the node judges.
            let judged = usage.private.reply.is_some() && usage.private.step.is_none();
            (usage.provider == IN_PROCESS && judged).then_some(usage)
        }
        _ => None,
    }
}

/// What a node makes of an answer, as far as that can be compared: one that is neither good nor a refusal claims
/// nothing.
fn envelope_kind(state: &RunState, node: &NodeId, reply: &ModelReply) -> Option<EnvelopeKind> {
    let node = *state.plan.index.get(node)?;
    let verdict = match (&state.plan.nodes[node].kind, state.invocation(node)) {
        (Kind::StructuredOutput(call), _) => call.judge(reply, state.rule()),
        // A model that says nothing at all has nothing prepared to say.
        (_, Some(_)) if reply.content.is_empty() && reply.tools.is_empty() && !reply.is_refusal() => return None,
        (kind, Some(invocation)) => verdict(invocation, kind, reply, &state.schemas).ok()?,
        (_, None) => return None,
    };
    match verdict {
        Verdict::Fits { .. } => Some(EnvelopeKind::Valid),
        Verdict::Refused => Some(EnvelopeKind::Refusal),
        Verdict::Unfit(_) => None,
    }
}
