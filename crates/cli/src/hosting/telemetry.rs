//! What runs do, told to a collector. The runtime says what has become durable, the fold makes spans of it, the exporter
//! sends them.

use std::sync::Arc;
use std::time::Duration;

use baton_model::TraceContext;
use baton_model::event::RunStarted;
use baton_model::{Origin, Record, RunId, Secret};
use baton_runtime::{Caller, Follower, Observer};
use baton_telemetry::export::{Endpoint, Exporter, Header, Settings};
use baton_telemetry::{Detail, Lineage, Place, RunSpans};

use super::secrets;
use crate::commands::VERSION;
use crate::config::{Config, Reference};
use crate::exit::Exit;
use crate::failure::Failure;

/// How long stopping waits for the collector.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Telemetry {
    exporter: Exporter,
    detail: Detail,
}

/// Where spans go, and what is sent along.
pub(crate) struct Collector {
    endpoint: Endpoint,
    headers: Vec<Header>,
}

/// Nothing, unless one is configured.
pub(crate) fn collector(config: &Config) -> Result<Option<Collector>, Failure> {
    let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
    let endpoint = Endpoint::parse(endpoint)
        .ok_or_else(|| Failure::usage("`otlp_endpoint` is not an address that spans can be sent to"))?;
    let header = |reference: &Reference| {
        let value = secrets::value(reference, "otlp_headers")?.text;
        Ok(Header { name: reference.id.clone(), value })
    };
    let headers = config.otlp_headers.iter().map(header).collect::<Result<_, Failure>>()?;
    Ok(Some(Collector { endpoint, headers }))
}

pub(crate) fn start(
    collector: Collector,
    config: &Config,
    host_id: &str,
    kept_out: &[Secret],
) -> Result<Telemetry, Failure> {
    let Collector { endpoint, headers } = collector;
    let (version, host_id, secrets) = (VERSION.to_owned(), host_id.to_owned(), kept_out.to_vec());
    let encoding = config.otlp_encoding;
    let settings = Settings { endpoint, encoding, headers, version, host_id, secrets };
    let exporter = Exporter::start(settings).map_err(|error| {
        Failure::new(Exit::Failed, format!("spans cannot be exported: {error}"))
            .hint("check otlp_endpoint and otlp_headers, or remove them")
    })?;
    Ok(Telemetry { exporter, detail: Detail { events: config.otlp_events, ..Detail::default() } })
}

impl Telemetry {
    /// Sends what is left, for as long as a stop may take.
    pub(crate) async fn close(self) {
        // The collector's client blocks; nothing else should.
        let closed = tokio::task::spawn_blocking(move || self.exporter.close(TIMEOUT)).await;
        if !closed.unwrap_or(false) {
            tracing::warn!("stopped before the collector had taken every span");
        }
    }
}

impl Observer for Telemetry {
    fn follow(&self, run: &RunId, origin: Option<&Origin>) -> Box<dyn Follower> {
        let spans = RunSpans::new(run.clone(), origin.cloned(), self.detail);
        Box::new(Following { spans, exporter: self.exporter.clone() })
    }

    fn trace(&self, run: &RunId, started: &RunStarted, forked: bool, caller: Caller<'_>) -> TraceContext {
        let place = match caller {
            Caller::Run => Place::Run { segment: 0 },
            Caller::Node { node, visit } => Place::Node { node, visit, segment: 0 },
        };
        Lineage::of(run, started, forked).context(run, place)
    }
}

struct Following {
    spans: RunSpans,
    exporter: Exporter,
}

impl Follower for Following {
    fn record(&mut self, record: &Record, fresh: bool) {
        for span in self.spans.record(record) {
            // What ended before is told already.
            if fresh {
                self.exporter.offer(span);
            }
        }
    }
}

/// As the runtime wants it.
pub(crate) fn observer(telemetry: Option<&Telemetry>) -> Option<Arc<dyn Observer>> {
    telemetry.map(|telemetry| Arc::new(telemetry.clone()) as Arc<dyn Observer>)
}
