//! Writes down what the board decided, and lets runners see what is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::TenantId;
use baton_store::{RunnerWrite, StepState, Store, Write};

use super::board::{Abandoned, Board, Changes, Granted};
use super::rows::StepBody;
use crate::Error;
use crate::clock::{Clock, RETRY_MS};
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::tasks::Tasks;

/// How long the row of an answer may take from the host that took it.
const ANSWER_MS: u64 = 1_000;

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
            Ok(None) => self.runner_board.durable(&granted),
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
        match self.runner_board.abandon(key) {
            Some(Abandoned::Forgotten { row_of: Some(tenant) }) => {
                self.note(Lane::Of(&tenant), RunnerWrite::DeleteStep { key: key.to_owned() });
            }
            Some(Abandoned::Elsewhere { body, version }) => {
                self.tasks.spawn(self, |room| async move { room.tell_holder(*body, version).await });
            }
            Some(Abandoned::Forgotten { row_of: None } | Abandoned::Told) | None => {}
        }
    }

    /// Tells the host that gave a step to a runner that nobody waits for it, unless that is because it was answered: then the
    /// host that took the answer says so.
    async fn tell_holder(&self, body: StepBody, version: u64) {
        tokio::select! {
            biased;
            () = self.clock.until(self.clock.now().plus_millis(ANSWER_MS)) => {}
            () = self.tasks.stop.cancelled() => return,
        }
        let row = self.store.step(&body.step.key()).await;
        if !matches!(row, Ok(Some(row)) if row.state == StepState::Done) {
            let done = body.row(StepState::Done, version, self.clock.now());
            self.note(Lane::Of(&body.step.tenant), RunnerWrite::PutStep(done));
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
