//! A call that a run wants of a runner: it waits for one, and for what becomes of it there. The result does not come back
//! this way; see [`super::channel`].

use std::sync::Arc;

use baton_engine::{Command, Returned, ToolCall};
use baton_model::tool::{ToolFault, ToolOutcome, ToolStatus};
use baton_model::{RunId, Timestamp, code, json as canonical};
use baton_store::{RunnerWrite, StepState, Store};
use baton_tool::runner::{self, PoolSettings};
use serde_json::Value;
use tokio::sync::watch;

use super::board::{Before, Board, Held, MOST_QUEUED, Standing};
use super::dispatcher::Dispatcher;
use super::rows::{Step, StepBody};
use super::{LEASE_MS, MOST_INPUT_BYTES};
use crate::clock::Clock;
use crate::run::commands::RunCommands;
use crate::services::tools::invocation::ToolInvocation;
use crate::tasks::Tasks;
use crate::{Error, Options};

/// How long a call waits before its run's log says so: places that are taken are free again within milliseconds.
const TOLD_AFTER_MS: u64 = 1_000;
/// How long a run may take to hear that a call was not made.
const LONGEST_WORD_MS: u64 = 2_000;
/// Which argument refers to a secret.
const SECRET: &str = "$secret";

/// Makes calls of tools that runners bring.
pub(crate) struct RunnerCalls {
    pub(crate) runner_board: Arc<Board>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) tasks: Arc<Tasks>,
}

impl RunnerCalls {
    /// What the call comes to, other than by its result. `first`: this process has just recorded that it would make it, so
    /// nobody can have made it yet.
    pub(crate) async fn call(&self, run: &RunId, invocation: &ToolInvocation, first: bool) -> Result<Returned, Error> {
        let call = &invocation.call;
        let Some((pool, tool)) = runner::parts_of(&call.tool.id) else {
            return Ok(failed(code::NOT_FOUND, format!("There is no tool {}.", call.tool.id), false));
        };
        if let Err(refused) = check(call) {
            return Ok(refused);
        }
        let settings = self.options.runners.get(pool);
        let settings = settings.map_or_else(Default::default, PoolSettings::clone);
        let step = Arc::new(step_of(run, invocation, &format!("{pool}.{tool}"), settings.timeout_of(tool)));
        let key = step.key();
        let row = if first && call.again == 0 { None } else { self.store.step(&key).await? };
        let mut before = Before::default();
        let mut adopted = None;
        if let Some((row, body)) = row.and_then(|row| StepBody::read(&row).map(|body| (row, body))) {
            before = Before { version: row.version, given: body.given, foreign: false };
            // What became of an earlier try is on the log by now.
            let this_try = body.step.again == call.again && !first;
            let now = self.clock.now();
            match row.state {
                StepState::Leased if this_try => {
                    let (until, held) = (now.plus_millis(LEASE_MS), self.held(body.epoch).await?);
                    let known = std::mem::take(&mut before);
                    adopted = Some(self.runner_board.adopt(Arc::clone(&step), known, (until, now), held));
                }
                StepState::Lost | StepState::Done if this_try => {
                    return Ok(Returned::Unknown { reason: "The host stopped while the call was open.".to_owned() });
                }
                StepState::Queued | StepState::Leased | StepState::Lost | StepState::Done => {}
            }
        }
        // Before anything is queued, so that nothing is left behind whatever happens.
        let _abandon = Abandon { room: self, key: &key };
        let standing = match adopted {
            Some(standing) => standing,
            None => match self.queue(&step, before) {
                Ok(standing) => standing,
                Err(refused) => return Ok(refused),
            },
        };
        let wait_ms = call.runner.wait_ms.unwrap_or(settings.wait_for_runner_ms);
        let waiting = Waiting { wait_ms, until: call.deadline.map(|at| shortly_before(at, self.clock.now())) };
        Ok(self.wait(&key, standing, run, call, waiting).await)
    }

    /// Who follows a step that this session gave to a runner.
    async fn held(&self, epoch: u64) -> Result<Held, Error> {
        Ok(match epoch != self.dispatcher.epoch() && self.dispatcher.is_alive(epoch).await? {
            true => Held::Elsewhere,
            false => Held::Here,
        })
    }

