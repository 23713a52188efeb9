//! Going through a log again. What the engine decided by itself is decided again and compared; what the world said
//! is taken as it stands. So no model, tool, child, human or clock is asked, and the first thing that this build does
//! otherwise shows.

mod refusal;

pub use refusal::Question;

use baton_model::event::{DivergenceKind, Ending, EnvelopeKind, ReplayDiverged, RunFailed};
use baton_model::{Draft, Event, EventId, Fault, Part, Record, RunId, RunStatus, Timestamp, code};
use serde_json::Map;

use crate::apply::apply;
use crate::command::{ChildOutcome, Command};
use crate::decide::decide;
use crate::effect::{Effect, outstanding};
use crate::fold::evolve;
use crate::state::{Phase, RunState};

/// Where a replay stands in its source.
#[derive(Clone, Debug)]
pub struct Replay {
    source: RunId,
    /// The next record of the source.
    next: u64,
    course: Course,
    /// The first difference, once there is one.
    pub difference: Option<Difference>,
    /// Where the replay itself says so. From there on it has one record more than the source.
    remark: Option<u64>,
    /// The call that was made again last, and what came of it this time.
    heard: Option<(u64, Option<EnvelopeKind>)>,
    /// Whether it goes on where its source was cancelled.
    past_cancellation: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    /// Step by step as the source went.
    Aligned,
    /// It went another way: the engine goes on by itself, and the world's words are taken where they still fit.
    Free,
    /// The source has not ended; a replay does all the same.
    Closing,
    /// The source was cancelled here. That is nothing the workflow did, so the run goes on by itself, until it needs
    /// something of the world that the source never got.
    Onward,
}

/// The first thing that came out otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where, in the source.
    pub seq: u64,
    pub kind: DivergenceKind,
    pub original: Option<Event>,
    pub replayed: Option<Event>,
}

/// What comes next.
#[derive(Clone, Debug)]
pub enum Next {
    Append {
        drafts: Vec<Draft>,
        at: Timestamp,
        outside: bool,
    },
    /// The window must reach further.
    More,
    /// The source has nothing more to say and the run nothing more to do.
    Done,
}

impl Replay {
    /// A replay of `source` whose records before `from` are history.
    pub fn new(source: RunId, from: u64) -> Self {
        let course = Course::Aligned;
        Self { source, next: from, course, difference: None, remark: None, heard: None, past_cancellation: false }
    }

    /// The same, going on where its source was cancelled. Who only proves a log stops where it stops. Replays of runs
    /// before rule 4 repeat the cancellation.
    #[must_use]
    pub fn past_cancellation(self) -> Self {
        Self { past_cancellation: true, ..self }
    }

    /// The next record of the source it wants to see.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The next step. `window` holds the source's records from [`Replay::position`] on; `whole` says that it reaches the
    /// end of the log.
    pub fn step(&mut self, state: &RunState, window: &[Record], whole: bool) -> Next {
        if matches!(state.phase(), Phase::Ended { .. }) {
            return Next::Done;
        }
        match self.course {
            // A step is seen as a whole or not at all.
            Course::Aligned if !whole && step_length(window) >= window.len() => Next::More,
            Course::Aligned => self.aligned(state, window),
            Course::Free => {
                let next = self.free(state, window, whole);
                self.possible(state, next)
            }
            Course::Closing => {
                let next = self.closing(state);
                self.possible(state, next)
            }
            Course::Onward => {
                let next = self.onward(state);
                self.possible(state, next)
            }
        }
    }

    /// Whether the source was cancelled in this step, and the replay is not. Where the source waited for a human, a child
    /// or an answer, the cancellation is all that ever came, and so it is repeated. Time passes by itself.
    fn passes(&self, state: &RunState, step: &[Record]) -> bool {
        let cancelled = |record: &Record| {
            record.part.is_some_and(|part| part.outside)
                && match &record.event {
                    Event::RunCancelled(_) => true,
                    Event::RunEnding(event) => matches!(event.ending, Ending::Cancelled(_)),
                    _ => false,
                }
        };
        // In the middle of the step the run is cancelled already.
        let whole = step.first().and_then(|record| record.part).is_some_and(|part| part.first);
        self.past_cancellation && state.rule() >= 4 && whole && waits_for_time_only(state) && step.iter().any(cancelled)
    }

    /// Goes on without a source. Time passes as fast as it is waited for; anything else that is waited for is missing.
    fn onward(&mut self, state: &RunState) -> Next {
        let at = state.not_before(Timestamp::default());
        let advance = |at| decide(state, &Command::Advance, at).unwrap_or_default();
        let drafts = advance(at);
        if !drafts.is_empty() {
            return Next::Append { drafts, at, outside: false };
        }
        if waits_for_time_only(state)
            && let Some(wake) = state.wake_at().map(|wake| wake.max(at))
        {
            let drafts = advance(wake);
            if !drafts.is_empty() {
                return Next::Append { drafts, at: wake, outside: false };
            }
        }
        let wanted = wanted_of_the_world(state);
        let node = match &wanted {
            Some(Effect::CallModel { node, .. }) => Some(node),
            Some(Effect::CallTool(call)) => Some(&call.node),
            Some(Effect::NodeRequest(node_request)) => Some(&node_request.node),
            _ => None,
        };
        let drafts = match node {
            Some(node) => crate::decide::give_up_at(state, node, self.missing()),
            None => crate::decide::give_up(state, self.missing()),
        };
        Next::Append { drafts, at, outside: true }
    }

