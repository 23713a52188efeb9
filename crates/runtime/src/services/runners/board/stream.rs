//! What a runner's stream is told. A stream holds nothing but its place: what it has not been told is looked up, so one that
//! nobody reads costs nothing.

use std::sync::Arc;

use baton_model::{RunId, Timestamp};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::watch;

use super::{Attached, Board, Granted, Lease, OpenStream, Registration, RunnerOwner};
use crate::services::runners::LEASE_MS;
use crate::services::runners::rows::{Step, model_of};
use crate::services::runners::step_token::{self, StepClaims, StepToken};

/// A step as a runner is shown it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DispatchFrame {
    pub run_id: RunId,
    pub step_id: String,
    pub seq: u64,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub inputs: Map<String, Value>,
}

/// What there is to know about a step beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DispatchContext {
    pub run_id: RunId,
    pub step_id: String,
    pub deadline_at: Timestamp,
    pub lease_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracestate: Option<String>,
    /// Opens the model gateway and the memo of this step, for as long as the runner has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_token: Option<StepToken>,
}

/// The next thing to tell a runner.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    Dispatch {
        frame: Box<DispatchFrame>,
        context: Box<DispatchContext>,
    },
    Cancel {
        run: RunId,
        step: String,
    },
    Drain,
    /// Another stream of the same runner was opened.
    Superseded,
    /// The runner is not one any more.
    Gone,
}

/// A stream's place.
pub(crate) struct Reader {
    pub(crate) owner: RunnerOwner,
    pub(crate) id: String,
    number: u64,
    /// The last number that its runner had before.
    began_after: Option<u64>,
    /// The last number that it was told, or that its runner had before.
    after: Option<u64>,
    pub(crate) changed: watch::Receiver<u64>,
}

impl Board {
    /// Opens a stream, which ends the one before. `None` if there is no such runner.
    pub(crate) fn open(
        &self,
        owner: &RunnerOwner,
        (id, token): (&str, &str),
        after: Option<u64>,
        (epoch, now): (u64, Timestamp),
    ) -> Option<(Reader, Arc<Registration>)> {
        let mut state = self.state.lock();
        let number = state.number();
        let runner = state.owners.get_mut(owner)?.runners.get_mut(id)?;
        runner.stream = Some(OpenStream { number, token: token.to_owned() });
        runner.late.clear();
        (runner.seen_at, runner.silent) = (now, false);
        runner.drain_told = false;
        // What it had before cannot have numbers that are still to come.
        runner.next_seq = runner.next_seq.max(after.map_or(0, |after| after.saturating_add(1)));
        let mut registration = (*runner.registration).clone();
        (registration.epoch, registration.seen_at) = (epoch, now);
        runner.registration = Arc::new(registration);
        let written = runner.set_aside(runner.next_seq);
        let changed = runner.changed.subscribe();
        runner.tell_stream();
        let (owner, id, began_after) = (owner.clone(), id.to_owned(), after);
        Some((Reader { owner, id, number, began_after, after, changed }, written))
    }

    /// The stream is gone. What the runner has stays with it.
    pub(crate) fn close(&self, reader: &Reader) {
        let mut state = self.state.lock();
        let runner = state.owners.get_mut(&reader.owner).and_then(|owner| owner.runners.get_mut(&reader.id));
        if let Some(runner) = runner.filter(|runner| runner.is_told_by(reader.number)) {
            runner.stream = None;
        }
    }

    /// What waits may go to a runner that can be told.
    pub(crate) fn opened(&self, reader: &Reader, epoch: u64, now: Timestamp) -> Vec<Granted> {
        self.fill(&reader.owner, &reader.id, epoch, now)
    }

