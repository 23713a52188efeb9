//! Runners: their tokens, what they say, and the stream of their steps.

use std::time::Duration;

use baton_api::{
    DispatchContext, DispatchFrame, NewRunnerToken, RegisterRunner, RunnerList, RunnerRegistered, RunnerReports,
    RunnerTokenEntry, RunnerTokenList, RunnerTokenMade, RunnerTools, RunnerWork, StepName, StepResults,
    StepResultsTaken,
};
use baton_sse::{Event, Parser};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde::de::DeserializeOwned;

use crate::{Client, Error};

/// The host says something every 15 s; after this much silence the connection is dead.
const SILENCE: Duration = Duration::from_secs(45);

/// What the host tells a runner.
#[derive(Clone, Debug, PartialEq)]
pub enum Dispatched {
    Step {
        frame: Box<DispatchFrame>,
        context: Option<Box<DispatchContext>>,
    },
    Cancel(StepName),
    Drain,
    /// Another stream of this runner was opened.
    Superseded,
}

/// The calls of runners and of those who make their tokens.
#[derive(Clone, Debug)]
pub struct RunnerClient(Client);

impl RunnerClient {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    pub fn base_url(&self) -> &str {
        self.0.base_url()
    }

    pub async fn make_runner_token(&self, new: &NewRunnerToken) -> Result<RunnerTokenMade, Error> {
        self.0.post(self.0.url(&["v1", "host", "baton", "runner-tokens"]), new, None).await
    }

    pub async fn runner_tokens(&self) -> Result<RunnerTokenList, Error> {
        self.0.get(self.0.url(&["v1", "host", "baton", "runner-tokens"])).await
    }

    pub async fn revoke_runner_token(&self, id: &str) -> Result<(), Error> {
        self.0.delete(self.0.url_of_name(&["v1", "host", "baton", "runner-tokens"], id)?, None).await
    }

    /// The token that this client shows.
    pub async fn own_runner_token(&self) -> Result<RunnerTokenEntry, Error> {
        self.0.get(self.0.url(&["v1", "host", "baton", "runner-tokens", "self"])).await
    }

    pub async fn runners(&self) -> Result<RunnerList, Error> {
        self.0.get(self.0.url(&["v1", "host", "baton", "runners"])).await
    }

    pub async fn register_runner(&self, frame: &RegisterRunner) -> Result<RunnerRegistered, Error> {
        self.0.post(self.0.url(&["v1", "host", "baton", "runners"]), frame, None).await
    }

    pub async fn put_runner_tools(&self, id: &str, tools: &RunnerTools) -> Result<RunnerRegistered, Error> {
        self.0.put(self.0.url(&["v1", "host", "baton", "runners", id, "tools"]), tools, None).await
    }

    pub async fn report_runner(&self, id: &str, reports: &RunnerReports) -> Result<RunnerWork, Error> {
        self.0.post(self.0.url(&["v1", "host", "baton", "runners", id, "reports"]), reports, None).await
    }

    pub async fn post_step_results(&self, id: &str, results: &StepResults) -> Result<StepResultsTaken, Error> {
        self.0.post(self.0.url(&["v1", "host", "baton", "runners", id, "results"]), results, None).await
    }

    pub async fn sign_off_runner(&self, id: &str) -> Result<(), Error> {
        self.0.delete(self.0.url_of_name(&["v1", "host", "baton", "runners"], id)?, None).await
    }

    /// Opens the stream of a runner's steps. `after`: the last number that it has seen.
    pub async fn dispatch_stream(&self, id: &str, after: Option<u64>) -> Result<DispatchStream, Error> {
        let response = self.0.open(self.0.url(&["v1", "host", "baton", "runners", id, "dispatch"]), after).await?;
        Ok(DispatchStream {
            client: self.0.clone(),
            bytes: response.bytes_stream().boxed(),
            parser: Parser::default(),
            ready: Vec::new().into_iter(),
            context: None,
        })
    }
}

/// One connection. Whoever follows it opens the next.
pub struct DispatchStream {
    client: Client,
    bytes: BoxStream<'static, Result<bytes::Bytes, reqwest::Error>>,
    parser: Parser,
    ready: std::vec::IntoIter<Event>,
    /// What was said of the step that comes next.
    context: Option<Box<DispatchContext>>,
}

impl DispatchStream {
    /// The next thing that the host says; `None` once it has closed the stream.
    pub async fn next(&mut self) -> Result<Option<Dispatched>, Error> {
        loop {
            for event in self.ready.by_ref() {
                match event.name.as_deref() {
                    Some("baton.context") => self.context = Some(Box::new(read(&self.client, &event)?)),
                    Some("dispatch") => {
                        let frame: Box<DispatchFrame> = Box::new(read(&self.client, &event)?);
                        let (run, step) = (&frame.run_id, &frame.step_id);
                        let said = self.context.take();
                        let context = said.filter(|said| said.run_id == *run && said.step_id == *step);
                        return Ok(Some(Dispatched::Step { frame, context }));
                    }
                    Some("cancel") => return Ok(Some(Dispatched::Cancel(read(&self.client, &event)?))),
                    Some("drain") => return Ok(Some(Dispatched::Drain)),
                    Some("superseded") => return Ok(Some(Dispatched::Superseded)),
                    // A newer host has more to say.
                    _ => {}
                }
            }
            match tokio::time::timeout(SILENCE, self.bytes.next()).await {
                Err(_) => return Err(self.client.silent()),
                Ok(None) => return Ok(None),
                Ok(Some(Err(source))) => return Err(self.client.unreachable(source)),
                Ok(Some(Ok(chunk))) => self.ready = self.parser.push(&chunk).into_iter(),
            }
        }
    }
}

fn read<T: DeserializeOwned>(client: &Client, event: &Event) -> Result<T, Error> {
    serde_json::from_slice(&event.data).map_err(|error| client.not_understood(format!("an event: {error}")))
}