    /// A source that could not have been, a forged one say, may lead where no proper end can follow. A replay ends even
    /// then.
    fn possible(&self, state: &RunState, next: Next) -> Next {
        let at = match &next {
            Next::Append { drafts, at, .. } if drafts.iter().any(|draft| draft.event.is_terminal()) => {
                match apply(&mut state.clone(), drafts.clone(), *at) {
                    Ok(_) => return next,
                    Err(_) => *at,
                }
            }
            Next::Done => state.not_before(Timestamp::default()),
            Next::Append { .. } | Next::More => return next,
        };
        let error = self.missing();
        let failed = Event::from(RunFailed { error, failed_node_id: None });
        Next::Append { drafts: vec![failed.into()], at, outside: true }
    }

    fn missing(&self) -> Fault {
        Fault::new(code::REPLAY_SOURCE_MISSING, "The source recorded no answer for what the replay asks.")
            .with("sourceRunId", self.source.as_str())
    }

    fn aligned(&mut self, state: &RunState, window: &[Record]) -> Next {
        let Some(first) = window.first() else {
            self.course = Course::Closing;
            let next = self.closing(state);
            return self.possible(state, next);
        };
        let step = &window[..step_length(window)];
        let at = first.at;
        if self.passes(state, step) {
            self.course = Course::Onward;
            let next = self.onward(state);
            return self.possible(state, next);
        }
        // In the middle of a step, and where nobody knows how a record came about, there is nothing to decide anew.
        let repeat = first.part.is_some_and(|part| !part.outside && part.first);
        // What a node that says so of itself did is a fact: doing it again would prove nothing.
        let fact = first.event.node_id().is_some_and(|node| state.plan().is_nondeterministic(node));
        if let Some(end) = self.refusal(state, first) {
            return end;
        }
        if !repeat || fact {
            return self.take(step);
        }
        let drafts = decide(state, &Command::Advance, at).unwrap_or_default();
        self.next += step.len() as u64;
        match difference(step, &drafts) {
            None => Next::Append { drafts, at, outside: false },
            Some(found) => {
                if !same_shape(step, &drafts) {
                    self.course = Course::Free;
                }
                self.diverged(state, found, drafts, at, false)
            }
        }
    }

    /// Takes a step of the source as it stands.
    fn take(&mut self, step: &[Record]) -> Next {
        let Some(first) = step.first() else { return Next::Done };
        self.next += step.len() as u64;
        Next::Append { drafts: self.taken(step), at: first.at, outside: true }
    }

    /// These records as drafts of the replay's own.
    fn taken(&self, step: &[Record]) -> Vec<Draft> {
        let moved = |cause: u64| match (self.remark, self.course) {
            (Some(remark), Course::Aligned) if cause >= remark => Some(cause + 1),
            // It went another way; where its own cause stands, if it has one, nobody knows.
            (Some(remark), Course::Free | Course::Closing | Course::Onward) if cause >= remark => None,
            _ => Some(cause),
        };
        let draft =
            |record: &Record| Draft { event: record.event.clone(), causation: record.causation.and_then(moved) };
        step.iter().map(draft).collect()
    }

    /// What was taken as it stands could not follow: this build reads the log otherwise than the one that wrote it.
    /// `state` is the run as it was before that step, `refused` the step's first record.
    pub fn refused(&mut self, state: &RunState, refused: &Record) -> Next {
        self.course = Course::Free;
        let found = Difference {
            seq: refused.seq,
            kind: DivergenceKind::Missing,
            original: Some(refused.event.clone()),
            replayed: None,
        };
        self.diverged(state, found, Vec::new(), refused.at, false)
    }

    fn free(&mut self, state: &RunState, window: &[Record], whole: bool) -> Next {
        let at = window.first().map_or_else(|| state.not_before(Timestamp::default()), |record| record.at);
        let drafts = decide(state, &Command::Advance, at).unwrap_or_default();
        if !drafts.is_empty() {
            return Next::Append { drafts, at, outside: false };
        }
        let mut rest = window;
        while !rest.is_empty() {
            let (step, after) = rest.split_at(step_length(rest));
            if after.is_empty() && !whole {
                break;
            }
            if self.passes(state, step) {
                self.course = Course::Onward;
                return self.onward(state);
            }
            self.next += step.len() as u64;
            rest = after;
            if step[0].part.is_none_or(|part| part.outside) && follows(state, step) {
                return Next::Append { drafts: self.taken(step), at: step[0].at, outside: true };
            }
        }
        if !whole {
            return Next::More;
        }
        if matches!(state.phase(), Phase::Ending(_)) {
            return let_children_go(state, at);
        }
        // Something is waited for that the source never recorded.
        let drafts = crate::decide::give_up(state, self.missing());
        if drafts.is_empty() { Next::Done } else { Next::Append { drafts, at, outside: true } }
    }

