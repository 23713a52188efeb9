//! What has to be done about runners as time goes by, and when other hosts changed something.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_model::Timestamp;
use baton_store::{RunnerWrite, StepRow, StepState, Store};

use super::board::{Before, Board, Changes};
use super::dispatcher::Dispatcher;
use super::names::RunnerOwner;
use super::news::RunnerNews;
use super::registry::RunnerRegistry;
use super::rows::StepBody;
use super::tokens::RunnerTokens;
use super::{FORGET_DONE_MS, FORGET_STEPS_MS};
use crate::Error;
use crate::clock::Clock;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::tasks::Tasks;

/// How often leases are looked at.
const TICK_MS: u64 = 1_000;
/// After how many of those old rows are forgotten.
const FORGET_EVERY: u64 = 60;
/// How many steps that wait on other hosts are read at a time, and how often for one owner.
const PAGE: usize = 500;
const MOST_PAGES: usize = 40;
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
            let limit = FORGET_AT_ONCE.max(2 * given);
            for (state, after_ms) in [(Some(StepState::Done), FORGET_DONE_MS), (None, FORGET_STEPS_MS)] {
                let before = Timestamp::from_micros(self.clock.now().as_micros() - (after_ms * 1000).cast_signed());
                self.dispatcher.note(Lane::Host, RunnerWrite::ForgetSteps { before, state, limit });
            }
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
        let (mut steps, mut owners) = (heard.steps, heard.owners);
        if heard.all {
            steps.extend(self.runner_board.elsewhere().into_iter().map(|key| (key, String::new())));
            owners.extend(self.runner_board.owners_with_places());
        }
        for (key, owner) in steps {
            if self.runner_board.knows(&key) {
                if let Some(row) = self.store.step(&key).await? {
                    let granted = self.runner_board.heard(&row, self.dispatcher.epoch(), self.clock.now());
                    self.dispatcher.give(granted);
                }
            } else {
                owners.extend(self.runner_board.waits_elsewhere(&owner));
            }
        }
        for owner in owners {
            self.take_waiting(&owner).await?;
        }
        Ok(())
    }

    /// Takes steps that wait on other hosts for runners that are here, as long as these have places.
    async fn take_waiting(&self, owner: &RunnerOwner) -> Result<(), Error> {
        if self.storage.shared().is_none() {
            return Ok(());
        }
        let (key, mut after) = (owner.key(), None::<(Timestamp, String)>);
        for _ in 0..MOST_PAGES {
            if !self.runner_board.has_place(owner) {
                self.runner_board.looked(owner, false);
                return Ok(());
            }
            let from = after.as_ref().map(|(at, key)| (*at, key.as_str()));
            let rows = self.store.steps_of(&key, StepState::Queued, from, PAGE).await?;
            after = rows.last().map(|row| (row.at, row.key.clone())).filter(|_| rows.len() >= PAGE);
            rows.iter().for_each(|row| self.take_one(row));
            if after.is_none() {
                self.runner_board.looked(owner, true);
                return Ok(());
            }
        }
        self.runner_board.looked(owner, false);
        Ok(())
    }

    fn take_one(&self, row: &StepRow) {
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        let Some(body) = StepBody::read(row).filter(|_| !self.runner_board.knows(&row.key)) else { return };
        if body.is_given_up() {
            return;
        }
        let before = Before { version: row.version, given: body.given, foreign: true };
        match self.runner_board.queue(Arc::new(body.step), before, epoch, now) {
            Ok((_, Some(granted))) => self.dispatcher.give([granted]),
            // No runner here can have it now: whoever wants it knows of it.
            Ok((_, None)) => drop(self.runner_board.give_up_waiting(&row.key)),
            Err(_) => {}
        }
    }
}
