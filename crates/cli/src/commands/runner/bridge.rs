//! Between a host and a program: steps come in on a stream, calls go to the program, results go back.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use baton_client::{
    DispatchContext, DispatchFrame, DispatchStream, Dispatched, Error, RegisterRunner, RunnerCapabilities,
    RunnerReports, RunnerToolEntry, RunnerTools, StepReport, StepReportState, StepResults, StepToken,
};
use baton_model::tool::{Beside, RunnerRequirement, ToolOutcome, ToolRequest};
use baton_model::{TenantId, Timestamp, TraceContext, code};
use baton_tool::mcp::McpServer;
use baton_tool::{Called, Tool, ToolSource as _};
use futures_util::FutureExt as _;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until};

use super::link::{self, Link, OwnTokens};
use super::outbox::{self, Ready, Refused, Results};
use super::progress::Progress;
use super::steps::{Missing, Next, Steps};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// Often enough that two may be lost before what is in hand counts as lost.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How often the program's list of tools is compared with what the host knows.
const TOOLS: Duration = Duration::from_secs(2);
/// How often the host hears how far calls are, at most.
const PROGRESS: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long the host may take to say that it sends nothing more.
const LAST_WORD: Duration = Duration::from_secs(5);
/// How long a call waits here for a program that is being started again, before another runner may have it.
const PROGRAM: Duration = Duration::from_secs(5);
const PROGRAM_POLL: Duration = Duration::from_millis(100);

/// What the program is told of them in the metadata of a call.
const MODELS: &str = "io.baton/models";
const MEMO: &str = "io.baton/memo";

pub(super) struct Settings {
    pub(super) pool: String,
    pub(super) subject: String,
    pub(super) concurrency: usize,
    pub(super) only: Vec<String>,
    pub(super) version: Option<String>,
    pub(super) grace: Duration,
}

pub(super) struct Bridge {
    link: Link,
    server: Arc<McpServer>,
    settings: Settings,
    output: Output,
    id: String,
    steps: Steps,
    calls: JoinSet<Ended>,
    /// The last number that was seen.
    after: Option<u64>,
    offered: Vec<RunnerToolEntry>,
    reports: Vec<StepReport>,
    progress: Progress,
    draining: bool,
    /// It was told to stop, and takes nothing new.
    stopping: bool,
}

/// A call that is over.
struct Ended {
    run: String,
    step: String,
    outcome: Outcome,
}

enum Outcome {
    Output(Map<String, Value>),
    Released,
    Unknown(String),
}

/// What the connection to the host came to.
enum Connected {
    Lost,
    /// It was told to stop.
    Stopped,
    Refused(Failure),
}

impl Bridge {
    pub(super) fn new(link: Link, server: Arc<McpServer>, settings: Settings, output: Output) -> Self {
        // One process, one runner: what the last one had in hand is not this one's to answer for.
        let mut random = [0_u8; 8];
        let _ = getrandom::fill(&mut random);
        let id = format!("{}-{}", settings.pool, baton_model::json::hex(&random));
        Self {
            link,
            server,
            settings,
            output,
            id,
            steps: Steps::default(),
            calls: JoinSet::new(),
            after: None,
            offered: Vec::new(),
            reports: Vec::new(),
            progress: Progress::default(),
            draining: false,
            stopping: false,
        }
    }

