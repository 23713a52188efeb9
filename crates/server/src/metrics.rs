//! Request counts and latencies, and what Prometheus is shown of them. Labels are route patterns, never ids.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

const REQUESTS: &str = "baton_http_requests_total";
const SECONDS: &str = "baton_http_request_seconds";
const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];
/// How often recorded samples are folded into buckets when nobody scrapes.
pub(crate) const UPKEEP: Duration = Duration::from_secs(5);

/// The process-wide recorder; absent when the program around us installed its own.
#[derive(Clone)]
pub(crate) struct Metrics(Option<PrometheusHandle>);

impl Metrics {
    pub(crate) fn shared() -> Self {
        static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
        let handle = RECORDER.get_or_init(|| {
            PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
                .ok()?
                .install_recorder()
                .ok()
        });
        Self(handle.clone())
    }

    pub(crate) fn upkeep(&self) {
        if let Some(handle) = &self.0 {
            handle.run_upkeep();
        }
    }

    fn render(&self) -> String {
        self.0.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }
}

/// Set on a response whose route pattern does not say which operation it was.
#[derive(Clone)]
pub(crate) struct Operation(pub(crate) Arc<str>);

pub(crate) async fn record(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let method = name_of(request.method());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let path = match (response.extensions().get::<Operation>(), matched) {
        (Some(operation), _) => operation.0.to_string(),
        (None, Some(matched)) => matched.as_str().to_owned(),
        (None, None) => "unmatched".to_owned(),
    };
    let status = response.status().as_str().to_owned();
    tracing::debug!(method, path, status, micros = began.elapsed().as_micros() as u64, "answered");
    metrics::counter!(REQUESTS, "method" => method, "path" => path.clone(), "status" => status).increment(1);
    metrics::histogram!(SECONDS, "method" => method, "path" => path).record(began.elapsed().as_secs_f64());
    response
}

/// Method names are caller-chosen; only known ones may become a label.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

pub(crate) fn rendered(metrics: &Metrics) -> Response {
    let mut response = metrics.render().into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
    response
}
