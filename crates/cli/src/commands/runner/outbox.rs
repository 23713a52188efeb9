//! Results on their way to the host. What comes while one request is under way goes out with the next: under load one
//! request carries many. One that the host cannot take now waits behind the others; one that it never takes is told.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_client::{Error, StepResult, StepResultOutcome, StepResultsTaken};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, sleep_until};

/// How many results one request carries.
const MOST: usize = 200;
/// And how much they have together, about; a host reads a megabyte.
const MOST_BYTES: usize = 512 * 1024;
/// How many results wait here for the host.
pub(super) const WAITING: usize = 1_000;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a result is sent to a host that does not know this runner: it signs in again meanwhile.
const MOST_STRANGE: u32 = 30;

pub(super) struct Ready {
    pub(super) run: String,
    pub(super) step: String,
    pub(super) seq: u64,
    pub(super) output: Arc<Map<String, Value>>,
}

/// A result that the host will not take.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) run: String,
    pub(super) step: String,
    pub(super) seq: u64,
    pub(super) reason: String,
}

/// Results for the outbox. Nobody waits for it here: what it has no room for is kept until it has.
pub(super) struct Results {
    ready: mpsc::Sender<Ready>,
    /// At most as many as the runner has in hand: the host sends nothing new before it has results.
    unsent: VecDeque<Ready>,
}

impl Results {
    pub(super) fn new(ready: mpsc::Sender<Ready>) -> Self {
        Self { ready, unsent: VecDeque::new() }
    }

    pub(super) fn push(&mut self, ready: Ready) {
        self.unsent.push_back(ready);
        self.flush();
    }

    pub(super) fn flush(&mut self) {
        while let Some(ready) = self.unsent.pop_front() {
            if let Err(TrySendError::Full(ready) | TrySendError::Closed(ready)) = self.ready.try_send(ready) {
                self.unsent.push_front(ready);
                return;
            }
        }
    }
}

struct Waiting {
    result: StepResult,
    bytes: usize,
    not_before: Instant,
    pause: Duration,
    /// It was in a request that the host turned down as a whole.
    alone: bool,
    strange: u32,
}

/// Until nobody sends any more, and everything is taken or refused.
pub(super) async fn post(
    send: impl AsyncFn(Vec<StepResult>) -> Result<StepResultsTaken, Error>,
    mut ready: mpsc::Receiver<Ready>,
    refused: mpsc::Sender<Refused>,
) {
    let (mut queue, mut fresh, mut open) = (VecDeque::<Waiting>::new(), Vec::new(), true);
    loop {
        let due = queue.iter().map(|waiting| waiting.not_before).min();
        if due.is_none() && !open {
            return;
        }
        let now = Instant::now();
        // Whoever waits for a place here keeps what it has.
        let room = WAITING.saturating_sub(queue.len()).min(MOST);
        tokio::select! {
            biased;
            got = ready.recv_many(&mut fresh, room), if open && room > 0 => open = got > 0,
            () = sleep_until(due.unwrap_or(now)), if due.is_some() => {}
        }
        queue.extend(fresh.drain(..).map(Waiting::new));
        let batch = next_batch(&mut queue);
        if batch.is_empty() {
            continue;
        }
        let sent = send(batch.iter().map(|waiting| waiting.result.clone()).collect()).await;
        for refusal in taken(batch, sent, &mut queue) {
            if refused.send(refusal).await.is_err() {
                return;
            }
        }
    }
}

impl Waiting {
    fn new(ready: Ready) -> Self {
        let Ready { run: run_id, step: step_id, seq, output } = ready;
        let bytes = serde_json::to_string(&*output).map_or(0, |text| text.len());
        let result = StepResult { run_id, step_id, seq, output: (*output).clone() };
        Self { result, bytes, not_before: Instant::now(), pause: FIRST_PAUSE, alone: false, strange: 0 }
    }

    fn later(self) -> Self {
        let pause = (self.pause * 2).min(LONGEST_PAUSE);
        Self { not_before: Instant::now() + self.pause, pause, ..self }
    }

    fn refused(self, reason: &str) -> Refused {
        let StepResult { run_id: run, step_id: step, seq, .. } = self.result;
        Refused { run, step, seq, reason: format!("The host did not take the result: {reason}") }
    }

    /// In place of an output that is too large: why there is none.
    fn too_large(self, message: &str) -> Self {
        let text = format!("The tool was called, but: {message}");
        let said = json!({"isError": true, "content": [{"type": "text", "text": text}]});
        let output = said.as_object().cloned().unwrap_or_default();
        Self { result: StepResult { output, ..self.result }, bytes: text.len(), ..self }
    }
}

/// The first that are due, as many as one request carries.
fn next_batch(queue: &mut VecDeque<Waiting>) -> Vec<Waiting> {
    let (now, mut bytes) = (Instant::now(), 0);
    let mut batch: Vec<Waiting> = Vec::new();
    let mut left = VecDeque::with_capacity(queue.len());
    let mut full = false;
    for waiting in queue.drain(..) {
        let fits = batch.is_empty() || (!waiting.alone && bytes + waiting.bytes <= MOST_BYTES && batch.len() < MOST);
        if full || waiting.not_before > now || !fits {
            left.push_back(waiting);
            continue;
        }
        bytes += waiting.bytes;
        full = waiting.alone;
        batch.push(waiting);
    }
    *queue = left;
    batch
}

