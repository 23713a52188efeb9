//! The queue, and the thread that empties it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use baton_model::Secret;
use parking_lot::{Condvar, Mutex};

use super::otlp::Sender;
use super::settings::{Error, Settings};
use crate::span::Span;

/// Spans that wait; a few megabytes.
const QUEUE: usize = 8192;
/// Spans that go in one request.
const BATCH: usize = 512;
/// How long a request that is not full waits for more.
const DELAY: Duration = Duration::from_secs(1);
/// How often a batch is tried, with pauses that double, before it is dropped.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Takes spans and sends them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Exporter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There is enough to send, or it is time to stop.
    bell: Condvar,
    /// The thread has ended.
    ended: Condvar,
    secrets: Vec<Secret>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Span>,
    closing: bool,
    ended: bool,
    /// Spans that were given up.
    dropped: u64,
}

impl Exporter {
    /// Sets up the client and starts the thread.
    pub fn start(settings: Settings) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            bell: Condvar::new(),
            ended: Condvar::new(),
            secrets: settings.secrets.clone(),
        });
        let (ready, outcome) = mpsc::sync_channel(1);
        let own = Arc::clone(&shared);
        let work = move || {
            match Sender::new(&settings) {
                Ok(sender) => {
                    drop(ready.send(Ok(())));
                    own.work(&sender);
                }
                Err(error) => drop(ready.send(Err(error))),
            }
            own.state.lock().ended = true;
            own.ended.notify_all();
        };
        let thread = std::thread::Builder::new().name("baton-otlp".to_owned()).spawn(work);
        thread.map_err(|error| Error::Client(error.to_string()))?;
        outcome.recv().unwrap_or_else(|_| Err(Error::Client("its thread ended".to_owned())))?;
        Ok(Self { shared })
    }

    /// Hands a span over, or drops it if there are too many already. Never waits.
    pub fn offer(&self, mut span: Span) {
        if !span.sampled {
            return;
        }
        span.redact(&self.shared.secrets);
        let mut state = self.shared.state.lock();
        if state.closing || state.ended || state.queue.len() >= QUEUE {
            state.give_up(1, "queue-full");
            return;
        }
        state.queue.push_back(span);
        let waiting = state.queue.len();
        drop(state);
        if waiting == 1 || waiting == BATCH {
            self.shared.bell.notify_all();
        }
    }

    /// Sends what is left and stops, in this much time at most. Says whether everything has gone out.
    pub fn close(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.state.lock();
        state.closing = true;
        let before = state.dropped;
        self.shared.bell.notify_all();
        while !state.ended && !self.shared.ended.wait_until(&mut state, deadline).timed_out() {}
        state.ended && state.dropped == before
    }
}

impl State {
    fn give_up(&mut self, count: usize, reason: &'static str) {
        self.dropped += count as u64;
        metrics::counter!("baton_otlp_spans_dropped_total", "reason" => reason).increment(count as u64);
    }
}

impl Shared {
    fn work(&self, sender: &Sender) {
        let mut away = false;
        while let Some(batch) = self.next_batch() {
            let sent = self.send(sender, &batch, &mut away);
            if sent {
                metrics::counter!("baton_otlp_spans_sent_total").increment(batch.len() as u64);
            } else {
                let mut state = self.state.lock();
                state.give_up(batch.len(), "not-taken");
                if state.closing {
                    // Nobody has the time to find out for each of the rest.
                    let rest = state.queue.drain(..).count();
                    state.give_up(rest, "not-taken");
                }
            }
        }
    }

    /// Waits for a full batch, or for a while after the first span, or for the end. `None` when there is nothing left.
    fn next_batch(&self) -> Option<Vec<Span>> {
        let mut state = self.state.lock();
        loop {
            match state.queue.len() {
                0 if state.closing => return None,
                0 => self.bell.wait(&mut state),
                waiting if state.closing || waiting >= BATCH => break,
                _ => {
                    if self.bell.wait_for(&mut state, DELAY).timed_out() {
                        break;
                    }
                }
            }
        }
        let count = state.queue.len().min(BATCH);
        Some(state.queue.drain(..count).collect())
    }

    fn send(&self, sender: &Sender, batch: &[Span], away: &mut bool) -> bool {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            match sender.send(batch) {
                Ok(()) => {
                    if std::mem::take(away) {
                        tracing::info!("the collector takes spans again");
                    }
                    return true;
                }
                Err(reason) => {
                    // Once for each time it goes away, not once a batch.
                    if !std::mem::replace(away, true) {
                        tracing::warn!(%reason, "the collector takes no spans; runs are not affected");
                    }
                }
            }
            if attempt == TRIES || !self.rest(pause) {
                return false;
            }
            pause *= 2;
        }
        false
    }

    /// Waits this long. False if it is time to stop.
    fn rest(&self, pause: Duration) -> bool {
        let deadline = Instant::now() + pause;
        let mut state = self.state.lock();
        while !state.closing && !self.bell.wait_until(&mut state, deadline).timed_out() {}
        !state.closing
    }
}
