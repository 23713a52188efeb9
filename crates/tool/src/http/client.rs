//! Makes calls, within bounds, and says what became of them.

use std::sync::Arc;
use std::time::Duration;

use baton_model::tool::{ToolFault, ToolOutcome, ToolStatus};
use baton_model::{Secret, code};
use reqwest::Url;
use serde_json::Value;
use tokio::time::Instant;

use super::answer::Answer;
use super::outgoing::Outgoing;
use super::request::{HttpCall, denied, fault};
use crate::Called;
use crate::egress::{Clients, Guard, NoClient, Refused};
use crate::secrets::Secrets;

/// What holds for every call.
#[derive(Clone)]
pub struct HttpOptions {
    /// Where calls may go.
    pub guard: Guard,
    pub secrets: Arc<dyn Secrets>,
    /// From the first byte sent to the last byte read. A request may ask for less, not for more.
    pub timeout: Duration,
    /// How much of an answer is read; the rest is cut off, and the answer says so.
    pub max_answer_bytes: usize,
}

impl HttpOptions {
    pub fn new(guard: Guard, secrets: Arc<dyn Secrets>) -> Self {
        Self { guard, secrets, timeout: Duration::from_secs(30), max_answer_bytes: 256 * 1024 }
    }
}

/// Makes calls. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct HttpClient(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) clients: Clients,
    secrets: Arc<dyn Secrets>,
    timeout: Duration,
    max_answer_bytes: usize,
}

/// A call without an answer.
pub(super) enum Unanswered {
    /// The callee certainly never got it.
    Never(ToolFault),
    /// The callee may have got it.
    Lost(String),
}

impl From<Unanswered> for Called {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Never(fault) => Self::Done(ToolOutcome {
                status: ToolStatus::Error,
                value: Value::Null,
                error: Some(fault),
                duration_ms: None,
            }),
            Unanswered::Lost(reason) => Self::Unknown { reason },
        }
    }
}

impl HttpClient {
    pub fn new(options: HttpOptions) -> Self {
        let HttpOptions { guard, secrets, timeout, max_answer_bytes } = options;
        Self(Arc::new(Inner { clients: Clients::new(guard, timeout), secrets, timeout, max_answer_bytes }))
    }

    pub(super) fn prepare(&self, call: &HttpCall) -> Result<Outgoing, Unanswered> {
        Outgoing::new(call, &*self.0.secrets).map_err(Unanswered::Never)
    }

    pub(super) fn deadline(&self, timeout_ms: Option<u64>) -> Instant {
        let asked = timeout_ms.map_or(self.0.timeout, Duration::from_millis);
        Instant::now() + asked.min(self.0.timeout)
    }

    /// One request and one answer; no redirect is followed.
    pub(super) async fn exchange(&self, outgoing: &Outgoing, deadline: Instant) -> Result<Answer, Unanswered> {
        let client = self
            .0
            .clients
            .client(&outgoing.url)
            .map_err(|problem| Unanswered::Never(no_client(&problem, &outgoing.url)))?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Unanswered::Never(unreachable_host(outgoing, "there was no time left to call it")));
        }
        let mut request = client
            .request(outgoing.method.clone(), outgoing.url.clone())
            .headers(outgoing.headers.clone())
            .timeout(left);
        if let Some(body) = &outgoing.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| unanswered(outgoing, &error))?;
        Answer::read(response, self.0.max_answer_bytes).await.map_err(Unanswered::Lost)
    }

    /// Everything that must not show in an answer.
    pub(super) fn secrets(&self, outgoing: &Outgoing) -> Vec<Secret> {
        let mut secrets = self.0.secrets.known();
        secrets.extend(outgoing.used.iter().cloned());
        secrets
    }
}

fn no_client(problem: &NoClient, url: &Url) -> ToolFault {
    match problem {
        NoClient::Refused(refused) => denied(*refused, url),
        NoClient::Setup(_) => fault(code::INTERNAL_ERROR, "The HTTP client could not be set up.", true),
    }
}

fn unreachable_host(outgoing: &Outgoing, why: &str) -> ToolFault {
    let host = outgoing.url.host_str().unwrap_or_default();
    fault(code::EXTERNAL_CALL_FAILED, format!("{host} was not called: {why}."), true)
}

/// What a failed `send` means. Without the URL, which may carry a token of its own.
fn unanswered(outgoing: &Outgoing, error: &reqwest::Error) -> Unanswered {
    if let Some(refused) = refusal_in(error) {
        return Unanswered::Never(denied(refused, &outgoing.url));
    }
    let host = outgoing.url.host_str().unwrap_or_default();
    if error.is_connect() || error.is_builder() {
        let why = if error.is_timeout() { "connecting took too long" } else { "no connection could be made" };
        Unanswered::Never(unreachable_host(outgoing, why))
    } else if error.is_timeout() {
        Unanswered::Lost(format!("{host} did not answer in time"))
    } else {
        Unanswered::Lost(format!("the connection to {host} was cut before an answer came"))
    }
}

/// The guard's refusal, if that is what a failed connection goes back to.
fn refusal_in(error: &reqwest::Error) -> Option<Refused> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(*refused);
        }
        cause = error.source();
    }
    None
}
