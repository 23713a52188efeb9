//! One attempt each: whoever calls decides how often and for how long.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use baton_client::{Client, Error, StartRun};
use baton_model::{RunId, RunSnapshot, TenantId, code};
use baton_runtime::{Accepted, RemoteFault, RemoteHost, RemoteRunRequest, RemoteRunResult, RemoteRunStatus};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long an answer may take that does not wait for anything.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a look waits for news, and how long it does when others are waiting for their turn.
const HOLD_SECONDS: u32 = 25;
const SHORT_HOLD_SECONDS: u32 = 1;
/// How many looks are open at the same time: each is a connection, here and over there.
const LOOKS: usize = 64;
/// The same for everything else that is asked. A mute host costs this many connections, however many runs want it.
const REQUESTS: usize = 64;
/// How long a request waits for its turn. Whoever asks has a timeout of their own, and asks again.
const TURN: Duration = Duration::from_secs(30);
/// The same for a look. While others wait, looks are short: nearly twenty thousand have had their turn by then.
const LOOK_TURN: Duration = Duration::from_secs(5 * 60);
/// The largest answer that is read: a run with the largest variables there may be, and room to spare.
const ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Another host, its address, and the key that opens it.
pub struct HttpRemote {
    name: String,
    origin: String,
    client: Client,
    /// None means everybody.
    tenants: Option<Vec<TenantId>>,
    looks: Semaphore,
    requests: Semaphore,
}

impl HttpRemote {
    /// `origin` as [`crate::origin`] gives it. The key goes into a header that is never printed.
    pub fn new(name: &str, origin: &str, key: &str, tenants: Option<Vec<TenantId>>) -> Result<Self, Error> {
        let client = Client::new(origin, Some(key))?.with_answer_bytes(ANSWER_BYTES);
        let (name, origin) = (name.to_owned(), origin.to_owned());
        let (looks, requests) = (Semaphore::new(LOOKS), Semaphore::new(REQUESTS));
        Ok(Self { name, origin, client, tenants, looks, requests })
    }

    /// A turn to ask something. Whoever waits for one is a task of its own, so that a turn that is given is taken.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, RemoteFault> {
        permit(&self.requests, TURN).await
    }

    /// How the host calls itself: a run's ancestry says so. One that does not tell has no name.
    async fn host_id(&self, run: &str) -> Result<Option<String>, RemoteFault> {
        match answered(ANSWER, self.client.ancestry(run)).await {
            Ok(ancestry) => Ok(Some(ancestry.host_id)),
            Err(RemoteFault::Refused { .. }) => Ok(None),
            Err(unavailable) => Err(unavailable),
        }
    }

    async fn snapshot(&self, run: &RunId) -> Result<RemoteRunStatus, RemoteFault> {
        answered(ANSWER, self.client.run(run.as_str())).await.map(seen)
    }
}

#[async_trait]
impl RemoteHost for HttpRemote {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> &str {
        &self.origin
    }

    fn serves(&self, tenant: &TenantId) -> bool {
        self.tenants.as_ref().is_none_or(|tenants| tenants.contains(tenant))
    }

    async fn hand_over(&self, handover: &RemoteRunRequest) -> Result<Accepted, RemoteFault> {
        let _turn = self.turn().await?;
        let mut configurable = Map::new();
        if let Some(ms) = handover.timeout_ms {
            configurable.insert("runTimeoutMs".to_owned(), Value::from(ms));
        }
        let run = StartRun {
            workflow_id: Some(handover.workflow_id.clone()),
            inputs: handover.inputs.clone(),
            configurable,
            ..StartRun::default()
        };
        let asked = baton_client::Handover {
            key: &handover.key,
            cause: &handover.cause,
            trace: handover.trace.as_ref(),
            withdrawn: handover.withdrawn,
        };
        let started = answered(ANSWER, self.client.hand_over(&run, asked)).await?;
        let host_id = self.host_id(started.run_id.as_str()).await?;
        let url = format!("{}/v1/runs/{}", self.origin, started.run_id);
        Ok(Accepted { run: started.run_id, host_id, url })
    }

    async fn look(&self, run: &RunId, after: Option<u64>) -> Result<RemoteRunStatus, RemoteFault> {
        let free = self.looks.available_permits() > 1;
        let _turn = permit(&self.looks, LOOK_TURN).await?;
        let Some(after) = after else { return self.snapshot(run).await };
        let hold = if free { HOLD_SECONDS } else { SHORT_HOLD_SECONDS };
        let limit = ANSWER + Duration::from_secs(hold.into());
        let page = answered(limit, self.client.events(run.as_str(), Some(after), hold)).await?;
        if page.run_status.is_terminal() {
            return self.snapshot(run).await;
        }
        let seq = page.events.last().map_or(after, |event| event.sequence);
        Ok(RemoteRunStatus { status: page.run_status, seq, end: None })
    }

    async fn cancel(&self, run: &RunId, reason: &str) -> Result<(), RemoteFault> {
        let _turn = self.turn().await?;
        answered(ANSWER, self.client.cancel(run.as_str(), Some(reason))).await.map(|_| ())
    }
}

impl fmt::Debug for HttpRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRemote").field("name", &self.name).field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// A place among so many, if one gets free in time.
async fn permit(of: &Semaphore, timeout: Duration) -> Result<SemaphorePermit<'_>, RemoteFault> {
    match tokio::time::timeout(timeout, of.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => {
            let why = "too many requests to it are open already".to_owned();
            Err(RemoteFault::Unavailable { sent: false, why })
        }
    }
}

