//! Which runner gets which step: one of the same tenant and subject, that has the tool in a version that will do, and a free
//! place; of several the one with the least to do, and of those the one that has been idle longest. Steps that wait are
//! taken in the order in which they came.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::Timestamp;
use baton_store::StepState;
use tokio::sync::watch;

use super::{
    Attached, Board, Changes, Demand, Entry, Given, Granted, Lease, MOST_QUEUED, OwnerBoard, Place, Registration,
    RunnerOwner, SEQ_BLOCK, Standing, State, Step,
};
use crate::services::runners::{LEASE_MS, MOST_GIVEN};

/// Too many steps of the subject wait already.
#[derive(Debug)]
pub(crate) struct QueueFull;

/// What is known of a step from before.
#[derive(Default)]
pub(crate) struct Before {
    /// Of its row.
    pub(crate) version: u64,
    pub(crate) given: Vec<Given>,
    /// The run is driven by another host.
    pub(crate) foreign: bool,
}

impl Board {
    /// A runner that signed in or changed. What it has in hand stays with it.
    pub(crate) fn attach(&self, registration: Arc<Registration>, epoch: u64, now: Timestamp) -> Changes {
        let mut state = self.state.lock();
        let (owner, draining) = (registration.owner(), registration.draining);
        let id = registration.runner_id.clone();
        state.names.entry(owner.key()).or_insert_with(|| owner.clone());
        let runners = &mut state.owners.entry(owner.clone()).or_default().runners;
        let version = registration.version.as_deref().and_then(|text| semver::Version::parse(text).ok());
        match runners.get_mut(&id) {
            Some(there) => {
                if there.registration.draining && !registration.draining {
                    there.drain_told = false;
                }
                if registration.seq_limit > there.registration.seq_limit {
                    // Another host gave out numbers meanwhile.
                    there.next_seq = there.next_seq.max(registration.seq_limit);
                }
                there.version = version;
                there.seen_at = there.seen_at.max(registration.seen_at);
                there.registration = registration;
                there.tell_stream();
            }
            None => {
                let attached = Attached {
                    version,
                    leases: BTreeMap::new(),
                    next_seq: registration.seq_limit,
                    stream: None,
                    revoked: None,
                    late: BTreeSet::new(),
                    changed: watch::Sender::new(0),
                    cancels: Default::default(),
                    drain_told: false,
                    silent: false,
                    idle_since: now,
                    seen_at: registration.seen_at,
                    registration,
                };
                runners.insert(id.clone(), attached);
            }
        }
        if draining {
            // It is shown nothing more: whatever it has not seen is somebody else's.
            let ended = state.take_unshown(&owner, &id, epoch, now);
            return Changes { ended, granted: state.fill_all(&owner, epoch, now) };
        }
        Changes { ended: Vec::new(), granted: state.fill(&owner, &id, epoch, now) }
    }

    /// A step waits for a runner. Whoever waits for the step sees how it stands.
    pub(crate) fn queue(
        &self,
        step: Arc<Step>,
        before: Before,
        epoch: u64,
        now: Timestamp,
    ) -> Result<(watch::Receiver<Standing>, Option<Granted>), QueueFull> {
        let mut state = self.state.lock();
        let (owner, key) = (step.owner(), step.key());
        let of_owner = state.owners.entry(owner.clone()).or_default();
        if of_owner.queued >= MOST_QUEUED && !before.foreign {
            return Err(QueueFull);
        }
        if before.foreign && state.steps.contains_key(&key) {
            return Err(QueueFull);
        }
        // One that is there already belongs to somebody who gave it up: this is the same call, taken up again. What is
        // known of it here is newer than what was read.
        let mut before = before;
        if let Some(known) = state.steps.get(&key) {
            before.version = before.version.max(known.version);
            before.given.clone_from(&known.given);
        }
        state.forget(&key);
        let order = state.number();
        let (standing, receiver) = watch::channel(Standing::Queued);
        let Before { version, given, foreign } = before;
        let entry = Entry {
            step: Arc::clone(&step),
            place: Place::Queued { order },
            standing,
            given,
            version,
            abandoned: false,
            answering: false,
            foreign,
        };
        state.steps.insert(key.clone(), entry);
        state.enqueue(&owner, &step, order, &key);
        let chosen = state.choose(&owner, &step);
        let granted = chosen.and_then(|runner| state.grant(&owner, &runner, &key, epoch, now));
        Ok((receiver, granted))
    }

    /// A row of a step that waits is on its way.
    pub(crate) fn noted(&self, key: &str, version: u64) {
        if let Some(entry) = self.state.lock().steps.get_mut(key) {
            entry.version = entry.version.max(version);
        }
    }

    /// Gives a runner what waits for one like it, as far as it has places.
    pub(crate) fn fill(&self, owner: &RunnerOwner, runner: &str, epoch: u64, now: Timestamp) -> Vec<Granted> {
        self.state.lock().fill(owner, runner, epoch, now)
    }

    /// What was granted could not be written: it waits again.
    pub(crate) fn take_back(&self, granted: &Granted, now: Timestamp) {
        let mut state = self.state.lock();
        if state.lease(&granted.owner, &granted.runner, granted.seq).is_some_and(|lease| lease.key == granted.key) {
            state.end_lease(&granted.owner, &granted.runner, granted.seq);
            if let Some(entry) = state.steps.get_mut(&granted.key) {
                entry.given.retain(|given| given.seq != granted.seq || given.runner != granted.runner);
            }
            state.queue_again(&granted.key, now);
        }
    }
}

