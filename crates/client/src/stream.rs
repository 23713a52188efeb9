//! A run's events, followed to the end over as many connections as it takes.
//!
//! The cursor is the last sequence handed out; every reconnect resumes after it, so no event is lost or repeated.
//! A connection that ends early is reopened with a bounded, doubling back-off; progress resets the count.

use std::collections::VecDeque;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use baton_sse::{Event, Parser};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::{Client, Error, RunEvent};

/// The host sends a heartbeat at least every 30 s; after this much silence the connection is dead.
const SILENCE: Duration = Duration::from_secs(45);
/// About 25 s without an answer: enough for a restart, short enough to tell a person.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(Duration::from_secs(5))
    .with_max_times(10);

/// Which events to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamMode {
    /// Milestones: runs and nodes finishing, questions asked and answered.
    #[default]
    Updates,
    /// Everything on the log.
    Debug,
}

impl StreamMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Updates => "updates",
            Self::Debug => "debug",
        }
    }
}

type Bytes = BoxStream<'static, Result<bytes::Bytes, reqwest::Error>>;

pub struct EventStream {
    client: Client,
    run: String,
    mode: StreamMode,
    after: Option<u64>,
    connection: Option<(Bytes, Parser)>,
    ready: VecDeque<RunEvent>,
    /// What is left of them since the last event.
    pauses: <ExponentialBuilder as backon::BackoffBuilder>::Backoff,
    /// The host closed the stream and says the run has ended: one more pass may find the tail, then we are done.
    last_pass: bool,
    done: bool,
}

/// What one read of the connection gave.
enum Read {
    Events(Vec<Event>),
    Closed,
}

impl EventStream {
    pub(crate) fn new(client: Client, run: &str, after: Option<u64>, mode: StreamMode) -> Self {
        Self {
            client,
            run: run.to_owned(),
            mode,
            after,
            connection: None,
            ready: VecDeque::new(),
            pauses: PAUSES.build(),
            last_pass: false,
            done: false,
        }
    }

    /// The sequence of the last event handed out.
    pub fn cursor(&self) -> Option<u64> {
        self.after
    }

    /// The next event; `None` once the run has ended. An error is final. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<RunEvent, Error>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.after = Some(event.sequence);
                self.pauses = PAUSES.build();
                self.done = event.is_terminal();
                return Some(Ok(event));
            }
            if self.done {
                return None;
            }
            match self.advance().await {
                Ok(()) => {}
                Err(error) => match self.pauses.next().filter(|_| error.is_transient()) {
                    Some(pause) => {
                        self.connection = None;
                        tokio::time::sleep(pause).await;
                    }
                    None => {
                        self.done = true;
                        return Some(Err(error));
                    }
                },
            }
        }
    }

    /// Reads once: connects if need be, queues what arrived, or finds out why the stream closed.
    async fn advance(&mut self) -> Result<(), Error> {
        if self.connection.is_none() {
            let mut url = self.client.url(&["v1", "runs", &self.run, "events"]);
            url.query_pairs_mut().append_pair("streamMode", self.mode.as_str());
            let response = self.client.open(url, self.after).await?;
            self.connection = Some((response.bytes_stream().boxed(), Parser::default()));
        }
        match self.read().await? {
            Read::Events(events) => events.iter().try_for_each(|event| self.accept(event)),
            Read::Closed => self.closed().await,
        }
    }

    async fn read(&mut self) -> Result<Read, Error> {
        let Some((bytes, parser)) = &mut self.connection else { return Ok(Read::Closed) };
        match tokio::time::timeout(SILENCE, bytes.next()).await {
            Err(_) => Err(self.client.silent()),
            Ok(Some(Err(source))) => Err(self.client.unreachable(source)),
            Ok(None) => Ok(Read::Closed),
            Ok(Some(Ok(chunk))) => Ok(Read::Events(parser.push(&chunk))),
        }
    }

    fn accept(&mut self, event: &Event) -> Result<(), Error> {
        let events: Vec<RunEvent> = match event.name.as_deref() {
            // The bare chunk is no RunEvent; the log holds the same text.
            // What is said about a run has no place in its log either.
            Some("ai.message.chunk" | "state.snapshot" | "state.snapshot.omitted" | "run.annotated") => return Ok(()),
            Some("batch") => self.decode(&event.data)?,
            _ => vec![self.decode(&event.data)?],
        };
        let newest = self.ready.back().map(|event| event.sequence).or(self.after);
        self.ready.extend(events.into_iter().filter(|event| newest.is_none_or(|seq| event.sequence > seq)));
        Ok(())
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, data: &[u8]) -> Result<T, Error> {
        serde_json::from_slice(data).map_err(|error| self.client.not_understood(format!("an event: {error}")))
    }

    /// A clean close without a terminal event: the host restarts, or we attached after the last event.
    async fn closed(&mut self) -> Result<(), Error> {
        self.connection = None;
        if self.last_pass {
            self.done = true;
            return Ok(());
        }
        let ended = self.client.run(&self.run).await?.status.is_terminal();
        if ended {
            self.last_pass = true;
            return Ok(());
        }
        Err(self.client.silent())
    }
}
