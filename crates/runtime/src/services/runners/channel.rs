//! What runners say to the host, and what they are told: the stream, reports and results.

use std::sync::Arc;

use baton_engine::{Command, Returned};
use baton_model::tool::{ToolFault, ToolOutcome};
use baton_model::{Digest, NodeId, RunId, Secret, Timestamp, code, redact, redact_value};
use baton_store::{RunnerWrite, StepState, Store, Write};
use baton_tool::runner;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::board::{Answerable, Before, Board, Reader, Said, Standing, Told};
use super::dispatcher::Dispatcher;
use super::names::{RunnerOwner, step_key};
use super::news::RunnerNews;
use super::registry::RunnerRegistry;
use super::rows::{Step, StepBody, model_step};
use super::tokens::RunnerBearer;
use super::{LEASE_MS, MOST_ROWS};
use crate::clock::Clock;
use crate::cluster::forward::Forwarding;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::keyed_locks::LoadLocks;
use crate::run::commands::RunCommands;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Options};

/// How many steps one report may be about.
const MOST_REPORTS: usize = 2_000;
/// How long one result may take until it is on its run's log.
const RESULT_MS: u64 = 20_000;
const MOST_REASON_CHARS: usize = 500;
/// Numbers of steps are whole in every language.
const GREATEST_SEQ: u64 = 1 << 52;

/// What became of a step, as a runner says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResultFrame {
    pub run_id: RunId,
    pub step_id: String,
    pub seq: u64,
    pub output: Map<String, Value>,
}

/// A step of a model that no run waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct OutsideStep {
    pub owner: RunnerOwner,
    pub run: RunId,
    pub step: String,
    pub provider: String,
    pub model: String,
    pub inputs: Map<String, Value>,
}

/// How a runner is doing, and what it has in hand.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerReports {
    #[serde(default)]
    pub draining: bool,
    #[serde(default)]
    pub reports: Vec<RunnerReport>,
}

