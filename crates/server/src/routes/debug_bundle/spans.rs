//! The run's log as spans, the same that are exported: names, times, codes, and nothing that was said.

use baton_model::{RunId, Secret, TenantId};
use baton_runtime::Host;
use baton_telemetry::{Detail, RunSpans, Span, Status, Value};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value as Json, json};

use super::unwritable;
use crate::error::ApiError;
use crate::sse::PAGE;

/// As many spans as there is room for, in the order they ended; those under way come last.
pub(super) struct Spans {
    pub(super) all: Vec<Box<RawValue>>,
    room: usize,
    pub(super) cut: bool,
}

impl Spans {
    /// Of the first `count` records.
    pub(super) async fn read(
        host: &Host,
        tenant: &TenantId,
        run: &RunId,
        count: u64,
        room: usize,
    ) -> Result<Self, ApiError> {
        let secrets = &host.options().secrets;
        let mut spans = Self { all: Vec::new(), room, cut: false };
        let mut fold: Option<RunSpans> = None;
        let mut next = 0;
        loop {
            let log = host.log(tenant, run, next, PAGE).await?;
            // Tags and scope are somebody else's words, and bundles leave those out.
            let detail = Detail { labels: false, ..Detail::default() };
            let fold = fold.get_or_insert_with(|| RunSpans::new(run.clone(), log.origin, detail));
            for record in log.records.iter().take_while(|record| record.seq < count) {
                fold.record(record).into_iter().try_for_each(|span| spans.add(span, secrets))?;
            }
            next += log.records.len() as u64;
            if log.records.len() < PAGE || next >= count {
                fold.under_way().into_iter().try_for_each(|span| spans.add(span, secrets))?;
                return Ok(spans);
            }
        }
    }

    fn add(&mut self, mut span: Span, secrets: &[Secret]) -> Result<(), ApiError> {
        span.redact(secrets);
        let span = to_raw_value(&shown(&span)).map_err(|_| unwritable())?;
        // One more for the comma.
        match self.room.checked_sub(span.get().len() + 1).filter(|_| !self.cut) {
            Some(room) => {
                self.room = room;
                self.all.push(span);
            }
            None => self.cut = true,
        }
        Ok(())
    }
}

fn shown(span: &Span) -> Json {
    let attributes: Map<String, Json> =
        span.attributes.iter().map(|(key, value)| ((*key).to_owned(), plain(value))).collect();
    let link =
        |link: &baton_telemetry::Link| json!({"traceId": link.trace.to_string(), "spanId": link.span.to_string()});
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::Timestamp;
    use baton_telemetry::{Kind, SpanId, TraceId};

    #[test]
    fn spans_that_do_not_fit_are_left_out_from_the_end() {
        let span = Span {
            trace: TraceId([1; 16]),
            id: SpanId([2; 8]),
            parent: None,
            name: "openwop.run".to_owned(),
            kind: Kind::Internal,
            start: Timestamp::from_micros(0),
            end: None,
            attributes: vec![("openwop.run_id", "sk-live-123456".into())],
            links: Vec::new(),
            status: Status::Error("flaky".to_owned()),
            sampled: false,
            state: None,
        };
        let secrets = [Secret::new("key", "sk-live-123456")];
        let mut one = Spans { all: Vec::new(), room: usize::MAX, cut: false };
        one.add(span.clone(), &secrets).unwrap();
        assert!(one.all[0].get().contains("[REDACTED:key]"), "{}", one.all[0]);
        let mut spans = Spans { all: Vec::new(), room: 2 * (one.all[0].get().len() + 1), cut: false };
        for _ in 0..3 {
            spans.add(span.clone(), &secrets).unwrap();
        }
        assert_eq!((spans.all.len(), spans.cut), (2, true));
    }
}
