//! Steps that other hosts know of, too: one that gave it to a runner, drives its run, or did either before this one.

use std::sync::Arc;

use baton_model::Timestamp;
use baton_store::{StepRow, StepState};
use tokio::sync::watch;

use super::matching::Before;
use super::{
    Attached, Board, Ended, Entry, Given, Granted, Lease, OwnerBoard, Place, RunnerOwner, Standing, State, Step,
    StepBody,
};
use crate::services::runners::LEASE_MS;

impl Board {
    /// A step that was with a runner when this host, or the one before, stopped: it stays there until its time is up.
    pub(crate) fn adopt(
        &self,
        step: Arc<Step>,
        before: Before,
        (until, now): (Timestamp, Timestamp),
        held: Held,
    ) -> watch::Receiver<Standing> {
        let mut state = self.state.lock();
        let (owner, key) = (step.owner(), step.key());
        state.forget(&key);
        let (standing, receiver) = watch::channel(Standing::Given);
        let Before { version, given, foreign } = before;
        let last = given.last().cloned();
        let mut place = Place::Elsewhere { look_at: until };
        if held == Held::Here
            && let Some(Given { runner: id, seq }) = last
            && let Some(runner) = state.owners.get_mut(&owner).and_then(|owner| owner.runners.get_mut(&id))
        {
            runner.next_seq = runner.next_seq.max(seq + 1);
            let ends_at = now.plus_millis(step.timeout_ms);
            let (durable, shown, cancelled) = (true, true, false);
            let (began, quiet_until) = (now, now);
            let lease = Lease { key: key.clone(), began, until, ends_at, durable, shown, cancelled, quiet_until };
            runner.leases.insert(seq, lease);
            if runner.stream.is_some() {
                // The stream may be further on by now.
                runner.late.insert(seq);
            }
            runner.tell_stream();
            place = Place::With { runner: id, seq };
        } else if held == Held::Here && !foreign {
            // Nobody can answer for it.
            place = Place::Lost { at: now };
            standing.send_replace(Standing::Lost("The runner that had it is gone.".to_owned()));
        }
        let (abandoned, answering) = (false, false);
        state.steps.insert(key, Entry { step, place, standing, given, version, abandoned, answering, foreign });
        receiver
    }

    /// A step that a runner has, and that another host followed until now. Where a run of this host waits for it, it goes on
    /// waiting.
    pub(crate) fn follow(&self, step: Arc<Step>, known: Before, (until, now): (Timestamp, Timestamp)) {
        let mut state = self.state.lock();
        let (owner, key) = (step.owner(), step.key());
        let Some(Given { runner: id, seq }) = known.given.last().cloned() else { return };
        let Some(runner) = state.owners.get_mut(&owner).and_then(|owner| owner.runners.get_mut(&id)) else { return };
        runner.next_seq = runner.next_seq.max(seq + 1);
        let (began, quiet_until, ends_at) = (now, now, now.plus_millis(step.timeout_ms));
        let (durable, shown, cancelled) = (true, true, false);
        let lease = Lease { key: key.clone(), began, until, ends_at, durable, shown, cancelled, quiet_until };
        runner.leases.insert(seq, lease);
        runner.tell_stream();
        let place = Place::With { runner: id, seq };
        let Before { version, given, foreign } = known;
        match state.steps.get_mut(&key) {
            Some(entry) => {
                (entry.version, entry.given, entry.place) = (entry.version.max(version), given, place);
            }
            None => {
                let (standing, _) = watch::channel(Standing::Given);
                let (abandoned, answering) = (false, false);
                let entry = Entry { step, place, standing, given, version, abandoned, answering, foreign };
                state.steps.insert(key, entry);
            }
        }
    }

    /// Whether a runner of this host has it.
    pub(crate) fn has(&self, key: &str) -> bool {
        let state = self.state.lock();
        state.steps.get(key).is_some_and(|entry| matches!(entry.place, Place::With { .. }))
    }

    /// Another host gave the step to a runner first, under the same version.
    pub(crate) fn contest_lost(&self, row: &StepRow, epoch: u64, now: Timestamp) -> Vec<Granted> {
        if let Some(entry) = self.state.lock().steps.get_mut(&row.key) {
            entry.version = entry.version.min(row.version.saturating_sub(1));
        }
        self.heard(row, epoch, now)
    }