    /// Serves until it is stopped, and what is in hand is done.
    pub(super) async fn run(
        mut self,
        own: &mut Option<OwnTokens>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let (ready, results) = mpsc::channel(outbox::WAITING);
        let (refused, mut refusals) = mpsc::channel(outbox::WAITING);
        let (link, id) = (self.link.clone(), self.id.clone());
        let send = async move |results| link.client().post_step_results(&id, &StepResults { results }).await;
        let posting = tokio::spawn(outbox::post(send, results, refused));
        let mut results = Results::new(ready);
        tokio::pin!(stop);
        let mut pause = FIRST_PAUSE;
        let ended = loop {
            match self.connect((&mut results, &mut refusals), own, &mut pause, stop.as_mut()).await {
                Connected::Lost => {}
                Connected::Stopped => break Ok(()),
                Connected::Refused(failure) => break Err(failure),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = &mut stop => break Ok(()),
            }
        };
        if ended.is_ok() {
            self.drain(&mut results, &mut refusals).await;
        }
        drop((results, refusals));
        let _ = tokio::time::timeout(self.settings.grace, posting).await;
        if ended.is_ok()
            && let Err(error) = self.link.client().sign_off_runner(&self.id).await
        {
            self.output.note(format_args!("signing off failed: {error}"));
        }
        ended
    }

