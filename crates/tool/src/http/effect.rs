//! The HTTP call of a workflow (`vendor.baton.http`), and the question whether an earlier one took place.

use serde_json::Value;

use super::client::{HttpClient, Unanswered};
use super::request::HttpCall;
use crate::Called;

/// What is known about a call that nobody heard of again.
#[derive(Clone, Debug, PartialEq)]
pub enum Verified {
    /// It took place; this is what is to be found now.
    Done(Value),
    /// It did not take place.
    NotDone,
    /// Still nobody knows.
    Unknown { reason: String },
}

/// Makes the calls of workflows. Cheap to clone.
#[derive(Clone)]
pub struct HttpEffect(HttpClient);

impl std::fmt::Debug for HttpEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HttpEffect")
    }
}

impl HttpEffect {
    pub const fn new(client: HttpClient) -> Self {
        Self(client)
    }

    /// Makes the call once; no redirect is followed. The value of a done call is
    /// `{status, url, contentType?, location?, body | bodyBase64, truncated?}`.
    pub async fn send(&self, call: &HttpCall) -> Called {
        self.0.send(call).await
    }

    /// Looks up whether a call took place: `GET` of the call's `url`, without its body. An answer of 2xx means it did, 404
    /// that it did not; anything else says nothing.
    pub async fn verify(&self, lookup: &HttpCall) -> Verified {
        let lookup = HttpCall { method: "GET".to_owned(), body: Value::Null, ..lookup.clone() };
        let deadline = self.0.deadline(lookup.timeout_ms);
        let asked = async {
            let outgoing = self.0.prepare(&lookup)?;
            let answer = self.0.exchange(&outgoing, deadline).await?;
            Ok::<_, Unanswered>((answer, self.0.secrets(&outgoing)))
        };
        match asked.await {
            Ok((answer, secrets)) if answer.is_success() => Verified::Done(answer.shown(&secrets)),
            Ok((answer, _)) if answer.status == 404 => Verified::NotDone,
            Ok((answer, _)) => {
                Verified::Unknown { reason: format!("the place to look it up answered {}", answer.status) }
            }
            Err(Unanswered::Never(fault)) => Verified::Unknown { reason: fault.message },
            Err(Unanswered::Lost(reason)) => Verified::Unknown { reason },
        }
    }
}