    /// The row of a step that this host knows was changed by another one.
    pub(crate) fn heard(&self, row: &StepRow, epoch: u64, now: Timestamp) -> Vec<Granted> {
        let mut state = self.state.lock();
        let Some(entry) = state.steps.get_mut(&row.key).filter(|entry| entry.version < row.version) else {
            return Vec::new();
        };
        let Some(body) = StepBody::read(row) else { return Vec::new() };
        let unanswered = body.digest.is_none();
        entry.version = row.version;
        entry.given = body.given;
        let (owner, step, place, foreign) =
            (entry.step.owner(), Arc::clone(&entry.step), entry.place.clone(), entry.foreign);
        let mut freed = None;
        match place {
            Place::Queued { order } => state.dequeue(&owner, &step, order),
            Place::With { runner, seq } => {
                // One without a result is over because nobody wants it.
                if row.state == StepState::Done && unanswered {
                    state.cancel(&owner, &runner, seq);
                }
                state.end_lease(&owner, &runner, seq);
                freed = Some(runner);
            }
            Place::Elsewhere { .. } | Place::Lost { .. } => {}
        }
        match row.state {
            StepState::Queued => state.queue_again(&row.key, now),
            StepState::Leased | StepState::Lost | StepState::Done if foreign => drop(state.steps.remove(&row.key)),
            StepState::Done => {
                if let Some(entry) = state.steps.remove(&row.key) {
                    entry.standing.send_replace(Standing::Over);
                }
            }
            StepState::Leased => {
                if let Some(entry) = state.steps.get_mut(&row.key) {
                    entry.place = Place::Elsewhere { look_at: now.plus_millis(2 * LEASE_MS) };
                    entry.standing.send_replace(Standing::Given);
                }
            }
            StepState::Lost => {
                if let Some(entry) = state.steps.get_mut(&row.key) {
                    entry.place = Place::Lost { at: now };
                    let reason = "The runner was not heard of for too long.";
                    entry.standing.send_replace(Standing::Lost(reason.to_owned()));
                }
            }
        }
        match (row.state, freed) {
            (StepState::Queued, _) => state.fill_all(&owner, epoch, now),
            (_, Some(runner)) => state.fill(&owner, &runner, epoch, now),
            _ => Vec::new(),
        }
    }

    /// Steps that other hosts may know more of.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        let state = self.state.lock();
        let waits =
            |entry: &Entry| matches!(entry.place, Place::Elsewhere { .. }) || (entry.version > 0 && !entry.abandoned);
        state.steps.iter().filter(|(_, entry)| waits(entry)).map(|(key, _)| key.clone()).collect()
    }

    /// Owners that have a runner here with a place free: what waits on other hosts may be for them.
    pub(crate) fn owners_with_places(&self) -> Vec<RunnerOwner> {
        let state = self.state.lock();
        state.owners.iter().filter(|(_, owner)| owner.has_place()).map(|(owner, _)| owner.clone()).collect()
    }

    pub(crate) fn has_place(&self, owner: &RunnerOwner) -> bool {
        self.state.lock().owners.get(owner).is_some_and(OwnerBoard::has_place)
    }

    /// A step of this owner waits on another host. Says whose it is, if a runner here has a place free.
    pub(crate) fn waits_elsewhere(&self, owner: &str) -> Option<RunnerOwner> {
        let mut state = self.state.lock();
        let name = state.names.get(owner)?.clone();
        let of_owner = state.owners.get_mut(&name)?;
        of_owner.elsewhere = true;
        of_owner.has_place().then_some(name)
    }

    /// What waits on other hosts for this owner was looked at, all of it or not.
    pub(crate) fn looked(&self, owner: &RunnerOwner, all: bool) {
        if let Some(of_owner) = self.state.lock().owners.get_mut(owner) {
            of_owner.elsewhere = !all;
        }
    }

    /// Whether a runner of this owner has a place free while steps wait on other hosts.
    pub(crate) fn wants_more(&self, owner: &RunnerOwner) -> bool {
        let state = self.state.lock();
        state.owners.get(owner).is_some_and(|owner| owner.elsewhere && owner.has_place())
    }

    /// Steps that another host gave to a runner some time ago.
    pub(crate) fn to_look_at(&self, now: Timestamp) -> Vec<String> {
        let state = self.state.lock();
        let due = |entry: &Entry| matches!(entry.place, Place::Elsewhere { look_at } if look_at <= now);
        state.steps.iter().filter(|(_, entry)| due(entry)).map(|(key, _)| key.clone()).collect()
    }

    /// The host that gave it to a runner is there.
    pub(crate) fn look_later(&self, key: &str, now: Timestamp) {
        if let Some(entry) = self.state.lock().steps.get_mut(key)
            && let Place::Elsewhere { look_at } = &mut entry.place
        {
            *look_at = now.plus_millis(2 * LEASE_MS);
        }
    }

    /// The host that gave it to a runner is gone, and no other host has heard of that runner.
    pub(crate) fn lost_elsewhere(&self, key: &str, epoch: u64, now: Timestamp) -> Option<Ended> {
        let mut state = self.state.lock();
        let entry = state.steps.get_mut(key).filter(|entry| matches!(entry.place, Place::Elsewhere { .. }))?;
        entry.version += 1;
        entry.place = Place::Lost { at: now };
        entry.standing.send_replace(Standing::Lost("The host that its runner was connected to is gone.".to_owned()));
        let row = State::body(entry, None, epoch).over(None).row(StepState::Lost, entry.version, now);
        Some(Ended { row: Some(row), key: key.to_owned(), tenant: entry.step.tenant.clone() })
    }

    /// One that waits, as it would be written next.
    pub(crate) fn waiting(&self, key: &str) -> Option<(StepBody, u64)> {
        let state = self.state.lock();
        let entry = state.steps.get(key).filter(|entry| matches!(entry.place, Place::Queued { .. }))?;
        Some((State::body(entry, None, 0), entry.version + 1))
    }

    pub(crate) fn knows(&self, key: &str) -> bool {
        self.state.lock().steps.contains_key(key)
    }
}

