//! What has to be done about runners as time goes by, and when other hosts changed something.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_model::Timestamp;
use baton_store::{RunnerWrite, StepState, Store};

use super::FORGET_STEPS_MS;
use super::board::{Before, Board, Changes, MOST_QUEUED};
use super::dispatcher::Dispatcher;
use super::names::RunnerOwner;
use super::news::RunnerNews;
use super::registry::RunnerRegistry;
use super::rows::StepBody;
use super::tokens::RunnerTokens;
use crate::Error;
use crate::clock::Clock;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::tasks::Tasks;

/// How often leases are looked at.
const TICK_MS: u64 = 1_000;
/// After how many of those old rows are forgotten.
const FORGET_EVERY: u64 = 600;
/// How many rows are forgotten at a time at least; where more were written since, twice as many.
const FORGET_AT_ONCE: u64 = 10_000;

pub(crate) struct RunnerUpkeep {
    pub(crate) runner_board: Arc<Board>,
    pub(crate) runner_news: Arc<RunnerNews>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) registry: Arc<RunnerRegistry>,
    pub(crate) runner_tokens: Arc<RunnerTokens>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl RunnerUpkeep {
    /// Who is there when the host opens.
    pub(crate) async fn load(&self) -> Result<(), Error> {
        self.runner_tokens.load().await?;
        self.registry.load().await
    }

    pub(crate) async fn keep_leases(&self) {
        let mut ticks = 0_u64;
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.clock.until_housekeeping(self.clock.now().plus_millis(TICK_MS)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
            ticks += 1;
            let changes = self.runner_board.expire(self.dispatcher.epoch(), self.clock.now());
            self.dispatcher.carry_out(changes);
            if let Err(error) = self.tidy(ticks).await {
                tracing::debug!(%error, "runners could not be tidied up");
            }
        }
    }

    async fn tidy(&self, ticks: u64) -> Result<(), Error> {
        for row in self.runner_tokens.expired() {
            self.registry.forget_token(&row.id).await?;
            self.runner_tokens.forget(&row).await?;
        }
        let now = self.clock.now();
        for key in self.runner_board.to_look_at(now) {
            self.look_at(&key).await?;
        }
        let in_time = ticks.is_multiple_of(FORGET_EVERY);
        if in_time {
            self.registry.forget_silent().await?;
        }
        let given = self.dispatcher.given.load(Ordering::Relaxed);
        if in_time || given >= FORGET_AT_ONCE {
            self.dispatcher.given.fetch_sub(given, Ordering::Relaxed);
            let before = Timestamp::from_micros(self.clock.now().as_micros() - (FORGET_STEPS_MS * 1000).cast_signed());
            let forget = RunnerWrite::ForgetSteps { before, limit: FORGET_AT_ONCE.max(2 * given) };
            self.dispatcher.note(Lane::Host, forget);
        }
        Ok(())
    }

    /// A step that another host gave to a runner: is that host there?
    async fn look_at(&self, key: &str) -> Result<(), Error> {
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        let row = self.store.step(key).await?;
        if let Some(row) = &row {
            let granted = self.runner_board.heard(row, epoch, now);
            self.dispatcher.give(granted);
        }
        let by = row.as_ref().and_then(StepBody::read).map_or(0, |body| body.epoch);
        if by == epoch || self.dispatcher.is_alive(by).await? {
            self.runner_board.look_later(key, now);
        } else {
            let ended = self.runner_board.lost_elsewhere(key, epoch, now).into_iter().collect();
            self.dispatcher.carry_out(Changes { ended, granted: Vec::new() });
        }
        Ok(())
    }

    /// Looks at what other hosts changed.
    pub(crate) async fn keep_up(&self) {
        loop {
            tokio::select! {
                biased;
                () = self.runner_news.woken.notified() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            if let Err(error) = self.look().await {
                tracing::debug!(%error, "what other hosts changed about runners could not be read");
                self.runner_news.look_at_all();
                tokio::select! {
                    biased;
                    () = self.clock.until(self.clock.now().plus_millis(TICK_MS)) => {}
                    () = self.tasks.stop.cancelled() => return,
                }
            }
        }
    }

    async fn look(&self) -> Result<(), Error> {
        let heard = self.runner_news.take();
        if heard.runners || heard.all {
            for gone in self.runner_tokens.load().await? {
                self.registry.forget_token(&gone.id).await?;
            }
            self.registry.load().await?;
        }
        let mut steps = heard.steps;
        if heard.all {
            steps.extend(self.runner_board.elsewhere().into_iter().map(|key| (key, String::new())));
            for owner in self.runner_board.owners_with_places() {
                self.take_waiting(&owner).await?;
            }
        }
        for (key, owner) in steps {
            if self.runner_board.knows(&key) {
                if let Some(row) = self.store.step(&key).await? {
                    let granted = self.runner_board.heard(&row, self.dispatcher.epoch(), self.clock.now());
                    self.dispatcher.give(granted);
                }
            } else if let Some(owner) = self.owner_here(&owner) {
                self.take_waiting(&owner).await?;
            }
        }
        Ok(())
    }

    /// The owner of this key, if one of its runners here has a place free.
    fn owner_here(&self, key: &str) -> Option<RunnerOwner> {
        self.runner_board.owners_with_places().into_iter().find(|owner| owner.key() == key)
    }

    /// Takes steps that wait on other hosts for runners that are here.
    async fn take_waiting(&self, owner: &RunnerOwner) -> Result<(), Error> {
        if self.storage.shared().is_none() {
            return Ok(());
        }
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        for row in self.store.steps_of(&owner.key(), StepState::Queued, MOST_QUEUED).await? {
            if self.runner_board.knows(&row.key) {
                continue;
            }
            let Some(body) = StepBody::read(&row) else { continue };
            if body.is_given_up() {
                continue;
            }
            let before = Before { version: row.version, given: body.given, foreign: true };
            match self.runner_board.queue(Arc::new(body.step), before, epoch, now) {
                Ok((_, Some(granted))) => self.dispatcher.give([granted]),
                // No runner here can have it now: whoever wants it knows of it.
                Ok((_, None)) => drop(self.runner_board.give_up_waiting(&row.key)),
                Err(_) => {}
            }
        }
        Ok(())
    }
}
