//! What becomes of a step that a runner has: it is answered, given back, lost, or nobody wants it any more.

use std::sync::Arc;

use baton_model::{RunId, Timestamp};
use baton_store::StepState;

use super::{Board, Changes, Ended, Granted, LOST_KEPT_MS, Lease, Place, RunnerOwner, Standing, State, Step, StepBody};
use crate::services::runners::LEASE_MS;
use crate::services::runners::names::step_key;

/// The least time between two notes of how far a call is.
const PROGRESS_PAUSE_MS: u64 = 1_000;

/// A step as far as a result of it is concerned.
#[derive(Clone)]
pub(crate) struct Answerable {
    pub(crate) body: StepBody,
    pub(crate) version: u64,
    /// The run wants nothing of it any more, as far as is known here.
    pub(crate) abandoned: bool,
    /// Since when the runner that has it does; only where it has it now.
    pub(crate) began: Option<Timestamp>,
}

impl Board {
    /// Its row is on disk: the runner may see it. False if nobody wants it any more.
    pub(crate) fn durable(&self, granted: &Granted) -> bool {
        let mut state = self.state.lock();
        let runner = state.owners.get_mut(&granted.owner).and_then(|owner| owner.runners.get_mut(&granted.runner));
        let lease = runner.and_then(|runner| {
            let lease = runner.leases.get_mut(&granted.seq).filter(|lease| lease.key == granted.key)?;
            lease.durable = true;
            Some(runner)
        });
        // It may have been taken from the runner meanwhile.
        let Some(runner) = lease else { return state.steps.contains_key(&granted.key) };
        runner.tell_stream();
        if let Some(entry) = state.steps.get(&granted.key) {
            entry.standing.send_if_modified(|standing| {
                let waits = *standing == Standing::Queued;
                if waits {
                    *standing = Standing::Given;
                }
                waits
            });
        }
        true
    }

    /// What is known here of a step.
    pub(crate) fn look(&self, key: &str) -> Option<Answerable> {
        let state = self.state.lock();
        let entry = state.steps.get(key)?;
        if matches!(entry.place, Place::Elsewhere { .. }) {
            return None;
        }
        let began = match &entry.place {
            Place::With { runner, seq } => state.lease(&entry.step.owner(), runner, *seq).map(|lease| lease.began),
            Place::Queued { .. } | Place::Elsewhere { .. } | Place::Lost { .. } => None,
        };
        let body = State::body(entry, None, 0);
        let abandoned = entry.abandoned || matches!(entry.place, Place::Lost { .. });
        Some(Answerable { body, version: entry.version, abandoned, began })
    }

    /// Its result is on its way to the run, or could not be handed over after all.
    pub(crate) fn answering(&self, key: &str, answering: bool) {
        if let Some(entry) = self.state.lock().steps.get_mut(key) {
            entry.answering = answering;
        }
    }

    /// Whoever waits for a runner does so no longer. Says whether it was certainly not given to one.
    pub(crate) fn give_up_waiting(&self, key: &str) -> bool {
        let mut state = self.state.lock();
        let Some(entry) = state.steps.get(key) else { return false };
        let Place::Queued { order } = entry.place else { return false };
        let step = Arc::clone(&entry.step);
        state.dequeue(&step.owner(), &step, order);
        state.steps.remove(key);
        true
    }

    /// Whoever waits for a step does so no longer, and no runner has seen it: it is certain that it was not done. `None` if one
    /// may have seen it.
    pub(crate) fn withdraw_unseen(&self, key: &str, epoch: u64, now: Timestamp) -> Option<Withdrawn> {
        let mut state = self.state.lock();
        let entry = state.steps.get(key)?;
        let Place::With { runner: id, seq } = entry.place.clone() else { return None };
        let owner = entry.step.owner();
        if state.lease(&owner, &id, seq).is_none_or(|lease| lease.shown) {
            return None;
        }
        state.end_lease(&owner, &id, seq);
        state.idle(&owner, &id, now);
        let entry = state.steps.remove(key)?;
        let body = Box::new(State::body(&entry, None, epoch).over(None));
        Some(Withdrawn { body, version: entry.version + 1, granted: state.fill_all(&owner, epoch, now) })
    }