/// How one step is doing.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerReport {
    pub run_id: RunId,
    pub step_id: String,
    pub seq: u64,
    pub state: ReportedState,
    #[serde(default)]
    pub progress: Option<f64>,
    #[serde(default)]
    pub total: Option<f64>,
    #[serde(default)]
    pub message: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReportedState {
    Started,
    Progress,
    Released,
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepName {
    pub run_id: RunId,
    pub step_id: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StepLease {
    pub step: StepName,
    pub seq: u64,
    pub expires_at: Timestamp,
}

/// What a runner has in hand as far as the host knows, and what it should stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunnerWork {
    pub leases: Vec<StepLease>,
    /// Each with its number.
    pub cancel: Vec<(StepName, u64)>,
    pub drain: bool,
}

/// Speaks with runners.
pub(crate) struct RunnerChannel {
    pub(crate) runner_board: Arc<Board>,
    pub(crate) runner_news: Arc<RunnerNews>,
    pub(crate) answering_steps: Arc<LoadLocks>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) secrets: Arc<[Secret]>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) forwarding: Arc<Forwarding>,
    pub(crate) registry: Arc<RunnerRegistry>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl RunnerChannel {
    /// Takes a result, and says whether it was known already. The run's log has it when this returns. Results come many at a
    /// time: one that cannot be recorded now holds up the others only so long.
    pub(crate) async fn result(&self, bearer: &RunnerBearer, id: &str, frame: ResultFrame) -> Result<bool, Error> {
        let until = self.clock.now().plus_millis(RESULT_MS);
        tokio::select! {
            biased;
            taken = self.take_result(bearer, id, frame) => taken,
            () = self.clock.until(until) => {
                let message = "The result could not be recorded in time. Send it again.";
                Err(Error::new(ErrorKind::Unavailable, code::SERVICE_UNAVAILABLE, message).with("retriable", true))
            }
        }
    }

    async fn take_result(&self, bearer: &RunnerBearer, id: &str, frame: ResultFrame) -> Result<bool, Error> {
        let key = step_key(&frame.run_id, &frame.step_id);
        // Of two results of one step the second sees what became of the first.
        let _alone = self.answering_steps.lock(&key).await;
        let (known, state) = self.known(&key).await?;
        let body = &known.body;
        let given = body.given.iter().any(|given| given.runner == id && given.seq == frame.seq);
        if body.step.owner() != bearer.owner || !given {
            return Err(not_leased());
        }
        self.runner_board.alive(&bearer.owner, id, self.clock.now());
        let digest = Digest::of_json(&Value::Object(frame.output.clone()));
        if state == Some(StepState::Done) {
            return match body.digest.as_ref() {
                Some(recorded) if *recorded == digest => Ok(true),
                Some(_) => Err(conflict()),
                None => Err(terminal()),
            };
        }
        let pool = body.step.tool.split_once('.').and_then(|(pool, _)| self.options.runners.get(pool));
        let most = pool.map_or_else(|| runner::PoolSettings::default().max_output_bytes, |pool| pool.max_output_bytes);
        let bytes = serde_json::to_string(&frame.output).map_or(0, |text| text.len());
        if bytes > most {
            let message = format!("The output has {bytes} bytes, more than the {most} that are kept.");
            return Err(Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message).with("limitBytes", most));
        }
        if state.is_some() || known.abandoned {
            let row = self.store.run(&frame.run_id).await?;
            if row.is_none_or(|row| row.status.is_terminal()) {
                self.finish(&key, &bearer.owner);
                return Err(terminal());
            }
        }
        if known.body.step.node.as_str().is_empty() {
            let over = StepBody { output: Some(frame.output.clone()), ..known.body.over(Some(digest)) };
            let row = over.row(StepState::Done, known.version + 1, self.clock.now());
            self.registry.write(&known.body.step.tenant, RunnerWrite::PutStep(row)).await?;
            self.finish(&key, &bearer.owner);
            return Ok(false);
        }
        let outcome = self.outcome(&known, &frame.output);
        let _answering = Answering::new(&self.runner_board, &key);
        self.tell_run(&known, digest, outcome).await?;
        self.finish(&key, &bearer.owner);
        Ok(false)
    }

    /// What is known of a step: here, or in the store with the state it has there.
    async fn known(&self, key: &str) -> Result<(Answerable, Option<StepState>), Error> {
        if let Some(here) = self.runner_board.look(key) {
            return Ok((here, None));
        }
        let row = self.store.step(key).await?.ok_or_else(not_leased)?;
        let body = StepBody::read(&row).ok_or_else(not_leased)?;
        Ok((Answerable { body, version: row.version, abandoned: false, began: None }, Some(row.state)))
    }

    /// What came back, without anything that must not be stored.
    fn outcome(&self, known: &Answerable, output: &Map<String, Value>) -> ToolOutcome {
        let outcome = runner::read_output(&known.body.step.tool, output);
        let error = outcome.error.map(|error| ToolFault { message: redact(&error.message, &self.secrets), ..error });
        let duration_ms = known.began.map(|began| self.clock.now().millis_since(began));
        ToolOutcome { value: redact_value(&outcome.value, &self.secrets), error, duration_ms, ..outcome }
    }

    /// A step that no run waits for: to a runner that can have it at once, or to nobody. Says what came of it, and whether
    /// that was known before. For tests of the protocol; steps of runs go another way to the same runners.
    pub(crate) async fn dispatch(self: &Arc<Self>, step: OutsideStep) -> Result<(Map<String, Value>, bool), Error> {
        let OutsideStep { owner, run, step, provider, model, inputs } = step;
        let step = Arc::new(Step {
            tenant: owner.tenant.clone(),
            subject: owner.subject.clone(),
            run,
            step_id: step,
            node: NodeId::new(""),
            tool: model_step(&provider, &model),
            version: None,
            inputs,
            timeout_ms: LEASE_MS,
            again: 0,
            trace: None,
        });
        let key = step.key();
        if let Some(output) = self.outside_output(&key, &owner).await? {
            return Ok((output, true));
        }
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        let queued = self.runner_board.queue(step, Before::default(), epoch, now);
        let Ok((mut standing, Some(granted))) = queued else {
            self.runner_board.give_up_waiting(&key);
            let message = "No runner of this subject can do that now.";
            let error = Error::new(ErrorKind::Unavailable, code::RUNNER_UNAVAILABLE, message);
            return Err(error.with("retriable", true).with("retryAfter", 1));
        };
        self.dispatcher.give([granted]);
        let over = standing.wait_for(|standing| !matches!(standing, Standing::Queued | Standing::Given));
        tokio::select! {
            biased;
            _ = over => {}
            () = self.tasks.stop.cancelled() => {}
        }
        let output = self.outside_output(&key, &owner).await?;
        output.map(|output| (output, false)).ok_or_else(not_leased)
    }

    async fn outside_output(&self, key: &str, owner: &RunnerOwner) -> Result<Option<Map<String, Value>>, Error> {
        let row = self.store.step(key).await?.filter(|row| row.owner == owner.key());
        Ok(row.and_then(|row| StepBody::read(&row)).and_then(|body| body.output))
    }

    /// Hands the result to its run, wherever that is driven, and waits until it is durable. The step's own row goes with it.
    async fn tell_run(&self, known: &Answerable, digest: Digest, outcome: ToolOutcome) -> Result<(), Error> {
        let Step { run, node, step_id, .. } = &known.body.step;
        let over = known.body.over(Some(digest));
        let (version, returned) = (known.version + 1, Returned::Outcome { outcome, written: Vec::new() });
        let command = Command::ToolReturned { node: node.clone(), call_id: step_id.clone(), returned };
        let row = |at| over.row(StepState::Done, version, at);
        if self.storage.shared().is_some() {
            self.forwarding.order(run, command, None).await?;
            self.dispatcher.note(Lane::Of(&known.body.step.tenant), RunnerWrite::PutStep(row(self.clock.now())));
            return Ok(());
        }
        let live = self.storage.live()?;
        let queued = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let hook = {
            let (queued, over) = (Arc::clone(&queued), over.clone());
            Box::new(move |_, at| {
                queued.store(true, std::sync::atomic::Ordering::Relaxed);
                Write::Runners(RunnerWrite::PutStep(over.row(StepState::Done, version, at)))
            })
        };
        self.commands.command(&live, run, command, Some(hook)).await?;
        if !queued.load(std::sync::atomic::Ordering::Relaxed) {
            // The run wanted nothing of it: there was no commit to go with.
            self.dispatcher.note(Lane::Of(&known.body.step.tenant), RunnerWrite::PutStep(row(self.clock.now())));
        }
        Ok(())
    }

    fn finish(&self, key: &str, owner: &RunnerOwner) {
        let next = self.runner_board.over(key, self.dispatcher.epoch(), self.clock.now());
        self.dispatcher.give(next);
        self.look_elsewhere(owner);
    }

    /// A place that nothing here fills may be for what waits on other hosts.
    fn look_elsewhere(&self, owner: &RunnerOwner) {
        if self.runner_board.wants_more(owner) {
            self.runner_news.places(owner);
        }
    }

    /// Takes what a runner says, and says what it should have in hand.
    pub(crate) async fn report(
        &self,
        bearer: &RunnerBearer,
        id: &str,
        reports: RunnerReports,
    ) -> Result<RunnerWork, Error> {
        let registration = self.registry.own(bearer, id)?;
        if reports.reports.len() > MOST_REPORTS {
            let message = format!("A report is about at most {MOST_REPORTS} steps.");
            return Err(Error::invalid(message).with("pointer", "/reports"));
        }
        if reports.draining {
            self.registry.drain(bearer, id).await?;
        }
        for report in reports.reports {
            self.one_report(bearer, id, report);
        }
        if self.storage.shared().is_some() && registration.epoch != self.dispatcher.epoch() {
            self.registry.touch(bearer, id).await?;
        }
        let now = self.clock.now();
        let renewed = self.runner_board.renew(&bearer.owner, id, now);
        self.dispatcher.give(self.runner_board.fill(&bearer.owner, id, self.dispatcher.epoch(), now));
        self.look_elsewhere(&bearer.owner);
        let name = |run_id: RunId, step_id: String| StepName { run_id, step_id };
        let expires_at = renewed.until;
        Ok(RunnerWork {
            leases: renewed
                .leases
                .into_iter()
                .map(|(run, step, seq)| StepLease { step: name(run, step), seq, expires_at })
                .collect(),
            cancel: renewed.cancel.into_iter().map(|(run, step, seq)| (name(run, step), seq)).collect(),
            drain: renewed.drain,
        })
    }

    fn one_report(&self, bearer: &RunnerBearer, id: &str, report: RunnerReport) {
        let RunnerReport { run_id, step_id, seq, state, progress, total, message, reason } = report;
        let said = match state {
            ReportedState::Started => Said::Started,
            ReportedState::Progress => Said::Progress,
            ReportedState::Released => Said::Released,
            ReportedState::Unknown => {
                let reason = reason.as_deref().map_or("The runner does not know what became of it.", |said| said);
                Said::Unknown(self.clean(reason))
            }
        };
        let at = (self.dispatcher.epoch(), self.clock.now());
        // A step that it does not have is none of its business, and is missing from the answer.
        let reported = self.runner_board.reported(&bearer.owner, id, (&run_id, &step_id, seq), said, at);
        let Some((changes, told)) = reported else { return };
        self.dispatcher.carry_out(changes);
        let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
        if let (Some(step), Some(progress)) = (told, finite(progress)) {
            let command = Command::ToolProgressed {
                node: step.node.clone(),
                call_id: step.step_id.clone(),
                progress,
                total: finite(total),
                message: message.map(|message| self.clean(&message)),
            };
            self.tell_soon(&step, command);
        }
    }

    /// Nobody waits for it, and where the run is another host's it is left out.
    fn tell_soon(&self, step: &Step, command: Command) {
        let run = step.run.clone();
        self.tasks.spawn(&self.commands, move |commands| async move {
            if let Err(error) = commands.tell_until_durable(&run, command).await {
                tracing::debug!(%run, %error, "a run could not be told how far a call is");
            }
        });
    }

    fn clean(&self, said: &str) -> String {
        redact(said, &self.secrets).chars().take(MOST_REASON_CHARS).collect()
    }

    /// Opens the stream of a runner, which ends the one before.
    pub(crate) async fn stream(
        self: &Arc<Self>,
        bearer: &RunnerBearer,
        id: &str,
        after: Option<u64>,
    ) -> Result<RunnerStream, Error> {
        if after.is_some_and(|after| after > GREATEST_SEQ) {
            return Err(Error::invalid("`Last-Event-ID` is no number of a step."));
        }
        let _alone = self.registry.changing.lock(&bearer.owner.runner_key(id)).await;
        self.registry.own(bearer, id)?;
        let at = (self.dispatcher.epoch(), self.clock.now());
        let opened = self.runner_board.open(&bearer.owner, (id, &bearer.token), after, at);
        let (reader, registration) = opened.ok_or_else(not_leased)?;
        let stream = RunnerStream { reader, channel: Arc::clone(self), ended: false };
        // Where it is, and which numbers its steps may have, is on disk before it sees one.
        self.registry.write(&bearer.owner.tenant, RunnerWrite::PutRunner(registration.row())).await?;
        self.take_over(bearer, id).await?;
        self.registry.still_good(bearer).await?;
        let granted = self.runner_board.opened(&stream.reader, at.0, self.clock.now());
        self.dispatcher.give(granted);
        if at.0 > 0 && self.runner_board.has_place(&bearer.owner) {
            self.runner_news.places(&bearer.owner);
        }
        Ok(stream)
    }
}

