//! OTLP over HTTP: ours turned into theirs, and one request.

use std::collections::HashMap;
use std::str::FromStr as _;
use std::time::{Duration, SystemTime};

use baton_model::Timestamp;
use opentelemetry::trace::{Link as OtelLink, SpanContext, SpanId, SpanKind, Status as OtelStatus, TraceFlags};
use opentelemetry::trace::{TraceId, TraceState};
use opentelemetry::{Array, InstrumentationScope, KeyValue, StringValue, Value as OtelValue};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;

use super::settings::{Encoding, Endpoint, Error, Settings};
use crate::PROTOCOL_VERSION;
use crate::span::{Kind, Link, Span, Status, Value};

/// From the first byte sent to the last byte read.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One connection to one collector.
pub(super) struct Sender {
    exporter: SpanExporter,
    scope: InstrumentationScope,
}

impl Sender {
    /// Must not be called where a scheduler runs: the client brings its own.
    pub(super) fn new(settings: &Settings) -> Result<Self, Error> {
        let mut headers = HashMap::new();
        for header in &settings.headers {
            // Whatever does not fit would silently not be sent.
            let fits = HeaderName::from_str(&header.name).is_ok() && HeaderValue::from_str(&header.value).is_ok();
            if !fits {
                return Err(Error::Header(header.name.clone()));
            }
            headers.insert(header.name.clone(), header.value.clone());
        }
        let build = SpanExporter::builder()
            .with_http()
            .with_http_client(client(&settings.endpoint).map_err(|error| Error::Client(error.to_string()))?)
            .with_endpoint(settings.endpoint.as_str())
            .with_protocol(match settings.encoding {
                Encoding::Protobuf => Protocol::HttpBinary,
                Encoding::Json => Protocol::HttpJson,
            })
            .with_timeout(TIMEOUT)
            .with_retry_policy(RetryPolicy::disabled())
            .with_headers(headers)
            .build();
        let mut exporter = build.map_err(|error| Error::Client(error.to_string()))?;
        let resource = Resource::builder_empty().with_attributes([
            KeyValue::new("service.name", "baton"),
            KeyValue::new("service.version", settings.version.clone()),
            KeyValue::new("service.instance.id", settings.host_id.clone()),
            KeyValue::new("openwop.protocol_version", PROTOCOL_VERSION),
        ]);
        exporter.set_resource(&resource.build());
        let scope = InstrumentationScope::builder("baton").with_version(settings.version.clone()).build();
        Ok(Self { exporter, scope })
    }

    pub(super) fn send(&self, batch: &[Span]) -> Result<(), String> {
        let batch = batch.iter().map(|span| data(span, &self.scope)).collect();
        futures_executor::block_on(self.exporter.export(batch)).map_err(|error| error.to_string())
    }
}

fn client(endpoint: &Endpoint) -> Result<reqwest::blocking::Client, reqwest::Error> {
    // A client cannot be built without a provider, not even for plain HTTP. Whoever embeds us may have chosen one.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster; then theirs counts.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let builder = reqwest::blocking::Client::builder().redirect(Policy::none()).no_proxy().timeout(TIMEOUT);
    // Plain HTTP must work where there are no CA certificates.
    let secure = endpoint.0.scheme() == "https";
    if secure { builder.build() } else { builder.tls_certs_only([]).build() }
}

fn data(span: &Span, scope: &InstrumentationScope) -> SpanData {
    let state = span.state.as_deref().and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
    let mut links = SpanLinks::default();
    links.links.extend(span.links.iter().map(link));
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(span.trace.0),
            SpanId::from_bytes(span.id.0),
            TraceFlags::SAMPLED,
            false,
            state,
        ),
        parent_span_id: span.parent.map_or(SpanId::INVALID, |parent| SpanId::from_bytes(parent.span.0)),
        parent_span_is_remote: span.parent.is_some_and(|parent| parent.remote),
        span_kind: match span.kind {
            Kind::Internal => SpanKind::Internal,
            Kind::Client => SpanKind::Client,
        },
        name: span.name.clone().into(),
        start_time: instant(span.start),
        end_time: instant(span.end.unwrap_or(span.start)),
        attributes: span.attributes.iter().map(|(key, value)| KeyValue::new(*key, attribute(value))).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: match &span.status {
            Status::Unset => OtelStatus::Unset,
            Status::Ok => OtelStatus::Ok,
            Status::Error(code) => OtelStatus::error(code.clone()),
        },
        instrumentation_scope: scope.clone(),
    }
}

fn link(link: &Link) -> OtelLink {
    let (trace, span) = (TraceId::from_bytes(link.trace.0), SpanId::from_bytes(link.span.0));
    OtelLink::with_context(SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::default()))
}

fn attribute(value: &Value) -> OtelValue {
    match value {
        Value::Text(text) => text.clone().into(),
        Value::Texts(texts) => {
            let texts: Vec<StringValue> = texts.iter().map(|text| text.clone().into()).collect();
            OtelValue::Array(Array::String(texts))
        }
        Value::Number(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
    }
}

fn instant(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(at.as_micros()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_path_gets_the_usual_one() {
        let read = |text: &str| Endpoint::parse(text).map(|endpoint| endpoint.as_str().to_owned());
        assert_eq!(read("http://localhost:4318").as_deref(), Some("http://localhost:4318/v1/traces"));
        assert_eq!(read("https://otel.example.com/").as_deref(), Some("https://otel.example.com/v1/traces"));
        assert_eq!(read("https://x.example/api/otlp?k=1").as_deref(), Some("https://x.example/api/otlp?k=1"));
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in
            ["", "localhost:4318", "/v1/traces", "grpc://localhost:4317", "http://", "http://a:b@host", "http://u@h"]
        {
            assert_eq!(Endpoint::parse(bad), None, "{bad}");
        }
    }
}