/// The run as its snapshot shows it. Channels are shown among the variables; they are no variables.
fn seen(snapshot: RunSnapshot) -> RemoteRunStatus {
    let RunSnapshot { status, at_seq, mut variables, channels, error, metrics, .. } = snapshot;
    variables.retain(|name, _| !channels.contains_key(name));
    let usage = metrics.and_then(|metrics| metrics.used());
    RemoteRunStatus {
        status,
        seq: at_seq,
        end: status.is_terminal().then_some(RemoteRunResult { variables, error, usage }),
    }
}

/// The answer, if it comes in time.
async fn answered<T>(limit: Duration, request: impl Future<Output = Result<T, Error>>) -> Result<T, RemoteFault> {
    match tokio::time::timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(fault(error)),
        Err(_) => {
            let why = format!("no answer within {} s", limit.as_secs());
            Err(RemoteFault::Unavailable { sent: true, why })
        }
    }
}

/// A refusal stands; everything else may be different the next time. Whatever answers without our error envelope (a
/// proxy in between, say) is not the host.
fn fault(error: Error) -> RemoteFault {
    match error {
        Error::Api { status, code, message, .. } if !passes(status, &code) => {
            RemoteFault::Refused { status, code, message }
        }
        other => RemoteFault::Unavailable { sent: other.may_have_arrived(), why: other.to_string() },
    }
}

/// Whether the same request may be answered otherwise a moment later.
fn passes(status: u16, code: &str) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599) || code == code::IDEMPOTENCY_IN_FLIGHT
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn api(status: u16, code: &str) -> RemoteFault {
        fault(Error::Api { status, code: code.to_owned(), message: "m".to_owned(), details: Map::new() })
    }

    #[test]
    fn only_what_stands_is_a_refusal() {
        for (status, code) in [(400, "validation_error"), (401, "unauthenticated"), (404, "workflow_not_found")] {
            assert!(matches!(api(status, code), RemoteFault::Refused { .. }), "{status}");
        }
        for (status, code) in [(429, "rate_limited"), (503, "service_unavailable"), (409, "idempotency_in_flight")] {
            assert!(matches!(api(status, code), RemoteFault::Unavailable { sent: true, .. }), "{status}");
        }
        let odd = fault(Error::NotUnderstood { url: "u".to_owned(), reason: "HTTP 404 without".to_owned() });
        assert!(matches!(odd, RemoteFault::Unavailable { sent: true, .. }));
    }

    fn handover() -> RemoteRunRequest {
        RemoteRunRequest {
            key: "k".to_owned(),
            workflow_id: "w".to_owned(),
            inputs: Map::new(),
            timeout_ms: None,
            trace: None,
            cause: baton_model::ForeignCause {
                host_id: "near".to_owned(),
                run_id: RunId::new("r"),
                event_id: baton_model::EventId::new("r.1"),
                node_id: None,
                workflow_id: None,
                cause: "core.dispatch".to_owned(),
                well_known_url: String::new(),
                depth: 1,
                simulated: false,
                scopes: None,
            },
            withdrawn: false,
        }
    }

    /// Time goes on when nobody can do anything, so that nothing here takes long.
    #[tokio::test(start_paused = true)]
    async fn a_mute_host_has_a_bounded_number_of_requests_open() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remote =
            std::sync::Arc::new(HttpRemote::new("north", "http://127.0.0.1:9", "s3cr3t-s3cr3t", None).unwrap());
        let held: Vec<_> = (0..REQUESTS).map(|_| remote.requests.try_acquire().unwrap()).collect();
        let asked: Vec<_> = (0..1000)
            .map(|_| {
                let remote = std::sync::Arc::clone(&remote);
                tokio::spawn(async move { remote.hand_over(&handover()).await })
            })
            .collect();
        for one in asked {
            let fault = one.await.unwrap().unwrap_err();
            assert!(
                matches!(&fault, RemoteFault::Unavailable { sent: false, why } if why.contains("too many")),
                "{fault:?}"
            );
        }
        drop(held);
        assert_eq!(remote.requests.available_permits(), REQUESTS, "nobody who gave up keeps a turn");
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_does_not_wait_for_its_turn_for_ever() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remote = HttpRemote::new("north", "http://127.0.0.1:9", "s3cr3t-s3cr3t", None).unwrap();
        let held: Vec<_> = (0..LOOKS).map(|_| remote.looks.try_acquire().unwrap()).collect();
        for after in [None, Some(3)] {
            let fault = remote.look(&RunId::new("r"), after).await.unwrap_err();
            assert!(
                matches!(&fault, RemoteFault::Unavailable { sent: false, why } if why.contains("too many")),
                "{fault:?}"
            );
        }
        drop(held);
        assert_eq!(remote.looks.available_permits(), LOOKS);
    }

    #[test]
    fn a_remote_does_not_show_its_key() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let remote = HttpRemote::new("north", "http://127.0.0.1:9", "s3cr3t-s3cr3t", None).unwrap();
        assert!(!format!("{remote:?}").contains("s3cr3t"));
        assert!(!format!("{:?}", remote.client).contains("s3cr3t"));
    }
}