impl RunnerChannel {
    /// What the runner has in hand was given to it by another host: it is this one's to follow from here on.
    async fn take_over(&self, bearer: &RunnerBearer, id: &str) -> Result<(), Error> {
        let epoch = self.dispatcher.epoch();
        if epoch == 0 {
            return Ok(());
        }
        for row in self.store.steps_of(&bearer.owner.key(), StepState::Leased, None, MOST_ROWS).await? {
            let Some(body) = StepBody::read(&row) else { continue };
            let its = body.given.last().is_some_and(|given| given.runner == id);
            if !its || body.epoch == epoch || self.runner_board.has(&row.key) {
                continue;
            }
            let now = self.clock.now();
            let until = now.plus_millis(LEASE_MS);
            let taken = StepBody { until: Some(until), epoch, ..body.clone() };
            let written = taken.row(StepState::Leased, row.version + 1, now);
            self.dispatcher.write(&bearer.owner.tenant, RunnerWrite::PutStep(written.clone())).await?;
            if self.store.step(&row.key).await?.as_ref() != Some(&written) {
                continue;
            }
            let known = Before { version: written.version, given: body.given, foreign: true };
            self.runner_board.follow(Arc::new(body.step), known, (until, now));
        }
        Ok(())
    }
}

/// While a result is on its way to the run.
struct Answering<'a> {
    board: &'a Board,
    key: &'a str,
}

