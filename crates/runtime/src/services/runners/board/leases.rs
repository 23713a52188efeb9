//! What becomes of a step that a runner has: it is answered, given back, lost, or nobody wants it any more.

use std::sync::Arc;

use baton_model::{RunId, TenantId, Timestamp};
use baton_store::{StepRow, StepState};
use tokio::sync::watch;

use super::matching::Before;
use super::{
    Board, Changes, Ended, Entry, Given, Granted, LOST_KEPT_MS, Lease, Place, RunnerOwner, Standing, State, Step,
    StepBody,
};
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

    /// Its row is on disk: the runner may see it.
    pub(crate) fn durable(&self, granted: &Granted) {
        let mut state = self.state.lock();
        let Some(runner) =
            state.owners.get_mut(&granted.owner).and_then(|owner| owner.runners.get_mut(&granted.runner))
        else {
            return;
        };
        // It may have been taken from the runner meanwhile.
        let Some(lease) = runner.leases.get_mut(&granted.seq).filter(|lease| lease.key == granted.key) else { return };
        lease.durable = true;
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

    /// Another host gave the step to a runner first, under the same version.
    pub(crate) fn contest_lost(&self, row: &StepRow, epoch: u64, now: Timestamp) -> Vec<Granted> {
        if let Some(entry) = self.state.lock().steps.get_mut(&row.key) {
            entry.version = entry.version.min(row.version.saturating_sub(1));
        }
        self.heard(row, epoch, now)
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

    /// Nobody waits for it any more. One that no runner has is forgotten; says whether it has a row. A runner that has it is
    /// told to stop, and keeps its place until it answers or its time is up.
    pub(crate) fn abandon(&self, key: &str) -> Option<Abandoned> {
        let mut state = self.state.lock();
        let entry = state.steps.get_mut(key).filter(|entry| !entry.answering)?;
        entry.abandoned = true;
        let (owner, step, place, version) =
            (entry.step.owner(), Arc::clone(&entry.step), entry.place.clone(), entry.version);
        match place {
            Place::Queued { order } => {
                state.dequeue(&owner, &step, order);
                state.steps.remove(key);
                let row_of = (version > 0).then(|| owner.tenant.clone());
                Some(Abandoned::Forgotten { row_of })
            }
            Place::With { runner: id, seq } => {
                let runner = state.owners.get_mut(&owner)?.runners.get_mut(&id)?;
                if let Some(lease) = runner.leases.get_mut(&seq) {
                    lease.cancelled = true;
                }
                runner.cancels.insert((step.run.clone(), step.step_id.clone()));
                runner.tell_stream();
                Some(Abandoned::Told)
            }
            // It may be taken up again, or be answered late.
            Place::Lost { .. } => None,
            Place::Elsewhere { .. } => {
                let entry = state.steps.remove(key)?;
                let body = State::body(&entry, None, 0).over(None);
                Some(Abandoned::Elsewhere { body: Box::new(body), version: entry.version + 1 })
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
        for lease in runner.leases.values_mut() {
            lease.until = until;
            let Some(entry) = steps.get(&lease.key) else { continue };
            let (run, step) = (entry.step.run.clone(), entry.step.step_id.clone());
            match lease.cancelled {
                true => renewed.cancel.push((run, step)),
                false => renewed.leases.push((run, step, until)),
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
        let free = |owner: &super::OwnerBoard| {
            owner
                .runners
                .values()
                .any(|runner| runner.stream.is_some() && runner.leases.len() < runner.registration.max_concurrency)
        };
        state.owners.iter().filter(|(_, owner)| free(owner)).map(|(owner, _)| owner.clone()).collect()
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
        let row = State::body(entry, None, epoch).row(StepState::Lost, entry.version, now);
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

/// Who gave a step to the runner that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// This host, or one that is gone: it is this one's to follow.
    Here,
    /// Another host, which is there.
    Elsewhere,
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
    pub(crate) leases: Vec<(RunId, String, Timestamp)>,
    pub(crate) cancel: Vec<(RunId, String)>,
    pub(crate) drain: bool,
}

/// What is to be written when nobody waits for a step any more.
#[derive(Debug)]
pub(crate) enum Abandoned {
    Forgotten {
        /// Whose row is to be forgotten, if there is one.
        row_of: Option<TenantId>,
    },
    Told,
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

    fn idle(&mut self, owner: &RunnerOwner, id: &str, now: Timestamp) {
        if let Some(runner) = self.owners.get_mut(owner).and_then(|owner| owner.runners.get_mut(id)) {
            runner.idle_since = now;
        }
    }

    fn cancel(&mut self, owner: &RunnerOwner, id: &str, seq: u64) {
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
        if entry.abandoned {
            self.steps.remove(key);
            return Some(Ended { row: None, key: key.to_owned(), tenant });
        }
        entry.version += 1;
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
            let row = Self::body(&entry, None, epoch).row(StepState::Lost, entry.version + 1, now);
            return Some(Ended { row: entry.foreign.then_some(row), key: lease.key, tenant });
        }
        entry.version += 1;
        entry.place = Place::Lost { at: now };
        entry.standing.send_replace(Standing::Lost(reason.to_owned()));
        let row = Self::body(entry, None, epoch).row(StepState::Lost, entry.version, now);
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
