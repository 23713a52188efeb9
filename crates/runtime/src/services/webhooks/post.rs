//! One signed POST. Never follows a redirect, never uses a proxy, connects only where the guard allows, reads next to
//! nothing of the answer, and never logs a secret or a body.

use std::sync::Arc;
use std::time::Duration;

use baton_model::{Event, RunId, TenantId, Timestamp, TraceContext, json, mask_shapes_in_json};
use baton_store::{StoredRecord, Webhook};
use baton_tool::egress::{Clients, Guard, NoClient};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, USER_AGENT};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::Sha256;

use crate::services::observer::Caller;
use crate::services::webhooks::carrier::{SignedDelivery, WebhookCarrier};
use crate::services::webhooks::dead_letter_retention::WebhookDelivery;
use crate::{Error, ErrorKind};

/// From the first byte sent to the last byte read.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Enough to finish the usual `{"ok":true}` and keep the connection; a longer answer costs the sender a new one.
const ANSWER_BYTES: usize = 16 * 1024;
const AGENT: &str = concat!("openwop-webhook-dispatcher/", env!("CARGO_PKG_VERSION"));

#[derive(Debug, thiserror::Error)]
pub(crate) enum Undelivered {
    #[error("the stored address does not read back")]
    Address,
    #[error(transparent)]
    Client(#[from] NoClient),
    /// Without the URL: it may carry the subscriber's own token.
    #[error("no answer")]
    Transport(#[source] reqwest::Error),
    #[error("no answer")]
    Lost,
    #[error("answered {0}")]
    Status(u16),
}

impl Undelivered {
    /// What was answered, if anything was.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(*status),
            Self::Address | Self::Client(_) | Self::Transport(_) | Self::Lost => None,
        }
    }
}

/// Holds the clients, so that connections are reused between deliveries.
pub(crate) struct Sender {
    clients: Clients,
    carrier: Option<Arc<dyn WebhookCarrier>>,
}

impl Sender {
    pub(crate) fn new(guard: Guard, carrier: Option<Arc<dyn WebhookCarrier>>) -> Self {
        Self { clients: Clients::new(guard, TIMEOUT), carrier }
    }

    /// Succeeds if the subscriber answered 2xx.
    pub(crate) async fn post(
        &self,
        webhook: &Webhook,
        letter: WebhookBody<'_>,
        at: Timestamp,
    ) -> Result<(), Undelivered> {
        let url = Url::parse(&webhook.url).map_err(|_| Undelivered::Address)?;
        let timestamp = at.as_millis().div_euclid(1000).to_string();
        let signature = format!("sha256={}", sign(&webhook.secret, &timestamp, &letter.body));
        if let Some(carrier) = &self.carrier {
            let (webhook, url) = (webhook.id.to_string(), url.to_string());
            let delivery = SignedDelivery { url, webhook, body: letter.body, timestamp, signature };
            return match carrier.post(&delivery).await {
                Some(200..=299) => Ok(()),
                Some(status) => Err(Undelivered::Status(status)),
                None => Err(Undelivered::Lost),
            };
        }
        let client = self.clients.client(&url)?;
        let mut request = client.post(url).header(CONTENT_TYPE, "application/json").header(USER_AGENT, AGENT);
        for (name, value) in [
            ("Webhook-Id", webhook.id.as_str()),
            ("Event-Type", letter.kind),
            ("Timestamp", &timestamp),
            ("Signature", &signature),
            ("Signature-Algorithm", "v1"),
        ] {
            request = request.header(format!("X-openwop-{name}"), value).header(format!("OpenWOP-{name}"), value);
        }
        if let Some(trace) = &letter.trace {
            request = request.header("traceparent", &trace.parent);
            if let Some(state) = &trace.state {
                request = request.header("tracestate", state);
            }
        }
        let sent = request.body(letter.body).send().await;
        let mut answer = sent.map_err(|error| Undelivered::Transport(error.without_url()))?;
        if !answer.status().is_success() {
            return Err(Undelivered::Status(answer.status().as_u16()));
        }
        let mut read = 0;
        while read < ANSWER_BYTES
            && let Ok(Some(chunk)) = answer.chunk().await
        {
            read += chunk.len();
        }
        Ok(())
    }
}

/// What is sent: the same bytes at every attempt.
#[derive(Clone)]
pub(crate) struct WebhookBody<'a> {
    kind: &'a str,
    body: String,
    /// The trace that it is part of.
    trace: Option<TraceContext>,
}

impl<'a> WebhookBody<'a> {
    pub(crate) fn new(tenant: &TenantId, run: &RunId, record: &'a StoredRecord) -> Result<Self, serde_json::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'b> {
            #[serde(rename = "type")]
            kind: &'b str,
            run_id: &'b RunId,
            workspace_id: &'b TenantId,
            event: &'b RawValue,
        }
        // As clients see it; the log keeps what was said.
        let masked = mask_shapes_in_json(record.body.as_bytes()).and_then(|body| String::from_utf8(body).ok());
        let event = serde_json::from_str(masked.as_deref().unwrap_or(&record.body))?;
        let body = Body { kind: &record.kind, run_id: run, workspace_id: tenant, event };
        Ok(Self { kind: &record.kind, body: serde_json::to_string(&body)?, trace: None })
    }

    pub(crate) fn kind(&self) -> &str {
        self.kind
    }

    pub(crate) fn traced(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }
}

impl WebhookDelivery {
    /// The trace that a run's letters carry. A run in memory knows; else its first record does.
    pub(super) async fn trace_of(&self, run: &RunId) -> Result<Option<TraceContext>, Error> {
        let handle = self.storage.current().run(run);
        if let Some(handle) = handle
            && let Some(head) = handle.head_soon().await
        {
            return Ok(self.observers.trace_from(&head, Caller::Run));
        }
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let first = match self.log.log(&row, 0, 1).await {
            Ok(mut first) => first.pop().map(|stored| stored.decode(run)).transpose()?,
            // The beginning was pruned; the event itself is still to be delivered.
            Err(error) if error.kind == ErrorKind::Gone => None,
            Err(error) => return Err(error),
        };
        Ok(match first.map(|record| record.event) {
            Some(Event::RunStarted(started)) => {
                self.observers.outbound_trace(run, &started, row.origin.is_some(), Caller::Run)
            }
            _ => None,
        })
    }
}

fn sign(secret: &str, timestamp: &str, body: &str) -> String {
    // HMAC takes keys of any length, so there is always a tag.
    let tag = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        for part in [timestamp, ".", body] {
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes()
    });
    tag.map(|tag| json::hex(&tag)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_covers_timestamp_and_body() {
        // Computed independently: printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        assert_eq!(
            sign("key", "1700000000", "{\"a\":1}"),
            "a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03"
        );
        assert_ne!(sign("key", "1700000001", "{\"a\":1}"), sign("key", "1700000000", "{\"a\":1}"));
    }
}
