//! Another host in the test's hands: it makes runs once per key, ends them when it is told, and its line can be cut.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{Fault, RunId, RunStatus, TenantId};
use baton_runtime::{
    Accepted, Options, RemoteFault, RemoteHost, RemoteRunRequest, RemoteRunResult, RemoteRunStatus, Remotes,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::watch;

pub const PATIENCE_MS: u64 = 60_000;
pub const WORKER: &str = "https://far.example/workflows/work";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Line {
    #[default]
    Up,
    /// Nothing gets through.
    Cut,
    /// Everything gets through, and no answer comes back.
    NoSink,
}

#[derive(Clone, Debug)]
pub struct FarRun {
    pub id: RunId,
    pub status: RunStatus,
    pub variables: Map<String, Value>,
    pub error: Option<Fault>,
    pub handover: RemoteRunRequest,
    seq: u64,
}

#[derive(Default)]
struct State {
    line: Line,
    refusal: Option<(u16, &'static str)>,
    /// By key.
    runs: BTreeMap<String, FarRun>,
    /// Every request that was tried: what, and about what.
    asked: Vec<(&'static str, String)>,
    /// Runs end as soon as they are made.
    prompt: bool,
}

#[derive(Default)]
pub struct Far {
    state: Mutex<State>,
    moved: watch::Sender<u64>,
}

impl Far {
    /// Its runs go on until they are told to end.
    pub fn slow() -> Arc<Self> {
        Arc::default()
    }

    /// Its runs end at once, with `m` = 40.
    pub fn prompt() -> Arc<Self> {
        let far = Self::default();
        far.state.lock().prompt = true;
        Arc::new(far)
    }

    pub fn options(self: &Arc<Self>, records_ahead: usize) -> Options {
        let remotes = Remotes::new("https://near.example", PATIENCE_MS).with(Arc::clone(self) as _);
        Options { remotes, host_id: "near.example".to_owned(), ..super::common::options(records_ahead) }
    }

    pub fn line(&self, line: Line) {
        self.state.lock().line = line;
        self.moved.send_modify(|count| *count += 1);
    }

    pub fn refuse(&self, refusal: Option<(u16, &'static str)>) {
        self.state.lock().refusal = refusal;
    }

    pub fn runs(&self) -> Vec<FarRun> {
        self.state.lock().runs.values().cloned().collect()
    }

    pub fn only(&self) -> FarRun {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }

    pub fn asked(&self, what: &str) -> usize {
        self.state.lock().asked.iter().filter(|(asked, _)| *asked == what).count()
    }

    pub fn requests(&self) -> usize {
        self.state.lock().asked.len()
    }

    /// Moves every run that has not ended.
    pub fn all(&self, status: RunStatus, variables: Value) {
        for run in self.state.lock().runs.values_mut().filter(|run| !run.status.is_terminal()) {
            run.status = status;
            run.seq += 1;
            run.variables = variables.as_object().cloned().unwrap_or_default();
            run.error = (status == RunStatus::Failed).then(|| Fault::new("broke", "It broke over there."));
        }
        self.moved.send_modify(|count| *count += 1);
    }

    /// Notes the request; an error if the line is cut.
    fn hear(&self, what: &'static str, about: &str) -> Result<Line, RemoteFault> {
        let mut state = self.state.lock();
        state.asked.push((what, about.to_owned()));
        match (state.line, state.refusal) {
            (Line::Cut, _) => Err(RemoteFault::Unavailable { sent: false, why: "connection refused".to_owned() }),
            (line, None) => Ok(line),
            (_, Some((status, code))) => {
                let message = "No: s3cr3t-s3cr3t.".to_owned();
                Err(RemoteFault::Refused { status, code: code.to_owned(), message })
            }
        }
    }
}

fn answer<T>(line: Line, answer: T) -> Result<T, RemoteFault> {
    match line {
        Line::NoSink => Err(RemoteFault::Unavailable { sent: true, why: "the connection broke".to_owned() }),
        _ => Ok(answer),
    }
}

#[async_trait]
impl RemoteHost for Far {
    fn name(&self) -> &str {
        "far"
    }

    fn origin(&self) -> &str {
        "https://far.example"
    }

    fn serves(&self, tenant: &TenantId) -> bool {
        tenant.as_str() == "acme"
    }

    async fn hand_over(&self, handover: &RemoteRunRequest) -> Result<Accepted, RemoteFault> {
        let what = if handover.withdrawn { "withdraw" } else { "create" };
        let line = self.hear(what, &handover.key)?;
        let mut state = self.state.lock();
        let (number, prompt) = (state.runs.len(), state.prompt);
        let run = state.runs.entry(handover.key.clone()).or_insert_with(|| FarRun {
            id: RunId::new(format!("far_{number}")),
            status: match (handover.withdrawn, prompt) {
                (true, _) => RunStatus::Cancelled,
                (false, true) => RunStatus::Completed,
                (false, false) => RunStatus::Running,
            },
            variables: [("m".to_owned(), Value::from(40))].into_iter().collect(),
            error: None,
            handover: handover.clone(),
            seq: 0,
        });
        let url = format!("https://far.example/v1/runs/{}", run.id);
        answer(line, Accepted { run: run.id.clone(), host_id: Some("far".to_owned()), url })
    }

    async fn look(&self, run: &RunId, after: Option<u64>) -> Result<RemoteRunStatus, RemoteFault> {
        loop {
            let mut moved = self.moved.subscribe();
            let line = self.hear("look", run.as_str())?;
            let found = self.state.lock().runs.values().find(|known| known.id == *run).cloned();
            let Some(found) = found else {
                let message = "There is no such run.".to_owned();
                return Err(RemoteFault::Refused { status: 404, code: "run_not_found".to_owned(), message });
            };
            let end = found.status.is_terminal().then_some(RemoteRunResult {
                variables: found.variables,
                error: found.error,
                usage: None,
            });
            if line == Line::NoSink || end.is_some() || after.is_none_or(|after| found.seq > after) {
                return answer(line, RemoteRunStatus { status: found.status, seq: found.seq, end });
            }
            let _ = moved.changed().await;
        }
    }

    async fn cancel(&self, run: &RunId, _reason: &str) -> Result<(), RemoteFault> {
        let line = self.hear("cancel", run.as_str())?;
        if let Some(run) = self.state.lock().runs.values_mut().find(|known| known.id == *run)
            && !run.status.is_terminal()
        {
            run.status = RunStatus::Cancelled;
            run.seq += 1;
        }
        answer(line, ())
    }
}