    /// One connection, from signing in until it is lost.
    async fn connect(
        &mut self,
        results: (&mut Results, &mut mpsc::Receiver<Refused>),
        own: &mut Option<OwnTokens>,
        pause: &mut Duration,
        stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Connected {
        match self.follow(results, own, pause, stop).await {
            _ if self.stopping => Connected::Stopped,
            Ok(()) => Connected::Lost,
            Err(Error::Api { status: 401 | 403, message, .. }) => {
                Connected::Refused(Failure::new(Exit::Failed, format!("The host refused this runner: {message}")))
            }
            Err(Error::Api { code, message, .. }) if code == "superseded" => {
                Connected::Refused(Failure::new(Exit::Failed, message))
            }
            Err(Error::Api { status: 400, message, .. }) => Connected::Refused(Failure::new(Exit::Failed, message)),
            Err(error) => {
                self.output.note(format_args!("{error}; trying again"));
                Connected::Lost
            }
        }
    }

    /// Signs in, and opens the stream.
    async fn open(&mut self) -> Result<DispatchStream, Error> {
        self.offered = self.listed();
        let tools = self.offered.iter().map(|tool| format!("{}.{}", self.settings.pool, tool.name)).collect();
        let capabilities = RunnerCapabilities { tools, ..RunnerCapabilities::default() };
        let (runner_id, subject) = (self.id.clone(), self.settings.subject.clone());
        self.link.client().register_runner(&RegisterRunner { runner_id, subject, capabilities }).await?;
        self.put_tools().await?;
        self.link.client().dispatch_stream(&self.id, self.after).await
    }

    async fn follow(
        &mut self,
        (results, refusals): (&mut Results, &mut mpsc::Receiver<Refused>),
        own: &mut Option<OwnTokens>,
        pause: &mut Duration,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), Error> {
        let opened = tokio::select! {
            opened = self.open() => Some(opened),
            () = stop.as_mut() => None,
        };
        let Some(opened) = opened else {
            self.stopping = true;
            return Ok(());
        };
        let mut stream = opened?;
        *pause = FIRST_PAUSE;
        let names: Vec<String> =
            self.offered.iter().map(|tool| format!("runner:{}.{}", self.settings.pool, tool.name)).collect();
        self.output.note(format_args!(
            "connected to {} as {}: {}",
            self.link.client().base_url(),
            self.id,
            names.join(", ")
        ));
        let (mut heartbeat, mut tools, mut progress) = (interval(HEARTBEAT), interval(TOOLS), interval(PROGRESS));
        let (link, output) = (self.link.clone(), self.output);
        let mut last_word = Instant::now();
        loop {
            tokio::select! {
                () = stop.as_mut(), if !self.stopping => {
                    // Read on until the host has said that nothing more comes: what it sent before is in hand or given back.
                    (self.stopping, self.draining) = (true, true);
                    last_word = Instant::now() + LAST_WORD;
                    self.report().await?;
                }
                () = sleep_until(last_word), if self.stopping => return Ok(()),
                told = stream.next() => match told? {
                    Some(Dispatched::Step { frame, context }) => self.take(*frame, context.as_deref(), results),
                    Some(Dispatched::Cancel(name)) => self.steps.cancel(&name),
                    Some(Dispatched::Drain) if self.stopping => return Ok(()),
                    Some(Dispatched::Drain) => self.draining = true,
                    Some(Dispatched::Superseded) => {
                        let message = "Another runner of the same id is connected.".to_owned();
                        let (status, code, details) = (409, "superseded".to_owned(), Map::new());
                        return Err(Error::Api { status, code, message, details });
                    }
                    None => return Ok(()),
                },
                Some(ended) = self.calls.join_next(), if !self.calls.is_empty() => {
                    self.ended(ended, results);
                    if !self.reports.is_empty() {
                        self.report().await?;
                    }
                }
                Some(refused) = refusals.recv() => self.refused(refused),
                // Sign in with the new token, so that nothing hangs on the old one.
                () = link::renewed(own, &link, output) => return Ok(()),
                _ = heartbeat.tick() => {
                    results.flush();
                    self.report().await?;
                }
                _ = progress.tick(), if self.progress.is_any() => {
                    self.reports.extend(self.progress.news());
                    if !self.reports.is_empty() {
                        self.report().await?;
                    }
                }
                _ = tools.tick() => {
                    let listed = self.listed();
                    if listed != self.offered {
                        self.offered = listed;
                        self.put_tools().await?;
                    }
                }
            }
        }
    }

    /// What the program offers, as far as it is wanted.
    fn listed(&self) -> Vec<RunnerToolEntry> {
        let entry = |tool: &Arc<dyn Tool>| {
            let (spec, about) = (tool.spec(), tool.about());
            let name = self.name_of(&spec.id)?.to_owned();
            let wanted = self.settings.only.is_empty() || self.settings.only.contains(&name);
            let (title, output_schema) = (about.title, about.output_schema);
            let description = Some(spec.description.clone()).filter(|text| !text.is_empty());
            let input_schema = spec.input_schema.clone();
            wanted.then_some(RunnerToolEntry { name, title, description, input_schema, output_schema })
        };
        self.server.tools().iter().filter_map(entry).collect()
    }

    fn name_of<'a>(&self, id: &'a str) -> Option<&'a str> {
        id.strip_prefix("mcp:")?.strip_prefix(self.settings.pool.as_str())?.strip_prefix('.')
    }

    async fn put_tools(&self) -> Result<(), Error> {
        let tools = RunnerTools {
            pool: self.settings.pool.clone(),
            version: self.settings.version.clone(),
            max_concurrency: Some(self.settings.concurrency),
            tools: self.offered.clone(),
        };
        self.link.client().put_runner_tools(&self.id, &tools).await.map(drop)
    }

    fn take(&mut self, frame: DispatchFrame, context: Option<&DispatchContext>, results: &mut Results) {
        self.after = self.after.max(Some(frame.seq));
        match self.steps.sent(&frame) {
            Next::Nothing => {}
            Next::Answer(output) => {
                let DispatchFrame { run_id: run, step_id: step, seq, .. } = frame;
                results.push(Ready { run, step, seq, output });
            }
            Next::Unknown => {
                let reason = "It was begun before, and did not come to an end.";
                self.say(&frame.run_id, &frame.step_id, frame.seq, StepReportState::Unknown, Some(reason.to_owned()));
            }
            Next::Begin(_) if self.stopping => {
                self.steps.released(&frame.run_id, &frame.step_id);
                self.say(&frame.run_id, &frame.step_id, frame.seq, StepReportState::Released, None);
            }
            Next::Begin(cancelled) => {
                let (host, pool) = (self.link.client().base_url().to_owned(), self.settings.pool.clone());
                let call = call(Arc::clone(&self.server), host, pool, frame.clone(), context.cloned());
                self.progress.follow(&self.server, &frame);
                self.calls.spawn(async move {
                    // Whatever happens here, the step does not stay in hand for ever.
                    let broke = || Outcome::Unknown("The runner broke off while it made the call.".to_owned());
                    let outcome = tokio::select! {
                        outcome = AssertUnwindSafe(call).catch_unwind() => outcome.unwrap_or_else(|_| broke()),
                        // Nobody wants it: the program is told, and the host gets its place back.
                        () = cancelled.cancelled() => Outcome::Released,
                    };
                    Ended { run: frame.run_id, step: frame.step_id, outcome }
                });
            }
        }
    }

    fn ended(&mut self, ended: Result<Ended, tokio::task::JoinError>, results: &mut Results) {
        // Aborted, at the end.
        let Ok(Ended { run, step, outcome }) = ended else { return };
        self.progress.forget(&run, &step);
        match outcome {
            Outcome::Output(output) => {
                let output = Arc::new(output);
                if let Some(seq) = self.steps.ended(&run, &step, Some(Arc::clone(&output))) {
                    results.push(Ready { run, step, seq, output });
                }
            }
            Outcome::Released => {
                if let Some(seq) = self.steps.released(&run, &step) {
                    self.say(&run, &step, seq, StepReportState::Released, None);
                }
            }
            Outcome::Unknown(reason) => {
                if let Some(seq) = self.steps.ended(&run, &step, None) {
                    self.say(&run, &step, seq, StepReportState::Unknown, Some(reason));
                }
            }
        }
    }

    fn say(&mut self, run: &str, step: &str, seq: u64, state: StepReportState, reason: Option<String>) {
        let (run_id, step_id) = (run.to_owned(), step.to_owned());
        self.reports.push(StepReport {
            run_id,
            step_id,
            seq,
            state,
            progress: None,
            total: None,
            message: None,
            reason,
        });
    }

    fn refused(&mut self, refused: Refused) {
        let Refused { run, step, seq, reason } = refused;
        self.output.note(format_args!("the result of {step} of {run} was not taken: {reason}"));
        self.say(&run, &step, seq, StepReportState::Unknown, Some(reason));
    }

    /// Says how it is, and stops what nobody wants. What could not be said is said the next time.
    async fn report(&mut self) -> Result<(), Error> {
        self.report_once().await?;
        match self.reports.is_empty() {
            true => Ok(()),
            false => self.report_once().await,
        }
    }

    async fn report_once(&mut self) -> Result<(), Error> {
        let reports = RunnerReports { draining: self.draining, reports: self.reports.clone() };
        let work = self.link.client().report_runner(&self.id, &reports).await?;
        self.reports.clear();
        work.cancel.iter().for_each(|name| self.steps.cancel(name));
        // What is behind the last number that was seen is on its way here, unless nobody wants it.
        let (seen, last) = (self.after, u64::MAX);
        let leases = work.leases.into_iter().map(|lease| (lease.run_id, lease.step_id, lease.seq, seen));
        let cancels = work.cancel.into_iter().map(|name| (name.run_id, name.step_id, name.seq, Some(last)));
        for (run, step, seq, until) in leases.chain(cancels) {
            let Some(seq) = seq.filter(|seq| Some(*seq) <= until) else { continue };
            match self.steps.missing(&run, &step, seq) {
                None => {}
                Some(Missing::NeverHad) => self.say(&run, &step, seq, StepReportState::Released, None),
                Some(Missing::Forgotten) => {
                    let reason = "The runner remembers nothing of it.".to_owned();
                    self.say(&run, &step, seq, StepReportState::Unknown, Some(reason));
                }
            }
        }
        Ok(())
    }

    /// Takes nothing new, and gives what is in hand its time.
    async fn drain(&mut self, results: &mut Results, refusals: &mut mpsc::Receiver<Refused>) {
        (self.draining, self.stopping) = (true, true);
        if let Err(error) = self.report().await {
            self.output.note(format_args!("the host could not be told that this runner ends: {error}"));
        }
        let until = Instant::now() + self.settings.grace;
        let mut heartbeat = interval(HEARTBEAT);
        while !self.steps.is_idle() {
            tokio::select! {
                Some(ended) = self.calls.join_next() => self.ended(ended, results),
                Some(refused) = refusals.recv() => self.refused(refused),
                _ = heartbeat.tick() => {
                    results.flush();
                    drop(self.report().await);
                }
                () = tokio::time::sleep_until(until) => break,
            }
        }
        for (run, step, seq) in self.steps.in_hand() {
            let reason = "The runner was stopped before it was done.";
            self.say(&run, &step, seq, StepReportState::Unknown, Some(reason.to_owned()));
        }
        self.calls.abort_all();
        if !self.reports.is_empty()
            && let Err(error) = self.report().await
        {
            self.output.note(format_args!("the host could not be told what is unknown: {error}"));
        }
    }
}