    /// Whoever waits for a runner does so no longer. False if it may have been given to one after all.
    async fn give_up(&self, key: &str) -> Result<bool, Error> {
        if self.dispatcher.epoch() == 0 {
            return Ok(self.runner_board.give_up_waiting(key));
        }
        let Some((body, version)) = self.runner_board.waiting(key) else { return Ok(false) };
        // A runner of another host may be given it at this very moment: the store says who was first.
        let now = self.clock.now();
        let row = body.over(None).row(StepState::Done, version, now);
        self.dispatcher.write(&body.step.tenant, RunnerWrite::PutStep(row.clone())).await?;
        match self.store.step(key).await? {
            Some(found) if found != row => {
                let granted = self.runner_board.contest_lost(&found, self.dispatcher.epoch(), now);
                self.dispatcher.give(granted);
                Ok(false)
            }
            _ => Ok(self.runner_board.give_up_waiting(key)),
        }
    }

    #[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
    fn queue(&self, step: &Arc<Step>, before: Before) -> Result<watch::Receiver<Standing>, Returned> {
        let (version, given) = (before.version, before.given.clone());
        let (epoch, now) = (self.dispatcher.epoch(), self.clock.now());
        let Ok((standing, granted)) = self.runner_board.queue(Arc::clone(step), before, epoch, now) else {
            let message = format!("{MOST_QUEUED} steps wait for runners of {} already.", step.subject);
            return Err(failed(code::RATE_LIMITED, message, true));
        };
        match granted {
            Some(granted) => self.dispatcher.give([granted]),
            None if self.dispatcher.epoch() == 0 => {}
            None => {
                let body = StepBody { step: (**step).clone(), given, digest: None, until: None, output: None, epoch };
                self.runner_board.noted(&step.key(), version + 1);
                self.dispatcher.tell_others(&body, version + 1);
            }
        }
        Ok(standing)
    }

    async fn wait(
        &self,
        key: &str,
        mut standing: watch::Receiver<Standing>,
        run: &RunId,
        call: &ToolCall,
        Waiting { wait_ms, mut until }: Waiting,
    ) -> Returned {
        let mut since: Option<Timestamp> = None;
        let mut told = false;
        loop {
            let now = self.clock.now();
            if until.is_some_and(|until| until <= now) {
                // After this the run's own time is up, and a call that is open then is in doubt.
                until = None;
                if self.give_up(key).await.unwrap_or(false) || self.dispatcher.take_back_unseen(key) {
                    return out_of_time(call);
                }
            }
            let current = standing.borrow_and_update().clone();
            let wake_at = match current {
                Standing::Lost(reason) => return Returned::Unknown { reason },
                Standing::GivenBack => return given_back(call),
                Standing::Over | Standing::Given => {
                    since = None;
                    until
                }
                Standing::Queued => {
                    let began = *since.get_or_insert(now);
                    let deadline = began.plus_millis(wait_ms);
                    if now >= deadline && self.give_up(key).await.unwrap_or(false) {
                        return unavailable(call, wait_ms);
                    }
                    let tell_at = began.plus_millis(TOLD_AFTER_MS);
                    if !told && now >= tell_at {
                        told = true;
                        self.tell_waiting(run, call, wait_ms);
                    }
                    let next = if told { deadline } else { tell_at.min(deadline) };
                    // One that was given to a runner a moment ago stands as queued until that is on disk.
                    let next = if now >= next { now.plus_millis(TOLD_AFTER_MS) } else { next };
                    Some(until.map_or(next, |until| until.min(next)))
                }
            };
            let changed = match wake_at {
                Some(at) => tokio::select! {
                    biased;
                    changed = standing.changed() => changed,
                    () = self.clock.until(at) => Ok(()),
                },
                None => standing.changed().await,
            };
            if changed.is_err() && !matches!(*standing.borrow(), Standing::Lost(_) | Standing::GivenBack) {
                // The result is on its way to the run, and ends this.
                return std::future::pending().await;
            }
        }
    }

