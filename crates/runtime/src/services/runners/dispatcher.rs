//! Writes down what the board decided, and lets runners see what is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::TenantId;
use baton_store::{RunnerWrite, StepState, Store, Write};

use super::board::{Abandoned, Board, Changes, Granted, Withdrawn};
use super::rows::StepBody;
use crate::Error;
use crate::clock::{Clock, RETRY_MS};
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::tasks::Tasks;

/// How long the row of an answer may take from the host that took it.
const ANSWER_MS: u64 = 1_000;
/// How often a row is written that other hosts write, too. The first one that is done stays.
const MOST_TRIES: usize = 8;

pub(crate) struct Dispatcher {
    pub(crate) runner_board: Arc<Board>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
    /// How many steps were given since old rows were forgotten.
    pub(crate) given: AtomicU64,
}

impl Dispatcher {
    /// The session of this host; 0 where there are none.
    pub(crate) fn epoch(&self) -> u64 {
        self.storage.shared().map_or(0, |shared| shared.epoch())
    }

    /// Whether a session of another host has not ended.
    pub(crate) async fn is_alive(&self, epoch: u64) -> Result<bool, Error> {
        let Some(shared) = self.storage.shared() else { return Ok(false) };
        Ok(shared.sessions().await?.iter().any(|session| session.epoch == epoch))
    }

    /// Waits until it is on disk.
    pub(crate) async fn write(&self, tenant: &TenantId, write: RunnerWrite) -> Result<(), Error> {
        let generation = self.storage.live()?.generation;
        Ok(self.storage.write(generation, Lane::Of(tenant), vec![Write::Runners(write)]).await?)
    }

    pub(crate) fn carry_out(self: &Arc<Self>, changes: Changes) {
        for ended in changes.ended {
            self.note(
                Lane::Of(&ended.tenant),
                match ended.row {
                    Some(row) => RunnerWrite::PutStep(row),
                    None => RunnerWrite::DeleteStep { key: ended.key },
                },
            );
        }
        self.give(changes.granted);
    }

    /// Writes each down and shows it to its runner then.
    pub(crate) fn give(self: &Arc<Self>, granted: impl IntoIterator<Item = Granted>) {
        for one in granted {
            self.given.fetch_add(1, Ordering::Relaxed);
            self.tasks.spawn(self, |room| async move { room.give_one(one).await });
        }
    }

    async fn give_one(self: &Arc<Self>, granted: Granted) {
        let written = async {
            let mut writes = vec![Write::Runners(RunnerWrite::PutStep(granted.row.clone()))];
            if let Some(registration) = &granted.registration {
                writes.push(Write::Runners(RunnerWrite::PutRunner(registration.row())));
            }
            let live = self.storage.live()?;
            self.storage.write(live.generation, Lane::Of(&granted.owner.tenant), writes).await?;
            if !granted.contested || self.storage.shared().is_none() {
                return Ok(None);
            }
            // Another host may have been first.
            let row = self.store.step(&granted.key).await?;
            Ok::<_, Error>(row.filter(|row| *row != granted.row))
        };
        match written.await {
            Ok(None) => {
                if !self.runner_board.durable(&granted) && self.epoch() == 0 {
                    self.note(Lane::Of(&granted.owner.tenant), RunnerWrite::DeleteStep { key: granted.key });
                }
            }
            Ok(Some(row)) => {
                let next = self.runner_board.contest_lost(&row, self.epoch(), self.clock.now());
                self.give(next);
            }
            Err(error) => {
                tracing::debug!(%error, run = %granted.row.run, "a step could not be given to its runner; trying again");
                self.runner_board.take_back(&granted, self.clock.now());
                tokio::select! {
                    biased;
                    () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                    () = self.tasks.stop.cancelled() => return,
                }
                let (epoch, now) = (self.epoch(), self.clock.now());
                let again = self.runner_board.fill(&granted.owner, &granted.runner, epoch, now);
                self.give(again);
            }
        }
    }

    /// Nobody waits for a step any more.
    pub(crate) fn abandoned(self: &Arc<Self>, key: &str) {
        match self.runner_board.abandon(key, self.epoch(), self.clock.now()) {
            Some(Abandoned::Forgotten(withdrawn)) => self.withdrawn(withdrawn),
            Some(Abandoned::Elsewhere { body, version }) => {
                self.tasks.spawn(self, |room| async move { room.tell_holder(*body, version).await });
            }
            None => {}
        }
    }

    /// Nobody waits for a step, and no runner here has seen it.
    pub(crate) fn withdrawn(self: &Arc<Self>, withdrawn: Withdrawn) {
        let Withdrawn { body, version, granted } = withdrawn;
        self.give(granted);
        if self.epoch() == 0 {
            self.note(Lane::Of(&body.step.tenant), RunnerWrite::DeleteStep { key: body.step.key() });
        } else {
            self.tasks.spawn(self, |room| async move { room.say_over(*body, version).await });
        }
    }

    /// Takes a step from a runner that has not seen it. False if one may have.
    pub(crate) fn take_back_unseen(self: &Arc<Self>, key: &str) -> bool {
        let withdrawn = self.runner_board.withdraw_unseen(key, self.epoch(), self.clock.now());
        let taken = withdrawn.is_some();
        withdrawn.into_iter().for_each(|withdrawn| self.withdrawn(withdrawn));
        taken
    }

    /// Tells the host that gave a step to a runner that nobody waits for it, unless that is because it was answered: then the
    /// host that took the answer says so.
    async fn tell_holder(&self, body: StepBody, version: u64) {
        tokio::select! {
            biased;
            () = self.clock.until(self.clock.now().plus_millis(ANSWER_MS)) => {}
            () = self.tasks.stop.cancelled() => return,
        }
        self.say_over(body, version).await;
    }

    /// Says in the step's row that nobody waits for it, whatever other hosts write there meanwhile.
    async fn say_over(&self, body: StepBody, version: u64) {
        let mut version = version;
        for _ in 0..MOST_TRIES {
            match self.store.step(&body.step.key()).await {
                Ok(Some(row)) if row.state == StepState::Done => return,
                Ok(Some(row)) => version = version.max(row.version + 1),
                Ok(None) | Err(_) => {}
            }
            let row = body.row(StepState::Done, version, self.clock.now());
            if let Err(error) = self.write(&body.step.tenant, RunnerWrite::PutStep(row)).await {
                tracing::debug!(%error, run = %body.step.run, "a step that nobody waits for could not be withdrawn");
                return;
            }
        }
    }

    /// A step waits, and runners of other hosts may take it.
    pub(crate) fn tell_others(&self, body: &StepBody, version: u64) {
        if self.storage.shared().is_some() {
            let queued = body.row(StepState::Queued, version, self.clock.now());
            self.note(Lane::Of(&body.step.tenant), RunnerWrite::PutStep(queued));
        }
    }

    /// Queued behind everything else in its lane, and waited for by nobody: without it, more is in doubt than need be.
    pub(crate) fn note(&self, lane: Lane<'_>, write: RunnerWrite) {
        if let Ok(live) = self.storage.live() {
            drop(self.storage.write(live.generation, lane, vec![Write::Runners(write)]));
        }
    }
}