    /// The next thing to tell, if there is one.
    pub(crate) fn next(&self, reader: &mut Reader) -> Option<Told> {
        let mut state = self.state.lock();
        let super::State { owners, steps, .. } = &mut *state;
        let Some(runner) = owners.get_mut(&reader.owner).and_then(|owner| owner.runners.get_mut(&reader.id)) else {
            return Some(Told::Gone);
        };
        if !runner.is_told_by(reader.number) {
            let revoked = runner.revoked == Some(reader.number);
            return Some(if revoked { Told::Gone } else { Told::Superseded });
        }
        if let Some((run, step)) = runner.cancels.pop_first() {
            return Some(Told::Cancel { run, step });
        }
        if runner.registration.draining && !runner.drain_told {
            runner.drain_told = true;
            return Some(Told::Drain);
        }
        let from = reader.after.map_or(0, |after| after.saturating_add(1));
        let draining = runner.registration.draining;
        // One that ends is shown what it had before, and nothing new.
        let shows = |lease: &Lease| !lease.cancelled && (lease.shown || !draining);
        // Behind the stream already, though it was not told of it.
        let mut late = None;
        while let Some(seq) = runner.late.pop_first() {
            let unseen = reader.began_after.is_none_or(|before| before < seq) && seq < from;
            if unseen && runner.leases.get(&seq).is_some_and(shows) {
                late = Some(seq);
                break;
            }
        }
        let next = || runner.leases.range(from..).find(|(_, lease)| shows(lease)).map(|(seq, _)| *seq);
        let seq = late.or_else(next)?;
        let lease = runner.leases.get_mut(&seq)?;
        // In the order of the numbers: one that is not durable holds up those behind it.
        if !lease.durable {
            return None;
        }
        let entry = steps.get(&lease.key)?;
        reader.after = reader.after.max(Some(seq));
        lease.shown = true;
        let (step, trace) = (&entry.step, entry.step.trace.as_ref());
        let model = model_of(&step.tool);
        let frame = DispatchFrame {
            run_id: step.run.clone(),
            step_id: step.step_id.clone(),
            seq,
            kind: if model.is_some() { "model" } else { "tool" },
            provider: model.map(|(provider, _)| provider.to_owned()),
            model: model.map(|(_, model)| model.to_owned()),
            tool: model.is_none().then(|| step.tool.clone()),
            inputs: step.inputs.clone(),
        };
        let context = DispatchContext {
            run_id: step.run.clone(),
            step_id: step.step_id.clone(),
            deadline_at: lease.ends_at,
            lease_ms: LEASE_MS,
            traceparent: trace.map(|trace| trace.parent.clone()),
            tracestate: trace.and_then(|trace| trace.state.clone()),
            step_token: self.token_for(step, &reader.id, seq),
        };
        Some(Told::Dispatch { frame: Box::new(frame), context: Box::new(context) })
    }

    /// A step that no run waits for has nothing to record under.
    fn token_for(&self, step: &Step, runner: &str, seq: u64) -> Option<StepToken> {
        let claims = StepClaims {
            tenant: step.tenant.clone(),
            run_id: step.run.clone(),
            step_id: step.step_id.clone(),
            runner: runner.to_owned(),
            seq,
        };
        (!step.node.as_str().is_empty()).then(|| step_token::sign(&self.token_secrets, &claims)).flatten()
    }

    /// Streams that were opened with this token end.
    pub(crate) fn end_streams_of(&self, token: &str) {
        let mut state = self.state.lock();
        let runners = state.owners.values_mut().flat_map(|owner| owner.runners.values_mut());
        for runner in runners.filter(|runner| runner.stream.as_ref().is_some_and(|open| open.token == token)) {
            runner.revoked = runner.stream.take().map(|open| open.number);
            runner.tell_stream();
        }
    }

    /// The stream of a runner is open on another host now.
    pub(crate) fn moved_away(&self, owner: &RunnerOwner, id: &str) {
        let mut state = self.state.lock();
        if let Some(runner) = state.owners.get_mut(owner).and_then(|owner| owner.runners.get_mut(id)) {
            runner.stream = None;
            runner.tell_stream();
        }
    }
}

impl Attached {
    fn is_told_by(&self, stream: u64) -> bool {
        self.stream.as_ref().is_some_and(|open| open.number == stream)
    }
}