    fn tell_waiting(&self, run: &RunId, call: &ToolCall, wait_for_runner_ms: u64) {
        let (run, node, call_id) = (run.clone(), call.node.clone(), call.call_id.clone());
        self.tasks.spawn(&self.commands, move |commands| async move {
            let awaited = Command::RunnerAwaited { node, call_id, wait_for_runner_ms };
            if let Err(error) = commands.tell_until_durable(&run, awaited).await {
                tracing::debug!(%run, %error, "a run could not be told that it waits for a runner");
            }
        });
    }
}

/// How long a call waits for a runner to have it.
struct Waiting {
    wait_ms: u64,
    /// Shortly before its node's time is up.
    until: Option<Timestamp>,
}

/// Early enough that a call which nobody has is off the log when the time is up.
fn shortly_before(deadline: Timestamp, now: Timestamp) -> Timestamp {
    let left = deadline.millis_since(now);
    now.plus_millis(left.saturating_sub((left / 4).clamp(1, LONGEST_WORD_MS)))
}

/// Whoever stops waiting says so, unless the host stops: after that somebody waits again.
struct Abandon<'a> {
    room: &'a RunnerCalls,
    key: &'a str,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if !self.room.tasks.stop.is_cancelled() {
            self.room.dispatcher.abandoned(self.key);
        }
    }
}

fn step_of(run: &RunId, invocation: &ToolInvocation, tool: &str, timeout_ms: u64) -> Step {
    let call = &invocation.call;
    Step {
        tenant: invocation.tenant.clone(),
        subject: invocation.subject.clone(),
        run: run.clone(),
        step_id: call.call_id.clone(),
        node: call.node.clone(),
        tool: tool.to_owned(),
        version: call.runner.version.clone(),
        inputs: call.arguments.as_object().cloned().unwrap_or_default(),
        timeout_ms: call.timeout_ms.map_or(timeout_ms, |of_node| of_node.min(timeout_ms)),
        again: call.again,
        trace: invocation.trace.clone(),
    }
}

/// What no runner is sent.
#[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
fn check(call: &ToolCall) -> Result<(), Returned> {
    if has_secret(&call.arguments) {
        let message = "A runner keeps its own credentials: its tools are not sent secrets of this host.";
        return Err(failed(code::CREDENTIAL_FORBIDDEN, message.to_owned(), false));
    }
    let bytes = canonical::canonical(&call.arguments).len();
    if bytes > MOST_INPUT_BYTES {
        let message = format!("The arguments have {bytes} bytes, more than the {MOST_INPUT_BYTES} that are sent.");
        return Err(failed(code::PAYLOAD_TOO_LARGE, message, false));
    }
    Ok(())
}

/// Values on the log are bounded in depth, so this is too.
fn has_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key(SECRET) || map.values().any(has_secret),
        Value::Array(list) => list.iter().any(has_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn unavailable(call: &ToolCall, wait_ms: u64) -> Returned {
    let message = format!(
        "No runner took the call of {} within {wait_ms} ms, so it was not made. Start one, or look whether it is full.",
        call.tool.id
    );
    failed(code::RUNNER_UNAVAILABLE, message, true)
}

fn out_of_time(call: &ToolCall) -> Returned {
    let message =
        format!("No runner took the call of {} while there was time for it, so it was not made.", call.tool.id);
    failed(code::RUNNER_UNAVAILABLE, message, true)
}

fn given_back(call: &ToolCall) -> Returned {
    let message = format!(
        "Every runner that took the call of {} gave it back, so it was not made. Look at what their programs write.",
        call.tool.id
    );
    failed(code::RUNNER_UNAVAILABLE, message, true)
}

/// It is certain that the call was not made.
fn failed(code: &str, message: String, retryable: bool) -> Returned {
    let error = ToolFault { code: code.to_owned(), message, details: None, retryable: Some(retryable) };
    let outcome = ToolOutcome { status: ToolStatus::Error, value: Value::Null, error: Some(error), duration_ms: None };
    Returned::Outcome { outcome, written: Vec::new() }
}
