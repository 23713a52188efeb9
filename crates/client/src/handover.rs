//! Starting a run on behalf of an event on another host.

use baton_model::ForeignCause;
use baton_model::TraceContext;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::{Client, Error, StartRun, StartedRun};

/// Why a run is asked for, and under which key it is made once.
#[derive(Clone, Copy, Debug)]
pub struct Handover<'a> {
    pub key: &'a str,
    pub cause: &'a ForeignCause,
    pub trace: Option<&'a TraceContext>,
    /// Nobody wants the run any more: it is made as a cancelled one unless it exists.
    pub withdrawn: bool,
}

impl Client {
    /// Like [`Client::start_run`], for a run whose parent is on another host.
    pub async fn hand_over(&self, run: &StartRun, handover: Handover<'_>) -> Result<StartedRun, Error> {
        let cause = handover.cause.header();
        let withdrawn = handover.withdrawn.then_some("true");
        let pairs = [
            ("idempotency-key", Some(handover.key)),
            (ForeignCause::HEADER, Some(cause.as_str())),
            (ForeignCause::WITHDRAWN, withdrawn),
            ("traceparent", handover.trace.map(|trace| trace.parent.as_str())),
            ("tracestate", handover.trace.and_then(|trace| trace.state.as_deref())),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            if let Some(value) = value {
                let unfit = |_| Error::BadName { name: name.to_owned() };
                headers.insert(HeaderName::from_static(name), HeaderValue::from_str(value).map_err(unfit)?);
            }
        }
        self.post_with(self.url(&["v1", "runs"]), run, headers).await
    }
}