    /// Its result is on the run's log, or the run wants nothing of it: whoever has it has a place again.
    pub(crate) fn over(&self, key: &str, epoch: u64, now: Timestamp) -> Vec<Granted> {
        let mut state = self.state.lock();
        let Some(entry) = state.steps.remove(key) else { return Vec::new() };
        entry.standing.send_replace(Standing::Over);
        let owner = entry.step.owner();
        match entry.place {
            Place::Queued { order } => {
                state.dequeue(&owner, &entry.step, order);
                Vec::new()
            }
            Place::With { runner, seq } => {
                state.end_lease(&owner, &runner, seq);
                state.idle(&owner, &runner, now);
                state.fill(&owner, &runner, epoch, now)
            }
            Place::Elsewhere { .. } | Place::Lost { .. } => Vec::new(),
        }
    }

    /// Nobody waits for it any more. One that no runner has seen is forgotten; says what is to be done about its row. A runner
    /// that has seen it is told to stop, and keeps its place until it answers or its time is up.
    pub(crate) fn abandon(&self, key: &str, epoch: u64, now: Timestamp) -> Option<Abandoned> {
        let answering = self.state.lock().steps.get(key).is_none_or(|entry| entry.answering);
        if !answering && let Some(withdrawn) = self.withdraw_unseen(key, epoch, now) {
            return Some(Abandoned::Forgotten(withdrawn));
        }
        let mut state = self.state.lock();
        let entry = state.steps.get_mut(key).filter(|entry| !entry.answering)?;
        entry.abandoned = true;
        let (owner, step, place, version) =
            (entry.step.owner(), Arc::clone(&entry.step), entry.place.clone(), entry.version);
        match place {
            Place::Queued { order } => {
                state.dequeue(&owner, &step, order);
                let entry = state.steps.remove(key).filter(|_| version > 0)?;
                let body = Box::new(State::body(&entry, None, epoch).over(None));
                Some(Abandoned::Forgotten(Withdrawn { body, version: version + 1, granted: Vec::new() }))
            }
            Place::With { runner: id, seq } => {
                let runner = state.owners.get_mut(&owner)?.runners.get_mut(&id)?;
                if let Some(lease) = runner.leases.get_mut(&seq) {
                    lease.cancelled = true;
                }
                runner.cancels.insert((step.run.clone(), step.step_id.clone()));
                runner.tell_stream();
                None
            }
            // It may be taken up again, or be answered late.
            Place::Lost { .. } => None,
            Place::Elsewhere { .. } => {
                let entry = state.steps.remove(key)?;
                let body = Box::new(State::body(&entry, None, 0).over(None));
                Some(Abandoned::Elsewhere { body, version: entry.version + 1 })
            }
        }
    }

    /// What a runner says of a step that it has. `None` if it does not have it.
    pub(crate) fn reported(
        &self,
        owner: &RunnerOwner,
        id: &str,
        (run, step, seq): (&RunId, &str, u64),
        said: Said,
        (epoch, now): (u64, Timestamp),
    ) -> Option<(Changes, Option<Arc<Step>>)> {
        let mut state = self.state.lock();
        let key = step_key(run, step);
        let runner = state.owners.get_mut(owner)?.runners.get_mut(id)?;
        let lease = runner.leases.get_mut(&seq).filter(|lease| lease.key == key && lease.durable)?;
        let mut changes = Changes::default();
        match said {
            Said::Started => {}
            Said::Progress => {
                if now >= lease.quiet_until && !lease.cancelled {
                    lease.quiet_until = now.plus_millis(PROGRESS_PAUSE_MS);
                    let step = state.steps.get(&key).map(|entry| Arc::clone(&entry.step));
                    return Some((changes, step));
                }
            }
            Said::Released => {
                state.end_lease(owner, id, seq);
                changes.ended.extend(state.released(&key, epoch, now));
                // Anybody may have it now, this runner too unless it is draining.
                changes.granted = state.fill_all(owner, epoch, now);
            }
            Said::Unknown(reason) => {
                changes.ended.extend(state.lose(owner, id, seq, &reason, epoch, now));
                changes.granted = state.fill(owner, id, epoch, now);
            }
        }
        Some((changes, None))
    }

    /// It brought a result.
    pub(crate) fn alive(&self, owner: &RunnerOwner, id: &str, now: Timestamp) {
        let mut state = self.state.lock();
        if let Some(runner) = state.owners.get_mut(owner).and_then(|owner| owner.runners.get_mut(id)) {
            (runner.seen_at, runner.silent) = (now, false);
        }
    }