/// Calls the program. The key is the step's: made again it is the same call.
async fn call(
    server: Arc<McpServer>,
    host: String,
    pool: String,
    frame: DispatchFrame,
    context: Option<DispatchContext>,
) -> Outcome {
    let named = frame.tool.as_deref().and_then(|tool| tool.strip_prefix(pool.as_str())?.strip_prefix('.'));
    let id = format!("mcp:{pool}.{}", named.unwrap_or_default());
    let Some(tool) = server.tools().into_iter().find(|tool| tool.spec().id == id) else {
        return Outcome::Output(failure(&format!("This runner has no tool {}.", frame.tool.unwrap_or_default())));
    };
    let timeout_ms = context.as_ref().map(|context| {
        let now = Timestamp::from_millis(jiff::Timestamp::now().as_millisecond());
        context.deadline_at.millis_since(now).max(1)
    });
    let beside = context.as_ref().and_then(|context| context.step_token.as_ref()).map(|token| beside(&host, token));
    let beside = beside.unwrap_or_default();
    let trace =
        context.and_then(|context| Some(TraceContext { parent: context.traceparent?, state: context.tracestate }));
    let request = ToolRequest {
        key: format!("{}/{}", frame.run_id, frame.step_id),
        tool: id,
        arguments: Value::Object(frame.inputs),
        tenant: TenantId::new("runner"),
        principal: String::new(),
        scopes: None,
        trace,
        timeout_ms,
        runner: RunnerRequirement::default(),
        beside,
    };
    let until = Instant::now() + PROGRAM;
    loop {
        match tool.call(&request).await {
            // Certainly not made: this runner tries it when its program is back, and then somebody else may have it.
            Called::Done(outcome) if is_away(&outcome) && Instant::now() < until => {
                tokio::time::sleep(PROGRAM_POLL).await;
            }
            Called::Done(outcome) if is_away(&outcome) => return Outcome::Released,
            Called::Done(outcome) => return done(outcome),
            Called::Unknown { reason } => return Outcome::Unknown(reason),
        }
    }
}