/// What the host said. Those that are to be sent again go behind the others; returns those that are not.
fn taken(batch: Vec<Waiting>, sent: Result<StepResultsTaken, Error>, queue: &mut VecDeque<Waiting>) -> Vec<Refused> {
    let several = batch.len() > 1;
    let said = match sent {
        Ok(taken) => taken.results,
        Err(error) => {
            let mut refused = Vec::new();
            for waiting in batch {
                match &error {
                    error if error.is_transient() || matches!(error, Error::Api { status: 500.., .. }) => {
                        queue.push_back(waiting.later());
                    }
                    // One that alone is more than the host reads.
                    Error::Api { status: 413, message, .. } if !several && waiting.strange < MOST_STRANGE => {
                        let strange = waiting.strange + 1;
                        queue.push_back(Waiting { strange, ..waiting.too_large(message).later() });
                    }
                    // It signs in again, or with another token.
                    Error::Api { status: 401 | 404, .. } if waiting.strange < MOST_STRANGE => {
                        queue.push_back(Waiting { strange: waiting.strange + 1, ..waiting.later() });
                    }
                    // Which of them it was, the host does not say.
                    _ if several => queue.push_back(Waiting { alone: true, ..waiting }),
                    error => refused.push(waiting.refused(&error.to_string())),
                }
            }
            return refused;
        }
    };
    let mut refused = Vec::new();
    let mut said = said.into_iter();
    for waiting in batch {
        // Of one that is missing in the answer nothing is known.
        let Some(StepResultOutcome { error, .. }) = said.next() else {
            queue.push_back(waiting.later());
            continue;
        };
        match error {
            None => {}
            Some(error) if error.code == "payload_too_large" && waiting.strange < MOST_STRANGE => {
                let strange = waiting.strange + 1;
                queue.push_back(Waiting { strange, ..waiting.too_large(&error.message) });
            }
            Some(error) if error.retriable => queue.push_back(waiting.later()),
            Some(error) => refused.push(waiting.refused(&error.message)),
        }
    }
    refused
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use baton_client::StepResultError;

    use super::*;

    fn ready(step: &str) -> Ready {
        Ready { run: "run_a".to_owned(), step: step.to_owned(), seq: 1, output: Arc::default() }
    }

    fn error(status: u16) -> Error {
        Error::Api { status, code: "x".to_owned(), message: "no".to_owned(), details: Map::new() }
    }

    fn outcome(error: Option<(&str, bool)>) -> StepResultOutcome {
        let error = error.map(|(code, retriable)| StepResultError {
            code: code.to_owned(),
            message: "no".to_owned(),
            retriable,
        });
        StepResultOutcome { accepted: error.is_none(), duplicate: false, error }
    }

    /// What the host took, in which order, and what it refused.
    async fn sent(
        steps: &[&str],
        host: impl Fn(&[StepResult], usize) -> Result<Vec<StepResultOutcome>, Error>,
    ) -> (Vec<String>, Vec<String>) {
        let (to, from) = mpsc::channel(WAITING);
        for step in steps {
            to.try_send(ready(step)).unwrap_or_else(|_| panic!("there is room"));
        }
        drop(to);
        let (telling, mut told) = mpsc::channel(WAITING);
        let (took, times) = (Mutex::new(Vec::new()), Mutex::new(0));
        let send = async |results: Vec<StepResult>| {
            let time = {
                let mut times = times.lock().unwrap();
                *times += 1;
                *times
            };
            let results_of = host(&results, time)?;
            for (result, outcome) in results.iter().zip(&results_of) {
                if outcome.error.is_none() {
                    took.lock().unwrap().push(result.step_id.clone());
                }
            }
            Ok(StepResultsTaken { results: results_of })
        };
        post(send, from, telling).await;
        let mut refused = Vec::new();
        while let Ok(Refused { step, .. }) = told.try_recv() {
            refused.push(step);
        }
        (took.into_inner().unwrap(), refused)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_turned_down_is_sent_one_by_one_and_only_the_bad_one_is_refused() {
        let host = |results: &[StepResult], _| match results.iter().any(|result| result.step_id == "bad") {
            true => Err(error(400)),
            false => Ok(results.iter().map(|_| outcome(None)).collect()),
        };
        let (took, refused) = sent(&["a", "bad", "b"], host).await;
        assert_eq!((took, refused), (vec!["a".to_owned(), "b".to_owned()], vec!["bad".to_owned()]));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_the_host_cannot_take_now_holds_up_nobody() {
        let host = |results: &[StepResult], time: usize| {
            let slow = |result: &StepResult| result.step_id == "slow" && time < 5;
            Ok(results.iter().map(|result| outcome(slow(result).then_some(("unavailable", true)))).collect())
        };
        let (took, refused) = sent(&["slow", "a", "b"], host).await;
        assert_eq!((took, refused), (vec!["a".to_owned(), "b".to_owned(), "slow".to_owned()], vec![]));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_finally_refused_is_told_and_one_that_is_too_large_is_replaced() {
        let host = |results: &[StepResult], _| {
            let said = |result: &StepResult| match (result.step_id.as_str(), result.output.is_empty()) {
                ("held", _) => outcome(Some(("run_quarantined", false))),
                ("large", true) => outcome(Some(("payload_too_large", false))),
                _ => outcome(None),
            };
            Ok(results.iter().map(said).collect())
        };
        let (took, refused) = sent(&["held", "large", "a"], host).await;
        assert_eq!(took.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["a".to_owned(), "large".to_owned()]));
        assert_eq!(refused, ["held"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_is_away_gets_everything_when_it_is_back() {
        let host = |results: &[StepResult], time: usize| match time {
            1..6 => Err(error(503)),
            6..9 => Err(error(404)),
            _ => Ok(results.iter().map(|_| outcome(None)).collect()),
        };
        let (took, refused) = sent(&["a", "b"], host).await;
        assert_eq!((took.len(), refused.len()), (2, 0));
    }
}