    /// The runner is alive: so is what it has.
    pub(crate) fn renew(&self, owner: &RunnerOwner, id: &str, now: Timestamp) -> Renewed {
        let mut state = self.state.lock();
        let mut renewed = Renewed::default();
        let State { owners, steps, .. } = &mut *state;
        let Some(runner) = owners.get_mut(owner).and_then(|owner| owner.runners.get_mut(id)) else { return renewed };
        (runner.seen_at, runner.silent) = (now, false);
        renewed.drain = runner.registration.draining;
        let until = now.plus_millis(LEASE_MS);
        renewed.until = until;
        for (&seq, lease) in &mut runner.leases {
            lease.until = until;
            let Some(entry) = steps.get(&lease.key) else { continue };
            let (run, step) = (entry.step.run.clone(), entry.step.step_id.clone());
            match lease.cancelled {
                true => renewed.cancel.push((run, step, seq)),
                false => renewed.leases.push((run, step, seq)),
            }
        }
        renewed
    }

    /// Takes from runners what they have had for too long.
    pub(crate) fn expire(&self, epoch: u64, now: Timestamp) -> Changes {
        let mut state = self.state.lock();
        let mut due = Vec::new();
        for (owner, of_owner) in &state.owners {
            for (id, runner) in &of_owner.runners {
                for (seq, lease) in runner.leases.iter().filter(|(_, lease)| lease.durable) {
                    if lease.ends_at <= now || lease.until <= now {
                        due.push((owner.clone(), id.clone(), *seq, lease.ends_at <= now));
                    }
                }
            }
        }
        state.steps.retain(|_, entry| match entry.place {
            Place::Lost { at } => at.plus_millis(LOST_KEPT_MS) > now,
            Place::Queued { .. } | Place::With { .. } | Place::Elsewhere { .. } => true,
        });
        let mut changes = Changes::default();
        for (owner, id, seq, too_long) in due {
            let reason = match too_long {
                true => "The runner was not done in time.",
                false => "The runner was not heard of for too long.",
            };
            if too_long {
                state.cancel(&owner, &id, seq);
            }
            changes.ended.extend(state.end(&owner, &id, seq, reason, epoch, now));
            if let Some(runner) = state.owners.get_mut(&owner).and_then(|owner| owner.runners.get_mut(&id)) {
                runner.silent |= !too_long;
            }
            changes.granted.extend(state.fill_all(&owner, epoch, now));
        }
        changes
    }

    /// The runner is gone for good. What it had is lost.
    pub(crate) fn detach(&self, owner: &RunnerOwner, id: &str, reason: &str, epoch: u64, now: Timestamp) -> Changes {
        let mut state = self.state.lock();
        let mut changes = Changes::default();
        let Some(runner) = state.owners.get(owner).and_then(|owner| owner.runners.get(id)) else { return changes };
        let had: Vec<u64> = runner.leases.keys().copied().collect();
        for seq in had {
            changes.ended.extend(state.end(owner, id, seq, reason, epoch, now));
        }
        if let Some(of_owner) = state.owners.get_mut(owner)
            && let Some(runner) = of_owner.runners.remove(id)
        {
            runner.tell_stream();
        }
        changes.granted = state.fill_all(owner, epoch, now);
        changes
    }
}

/// What a runner says of a step.
pub(crate) enum Said {
    Started,
    Progress,
    Released,
    Unknown(String),
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Renewed {
    pub(crate) until: Timestamp,
    pub(crate) leases: Vec<(RunId, String, u64)>,
    pub(crate) cancel: Vec<(RunId, String, u64)>,
    pub(crate) drain: bool,
}

/// A step that nobody waits for and no runner has seen: what its row would be, and what has its place now.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    pub(crate) body: Box<StepBody>,
    pub(crate) version: u64,
    pub(crate) granted: Vec<Granted>,
}

/// What is to be written when nobody waits for a step any more.
#[derive(Debug)]
pub(crate) enum Abandoned {
    Forgotten(Withdrawn),
    /// The host that gave it to a runner has to hear of it.
    Elsewhere {
        body: Box<StepBody>,
        version: u64,
    },
}

impl State {
    pub(super) fn lease(&self, owner: &RunnerOwner, id: &str, seq: u64) -> Option<&Lease> {
        self.owners.get(owner)?.runners.get(id)?.leases.get(&seq)
    }

    pub(super) fn end_lease(&mut self, owner: &RunnerOwner, id: &str, seq: u64) -> Option<Lease> {
        let runner = self.owners.get_mut(owner)?.runners.get_mut(id)?;
        let lease = runner.leases.remove(&seq);
        runner.tell_stream();
        lease
    }

    pub(super) fn idle(&mut self, owner: &RunnerOwner, id: &str, now: Timestamp) {
        if let Some(runner) = self.owners.get_mut(owner).and_then(|owner| owner.runners.get_mut(id)) {
            runner.idle_since = now;
        }
    }