impl<'a> Answering<'a> {
    fn new(board: &'a Board, key: &'a str) -> Self {
        board.answering(key, true);
        Self { board, key }
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.board.answering(self.key, false);
    }
}

/// The stream of one runner.
pub struct RunnerStream {
    reader: Reader,
    channel: Arc<RunnerChannel>,
    ended: bool,
}

impl RunnerStream {
    /// The next thing to tell. Nothing after the last: the runner is gone, superseded, or the host stops.
    pub async fn next(&mut self) -> Option<Told> {
        while !self.ended {
            self.reader.changed.borrow_and_update();
            if let Some(told) = self.channel.runner_board.next(&mut self.reader) {
                self.ended = matches!(told, Told::Superseded | Told::Gone);
                return Some(told);
            }
            tokio::select! {
                biased;
                changed = self.reader.changed.changed() => self.ended = changed.is_err() && self.is_gone(),
                () = self.channel.tasks.stop.cancelled() => self.ended = true,
            }
        }
        None
    }

    /// The next thing to tell, if there is one already.
    pub fn ready(&mut self) -> Option<Told> {
        let told = if self.ended { None } else { self.channel.runner_board.next(&mut self.reader) };
        self.ended |= matches!(told, Some(Told::Superseded | Told::Gone));
        told
    }

    fn is_gone(&self) -> bool {
        self.channel.runner_board.runner(&self.reader.owner, &self.reader.id).is_none()
    }
}

impl Drop for RunnerStream {
    fn drop(&mut self) {
        self.channel.runner_board.close(&self.reader);
    }
}

fn not_leased() -> Error {
    let message = "This runner was not given that step.";
    Error::new(ErrorKind::Conflict, code::STEP_NOT_LEASED, message)
}

fn conflict() -> Error {
    let message = "Another result of this step is recorded already. The first one counts.";
    Error::new(ErrorKind::Conflict, code::RESULT_CONFLICT, message)
}

fn terminal() -> Error {
    let message = "The run has ended, or wants nothing of this step any more.";
    Error::new(ErrorKind::Conflict, code::RUN_TERMINAL, message)
}