impl OwnerBoard {
    fn has_place(&self) -> bool {
        self.runners.values().any(Attached::is_free)
    }
}

/// Who gave a step to the runner that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// This host, or one that is gone: it is this one's to follow.
    Here,
    /// Another host, which is there.
    Elsewhere,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::collections::BTreeMap;

    use baton_model::{NodeId, RunId, TenantId};
    use serde_json::{Map, json};

    use super::super::{Reader, Registration, Told};
    use super::*;
    use crate::services::runners::rows::RunnerCapabilities;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn registration() -> Arc<Registration> {
        let body = json!({
            "tenant": "acme", "subject": "ann", "runnerId": "r1", "tokenId": "tok", "maxConcurrency": 4,
            "capabilities": RunnerCapabilities { tools: vec!["py.work".to_owned()], ..Default::default() },
            "tools": [], "draining": false, "registeredAt": NOW, "seqLimit": 10, "rowVersion": 1, "epoch": 0,
            "seenAt": NOW,
        });
        Arc::new(serde_json::from_value(body).unwrap())
    }

    fn step(id: &str) -> Arc<Step> {
        Arc::new(Step {
            tenant: TenantId::new("acme"),
            subject: "ann".to_owned(),
            run: RunId::new("run_a"),
            step_id: id.to_owned(),
            node: NodeId::new("n"),
            tool: "py.work".to_owned(),
            version: None,
            inputs: Map::new(),
            timeout_ms: 60_000,
            again: 0,
            trace: None,
        })
    }

    fn told(board: &Board, reader: &mut Reader) -> BTreeMap<u64, String> {
        let mut told = BTreeMap::new();
        while let Some(Told::Dispatch { frame, .. }) = board.next(reader) {
            told.insert(frame.seq, frame.step_id);
        }
        told
    }

    /// A host starts again: its runner is back, and has new steps, before the runs that wait for old ones are.
    #[test]
    fn a_step_from_before_is_told_though_the_stream_is_further_on() {
        for (before, expected) in [(None, true), (Some(4), true), (Some(5), false)] {
            let (board, owner) = (Board::default(), step("x").owner());
            drop(board.attach(registration(), 0, NOW));
            let (mut reader, _) = board.open(&owner, ("r1", "tok"), before, (0, NOW)).unwrap();
            let (_, granted) = board.queue(step("new"), Before::default(), 0, NOW).unwrap();
            board.durable(&granted.unwrap());
            assert_eq!(told(&board, &mut reader), [(10, "new".to_owned())].into());
            let given = vec![Given { runner: "r1".to_owned(), seq: 5 }];
            let known = Before { version: 1, given, foreign: false };
            board.adopt(step("old"), known, (NOW.plus_millis(LEASE_MS), NOW), Held::Here);
            let late: BTreeMap<u64, String> = expected.then(|| (5, "old".to_owned())).into_iter().collect();
            assert_eq!(told(&board, &mut reader), late, "{before:?}");
            assert_eq!(told(&board, &mut reader), BTreeMap::new(), "once");
        }
    }
}