    pub(super) fn cancel(&mut self, owner: &RunnerOwner, id: &str, seq: u64) {
        let Some(key) = self.lease(owner, id, seq).map(|lease| lease.key.clone()) else { return };
        let Some(entry) = self.steps.get(&key) else { return };
        let pair = (entry.step.run.clone(), entry.step.step_id.clone());
        if let Some(runner) = self.owners.get_mut(owner).and_then(|owner| owner.runners.get_mut(id)) {
            runner.cancels.insert(pair);
            runner.tell_stream();
        }
    }

    /// Whatever is known of it is not any more.
    pub(super) fn forget(&mut self, key: &str) {
        let Some(entry) = self.steps.remove(key) else { return };
        let owner = entry.step.owner();
        match entry.place {
            Place::Queued { order } => self.dequeue(&owner, &entry.step, order),
            Place::With { runner, seq } => drop(self.end_lease(&owner, &runner, seq)),
            Place::Elsewhere { .. } | Place::Lost { .. } => {}
        }
    }

    /// Certainly not done: it waits again, unless nobody wants it.
    fn released(&mut self, key: &str, epoch: u64, now: Timestamp) -> Option<Ended> {
        let entry = self.steps.get_mut(key)?;
        let tenant = entry.step.tenant.clone();
        entry.version += 1;
        if entry.abandoned {
            // Other hosts hear of rows that are written, not of those that are deleted.
            let row = Self::body(entry, None, epoch).over(None).row(StepState::Done, entry.version, now);
            self.steps.remove(key);
            return Some(Ended { row: Some(row).filter(|_| epoch > 0), key: key.to_owned(), tenant });
        }
        let row = Self::body(entry, None, epoch).row(StepState::Queued, entry.version, now);
        self.queue_again(key, now);
        Some(Ended { row: Some(row), key: key.to_owned(), tenant })
    }

    /// The runner has it no longer. Nobody knows what became of it, unless it never left this host.
    fn end(
        &mut self,
        owner: &RunnerOwner,
        id: &str,
        seq: u64,
        reason: &str,
        epoch: u64,
        now: Timestamp,
    ) -> Option<Ended> {
        if self.lease(owner, id, seq)?.shown {
            return self.lose(owner, id, seq, reason, epoch, now);
        }
        let lease = self.end_lease(owner, id, seq)?;
        self.released(&lease.key, epoch, now)
    }

    /// Takes back what a runner was given and not shown.
    pub(super) fn take_unshown(&mut self, owner: &RunnerOwner, id: &str, epoch: u64, now: Timestamp) -> Vec<Ended> {
        let runner = self.owners.get(owner).and_then(|owner| owner.runners.get(id));
        let leases = runner.into_iter().flat_map(|runner| &runner.leases);
        let unshown: Vec<u64> = leases.filter(|(_, lease)| !lease.shown).map(|(seq, _)| *seq).collect();
        unshown.into_iter().filter_map(|seq| self.end(owner, id, seq, "", epoch, now)).collect()
    }

    /// Nobody knows what became of it.
    fn lose(
        &mut self,
        owner: &RunnerOwner,
        id: &str,
        seq: u64,
        reason: &str,
        epoch: u64,
        now: Timestamp,
    ) -> Option<Ended> {
        let lease = self.end_lease(owner, id, seq)?;
        self.idle(owner, id, now);
        let entry = self.steps.get_mut(&lease.key)?;
        let tenant = owner.tenant.clone();
        if entry.abandoned || entry.foreign {
            let entry = self.steps.remove(&lease.key)?;
            let row = Self::body(&entry, None, epoch).over(None).row(StepState::Lost, entry.version + 1, now);
            return Some(Ended { row: entry.foreign.then_some(row), key: lease.key, tenant });
        }
        entry.version += 1;
        entry.place = Place::Lost { at: now };
        entry.standing.send_replace(Standing::Lost(reason.to_owned()));
        let row = Self::body(entry, None, epoch).over(None).row(StepState::Lost, entry.version, now);
        Some(Ended { row: Some(row), key: lease.key, tenant })
    }

    pub(super) fn fill_all(&mut self, owner: &RunnerOwner, epoch: u64, now: Timestamp) -> Vec<Granted> {
        let ids: Vec<String> = match self.owners.get(owner) {
            Some(of_owner) if of_owner.queued > 0 => of_owner.runners.keys().cloned().collect(),
            _ => return Vec::new(),
        };
        ids.iter().flat_map(|id| self.fill(owner, id, epoch, now)).collect()
    }
}