/// Where the program reaches models and what it kept, as long as it has this step in hand.
fn beside(host: &str, token: &StepToken) -> Beside {
    let at = |path: &str| {
        let base = format!("{}/v1/host/baton/steps/{path}", host.trim_end_matches('/'));
        json!({"baseUrl": base, "apiKey": token.reveal()})
    };
    Beside([(MODELS.to_owned(), at("openai/v1")), (MEMO.to_owned(), at("memo"))].into_iter().collect())
}

fn is_away(outcome: &ToolOutcome) -> bool {
    outcome.error.as_ref().is_some_and(|error| error.code == code::MCP_SERVER_DISCONNECTED)
}

fn done(outcome: ToolOutcome) -> Outcome {
    match outcome.error {
        Some(error) => Outcome::Output(failure(&error.message)),
        None => Outcome::Output(match outcome.value {
            Value::String(text) => content(&text),
            value => [("content".to_owned(), json!([])), ("structuredContent".to_owned(), value)].into_iter().collect(),
        }),
    }
}

fn content(text: &str) -> Map<String, Value> {
    [("content".to_owned(), json!([{"type": "text", "text": text}]))].into_iter().collect()
}

fn failure(text: &str) -> Map<String, Value> {
    let mut failure = content(text);
    failure.insert("isError".to_owned(), true.into());
    failure
}
