//! Events that a test wants to see judged and shown without a run. They stand in no run's log: a log is written by the
//! engine and by nobody else. Only the endpoint of the log shows them, and a reset forgets them.

use std::collections::BTreeMap;

use baton_model::{RunId, Secret, TenantId, Timestamp};
use baton_telemetry::{Envelope, Span};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// So many are kept; a test that wants more has forgotten to reset.
const MOST: usize = 10_000;

/// What test endpoints need between two requests.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    journal: Mutex<BTreeMap<(TenantId, String), Vec<Value>>>,
    spans: Mutex<BTreeMap<(TenantId, String), Vec<Span>>>,
    /// Held while the mock provider is told what to say to one invocation: another's call must not take its answer.
    pub(crate) invoking: tokio::sync::Mutex<()>,
}

/// An event to be shown.
pub(crate) struct Shown<'a> {
    pub(crate) kind: &'a str,
    pub(crate) payload: Value,
    pub(crate) node: Option<&'a str>,
    pub(crate) cause: Option<&'a str>,
    pub(crate) trust: Option<&'a str>,
}

impl Journal {
    /// Keeps an event and returns it as it will be shown, after the `logged` events of the run itself; none when there is
    /// no room for more.
    pub(crate) fn show(
        &self,
        tenant: &TenantId,
        run: &str,
        at: Timestamp,
        logged: usize,
        event: Shown<'_>,
    ) -> Option<Value> {
        let mut journal = self.journal.lock();
        if journal.values().map(Vec::len).sum::<usize>() >= MOST {
            return None;
        }
        let events = journal.entry((tenant.clone(), run.to_owned())).or_default();
        let mut shown = json!({
            "eventId": format!("seam_{}", uuid::Uuid::now_v7().simple()),
            "runId": run, "type": event.kind, "payload": event.payload, "timestamp": at,
            "sequence": logged + events.len(),
        });
        for (name, value) in [("nodeId", event.node), ("causationId", event.cause), ("contentTrust", event.trust)] {
            if let Some(value) = value {
                shown[name] = value.into();
            }
        }
        events.push(shown.clone());
        Some(shown)
    }

    /// What was kept, numbered after the `logged` events of the run itself, however many it has by now.
    pub(crate) fn of(&self, tenant: &TenantId, run: &str, logged: usize) -> Vec<Value> {
        let mut events = self.journal.lock().get(&(tenant.clone(), run.to_owned())).cloned().unwrap_or_default();
        for (place, event) in events.iter_mut().enumerate() {
            event["sequence"] = (logged + place).into();
        }
        events
    }

    /// Keeps the span of an envelope, without these secrets; none when there is no room for more.
    pub(crate) fn tell(
        &self,
        tenant: &TenantId,
        run: &str,
        at: Timestamp,
        envelope: &Envelope,
        secrets: &[Secret],
    ) -> Option<()> {
        let mut all = self.spans.lock();
        if all.values().map(Vec::len).sum::<usize>() >= MOST {
            return None;
        }
        let spans = all.entry((tenant.clone(), run.to_owned())).or_default();
        let mut span = envelope.alone(&RunId::new(run), spans.len() as u64, at);
        span.redact(secrets);
        spans.push(span);
        Some(())
    }

    pub(crate) fn spans_of(&self, tenant: &TenantId, run: &str) -> Vec<Span> {
        self.spans.lock().get(&(tenant.clone(), run.to_owned())).cloned().unwrap_or_default()
    }

    pub(crate) fn forget(&self) {
        self.journal.lock().clear();
        self.spans.lock().clear();
    }
}