impl Attached {
    pub(super) fn is_free(&self) -> bool {
        self.stream.is_some()
            && !self.registration.draining
            && !self.silent
            && self.leases.len() < self.registration.max_concurrency
    }

    fn fits(&self, demand: &Demand) -> bool {
        let version_fits = || match demand.version.as_deref().map(semver::VersionReq::parse) {
            None => true,
            Some(Ok(range)) => self.version.as_ref().is_some_and(|version| range.matches(version)),
            Some(Err(_)) => false,
        };
        self.registration.does(&demand.tool) && version_fits()
    }
}

impl State {
    fn demand(step: &Step) -> Demand {
        Demand { tool: step.tool.clone(), version: step.version.clone() }
    }

    fn enqueue(&mut self, owner: &RunnerOwner, step: &Step, order: u64, key: &str) {
        let of_owner = self.owners.entry(owner.clone()).or_default();
        of_owner.queues.entry(Self::demand(step)).or_default().insert(order, key.to_owned());
        of_owner.queued += 1;
    }

    pub(super) fn dequeue(&mut self, owner: &RunnerOwner, step: &Step, order: u64) {
        let Some(of_owner) = self.owners.get_mut(owner) else { return };
        let demand = Self::demand(step);
        let Some(queue) = of_owner.queues.get_mut(&demand) else { return };
        if queue.remove(&order).is_some() {
            of_owner.queued -= 1;
        }
        if queue.is_empty() {
            of_owner.queues.remove(&demand);
        }
    }

    /// It waits again, behind those that wait already, unless it was given back too often.
    pub(super) fn queue_again(&mut self, key: &str, now: Timestamp) {
        let order = self.number();
        let Some(entry) = self.steps.get_mut(key) else { return };
        if entry.given.len() >= MOST_GIVEN {
            entry.place = Place::Lost { at: now };
            entry.standing.send_replace(Standing::GivenBack);
            if entry.foreign {
                // The host that drives the run reads the same in the row.
                self.steps.remove(key);
            }
            return;
        }
        entry.place = Place::Queued { order };
        entry.standing.send_replace(Standing::Queued);
        let step = Arc::clone(&entry.step);
        self.enqueue(&step.owner(), &step, order, key);
    }

    fn choose(&self, owner: &RunnerOwner, step: &Step) -> Option<String> {
        let demand = Self::demand(step);
        let all = self.owners.get(owner)?.runners.iter();
        let fitting = all.filter(|(_, runner)| runner.is_free() && runner.fits(&demand));
        fitting.min_by_key(|(_, runner)| (runner.leases.len(), runner.idle_since)).map(|(id, _)| id.clone())
    }

    pub(super) fn fill(&mut self, owner: &RunnerOwner, id: &str, epoch: u64, now: Timestamp) -> Vec<Granted> {
        let mut granted = Vec::new();
        while let Some(key) = self.owners.get(owner).and_then(|of_owner| next_for(of_owner, id)) {
            match self.grant(owner, id, &key, epoch, now) {
                Some(one) => granted.push(one),
                None => break,
            }
        }
        granted
    }

    /// The step leaves the queue for a runner that has a place for it.
    fn grant(&mut self, owner: &RunnerOwner, id: &str, key: &str, epoch: u64, now: Timestamp) -> Option<Granted> {
        let entry = self.steps.get(key)?;
        let Place::Queued { order } = entry.place else { return None };
        let step = Arc::clone(&entry.step);
        let runner = self.owners.get_mut(owner)?.runners.get_mut(id)?;
        let seq = runner.next_seq;
        runner.next_seq += 1;
        let mut written = None;
        if seq >= runner.registration.seq_limit {
            written = Some(runner.set_aside(seq));
        }
        let until = now.plus_millis(LEASE_MS);
        runner.leases.insert(
            seq,
            Lease {
                key: key.to_owned(),
                began: now,
                until,
                ends_at: now.plus_millis(step.timeout_ms),
                durable: false,
                shown: false,
                cancelled: false,
                quiet_until: now,
            },
        );
        self.dequeue(owner, &step, order);
        let entry = self.steps.get_mut(key)?;
        entry.place = Place::With { runner: id.to_owned(), seq };
        entry.given.push(Given { runner: id.to_owned(), seq });
        let contested = entry.version > 0;
        entry.version += 1;
        let row = Self::body(entry, Some(until), epoch).row(StepState::Leased, entry.version, now);
        Some(Granted {
            key: key.to_owned(),
            owner: owner.clone(),
            runner: id.to_owned(),
            seq,
            row,
            registration: written,
            contested,
        })
    }
}

impl Attached {
    /// Sets the next numbers aside, from this one on.
    pub(super) fn set_aside(&mut self, from: u64) -> Arc<Registration> {
        let mut registration = (*self.registration).clone();
        registration.seq_limit = from.max(registration.seq_limit) + SEQ_BLOCK;
        registration.row_version += 1;
        self.registration = Arc::new(registration);
        Arc::clone(&self.registration)
    }
}

/// The step that has waited longest of those that this runner can do, if it has a place.
fn next_for(of_owner: &OwnerBoard, id: &str) -> Option<String> {
    let runner = of_owner.runners.get(id).filter(|runner| runner.is_free())?;
    let fitting = of_owner.queues.iter().filter(|(demand, _)| runner.fits(demand));
    let first = fitting.filter_map(|(_, queue)| queue.first_key_value()).min_by_key(|(order, _)| **order);
    first.map(|(_, key)| key.clone())
}
