//! A run's log as spans, the same that are exported: one fold makes both.

use baton_model::{RunId, TenantId};
use baton_runtime::Host;
use baton_telemetry::{Detail, Link, RunSpans, Span, Status, Value};
use serde_json::{Map, Value as Json, json};

use crate::error::ApiError;
use crate::sse::PAGE;

/// Hands on the spans of the first `count` records in the order they ended; those under way come last. Registered
/// secrets are out of them.
pub async fn each(
    host: &Host,
    tenant: &TenantId,
    run: &RunId,
    count: u64,
    detail: Detail,
    mut take: impl FnMut(Span) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    let mut take = |mut span: Span| {
        span.redact(&host.options().secrets);
        take(span)
    };
    let mut fold: Option<RunSpans> = None;
    let mut next = 0;
    loop {
        let log = host.log(tenant, run, next, PAGE).await?;
        let fold = fold.get_or_insert_with(|| RunSpans::new(run.clone(), log.origin, detail));
        for record in log.records.iter().take_while(|record| record.seq < count) {
            fold.record(record).into_iter().try_for_each(&mut take)?;
        }
        next += log.records.len() as u64;
        // A page may end early because of what it weighs.
        if log.records.is_empty() || next >= count {
            return fold.under_way().into_iter().try_for_each(&mut take);
        }
    }
}

pub fn shown(span: &Span) -> Json {
    let attributes: Map<String, Json> =
        span.attributes.iter().map(|(key, value)| ((*key).to_owned(), plain(value))).collect();
    let link = |link: &Link| json!({"traceId": link.trace.to_string(), "spanId": link.span.to_string()});
    let mut status = json!({"code": span.status.as_str()});
    if let Status::Error(code) = &span.status {
        status["message"] = code.as_str().into();
    }
    json!({
        "name": span.name,
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "parentSpanId": span.parent.map(|parent| parent.span.to_string()),
        "kind": span.kind.as_str(),
        "startedAt": span.start,
        "endedAt": span.end,
        "attributes": attributes,
        "links": span.links.iter().map(link).collect::<Vec<_>>(),
        "status": status,
    })
}

fn plain(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Texts(texts) => texts.as_slice().into(),
        Value::Number(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
    }
}