    /// Ends a replay whose source has not ended.
    fn closing(&mut self, state: &RunState) -> Next {
        let at = state.not_before(Timestamp::default());
        let reason = Some("source-has-not-ended".to_owned());
        let drafts = match state.phase() {
            Phase::Ending(Ending::Cancelled(_) | Ending::Failed { .. } | Ending::Completed(_)) => {
                decide(state, &Command::Advance, at)
            }
            _ => decide(state, &Command::Cancel { reason, by: None, parent: None }, at),
        };
        match drafts.unwrap_or_default() {
            none if none.is_empty() => let_children_go(state, at),
            drafts => Next::Append { drafts, at, outside: true },
        }
    }

    /// Says once that the courses part, then goes on.
    fn diverged(
        &mut self,
        state: &RunState,
        found: Difference,
        drafts: Vec<Draft>,
        at: Timestamp,
        outside: bool,
    ) -> Next {
        if self.difference.is_some() {
            return Next::Append { drafts, at, outside };
        }
        let point = found.original.as_ref().or(found.replayed.as_ref()).map(|event| event.type_name().to_owned());
        let event = ReplayDiverged {
            source_run_id: self.source.clone(),
            at_sequence: found.seq,
            divergence_kind: found.kind,
            original_event_id: found.original.as_ref().map(|_| EventId::at(&self.source, found.seq)),
            replay_event_id: None,
            divergence_point: point,
        };
        self.difference = Some(found);
        // What follows stands one place further on.
        let own = state.next_seq();
        self.remark = Some(own);
        let shifted = drafts.into_iter().map(|draft| Draft {
            causation: draft.causation.map(|seq| if seq >= own { seq + 1 } else { seq }),
            ..draft
        });
        let drafts = std::iter::once(Draft::from(Event::from(event))).chain(shifted).collect();
        Next::Append { drafts, at, outside }
    }
}

/// The first thing, other than time, that the run waits for.
fn wanted_of_the_world(state: &RunState) -> Option<Effect> {
    outstanding(state).into_iter().find(|effect| !matches!(effect, Effect::WakeAt { .. }))
}

/// Whether the run would go on by itself, now or later.
fn waits_for_time_only(state: &RunState) -> bool {
    matches!(state.phase(), Phase::Active) && state.interrupts.is_empty() && wanted_of_the_world(state).is_none()
}

/// A run that ends waits for its children, and nobody will tell how these ended.
fn let_children_go(state: &RunState, at: Timestamp) -> Next {
    let Some(child) = state.live_children().next() else { return Next::Done };
    let outcome =
        ChildOutcome { status: RunStatus::Cancelled, variables: Map::new(), error: None, memory: 0, usage: None };
    let drafts = decide(state, &Command::ChildEnded { child: child.plan.run.clone(), outcome }, at).unwrap_or_default();
    if drafts.is_empty() { Next::Done } else { Next::Append { drafts, at, outside: true } }
}

/// How many records the step at the head of a window has.
pub fn step_length(window: &[Record]) -> usize {
    let goes_on = |record: &&Record| record.part.is_some_and(|part: Part| !part.first);
    window.len().min(1) + window.iter().skip(1).take_while(goes_on).count()
}

/// Whether a step came out with the same events, if not with the same contents.
fn same_shape(step: &[Record], drafts: &[Draft]) -> bool {
    let same = |(record, draft): (&Record, &Draft)| record.event.type_name() == draft.event.type_name();
    step.len() == drafts.len() && step.iter().zip(drafts).all(same)
}

/// Whether these can follow, all of them.
fn follows(state: &RunState, step: &[Record]) -> bool {
    let mut state = state.clone();
    for record in step {
        let here = Record { seq: state.next_seq(), ..record.clone() };
        match evolve(state, &here) {
            Ok(next) => state = next,
            Err(_) => return false,
        }
    }
    true
}

fn difference(step: &[Record], drafts: &[Draft]) -> Option<Difference> {
    for (place, record) in step.iter().enumerate() {
        let original = Some(record.event.clone());
        let (kind, replayed) = match drafts.get(place) {
            Some(draft) if draft.event == record.event && draft.causation == record.causation => continue,
            Some(draft) if draft.event.type_name() == record.event.type_name() => {
                (DivergenceKind::Output, Some(draft.event.clone()))
            }
            Some(draft) => (DivergenceKind::TypeMismatch, Some(draft.event.clone())),
            None => (DivergenceKind::Missing, None),
        };
        return Some(Difference { seq: record.seq, kind, original, replayed });
    }
    drafts.get(step.len()).map(|draft| Difference {
        seq: step.last().map_or(0, |record| record.seq + 1),
        kind: DivergenceKind::Extra,
        original: None,
        replayed: Some(draft.event.clone()),
    })
}
