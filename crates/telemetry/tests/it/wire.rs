//! The exporter against a collector on loopback: what goes over the wire, and what happens when nobody takes it.

use std::time::Duration;

use baton_model::{Secret, Timestamp};
use baton_telemetry::export::{Encoding, Endpoint, Error, Exporter, Header, Settings};
use baton_telemetry::{Kind, Link, Parent, Span, SpanId, Status, TraceId};
use baton_testkit::Collector;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Sent;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

const PATIENCE: Duration = Duration::from_secs(20);

fn settings(url: &str) -> Settings {
    Settings {
        endpoint: Endpoint::parse(url).unwrap(),
        encoding: Encoding::Protobuf,
        headers: vec![Header { name: "authorization".to_owned(), value: "Bearer t".to_owned() }],
        version: "1.2.3".to_owned(),
        host_id: "host-a".to_owned(),
        secrets: vec![Secret::new("key", "sk-live-123456")],
    }
}

fn span(number: u8) -> Span {
    Span {
        trace: TraceId([7; 16]),
        id: SpanId([number.max(1); 8]),
        parent: Some(Parent { span: SpanId([9; 8]), remote: true }),
        name: "openwop.node.core.x".to_owned(),
        kind: Kind::Internal,
        start: Timestamp::from_micros(1_000),
        end: Some(Timestamp::from_micros(3_000)),
        attributes: vec![("openwop.node_id", "a sk-live-123456".into()), ("openwop.node_attempt", 2_u32.into())],
        links: vec![Link { trace: TraceId([7; 16]), span: SpanId([8; 8]) }],
        status: Status::Error("flaky".to_owned()),
        sampled: true,
        state: Some("a=1".to_owned()),
    }
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let value = &attributes.iter().find(|attribute| attribute.key == key)?.value;
    match value {
        Some(AnyValue { value: Some(Sent::StringValue(text)) }) => Some(text),
        _ => None,
    }
}

#[test]
fn a_span_arrives_as_it_was_told() {
    let collector = Collector::start(200);
    let exporter = Exporter::start(settings(&collector.url)).unwrap();
    exporter.offer(span(1));
    exporter.offer(Span { sampled: false, ..span(2) });
    assert!(exporter.close(PATIENCE));
    let requests = collector.requests();
    assert_eq!(requests.len(), 1);
    let head = requests[0].head.to_lowercase();
    assert!(head.starts_with("post /v1/traces "), "{head}");
    for line in ["content-type: application/x-protobuf\r\n", "authorization: bearer t\r\n"] {
        assert!(head.contains(line), "{head}");
    }
    let resource = requests[0].decoded().resource_spans.remove(0).resource.unwrap().attributes;
    for (key, value) in [
        ("service.name", "baton"),
        ("service.version", "1.2.3"),
        ("service.instance.id", "host-a"),
        ("openwop.protocol_version", "1.0"),
    ] {
        assert_eq!(text(&resource, key), Some(value));
    }
    let [sent] = &collector.spans()[..] else { panic!("one is not wanted by whoever began its trace") };
    assert_eq!(
        (&sent.trace_id[..], &sent.span_id[..], &sent.parent_span_id[..]),
        (&[7; 16][..], &[1; 8][..], &[9; 8][..])
    );
    assert_eq!((sent.start_time_unix_nano, sent.end_time_unix_nano), (1_000_000, 3_000_000));
    assert_eq!((sent.name.as_str(), sent.trace_state.as_str()), ("openwop.node.core.x", "a=1"));
    assert_eq!(text(&sent.attributes, "openwop.node_id"), Some("a [REDACTED:key]"));
    assert_eq!(sent.links[0].span_id, [8; 8]);
    let status = sent.status.clone().unwrap();
    assert_eq!((status.code(), status.message.as_str()), (StatusCode::Error, "flaky"));
    assert!(!requests[0].body.windows(6).any(|six| six == b"123456"));
}

#[test]
fn a_span_arrives_in_json_where_that_is_wanted() {
    let collector = Collector::start(200);
    let settings = Settings { encoding: Encoding::Json, ..settings(&collector.url) };
    let exporter = Exporter::start(settings).unwrap();
    exporter.offer(span(1));
    assert!(exporter.close(PATIENCE));
    let requests = collector.requests();
    let head = requests[0].head.to_lowercase();
    assert!(head.starts_with("post /v1/traces ") && head.contains("content-type: application/json\r\n"), "{head}");
    let body: serde_json::Value = serde_json::from_slice(&requests[0].body).unwrap();
    let sent = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    // Ids are hex and large numbers texts, not what is usual for bytes and numbers in JSON.
    assert_eq!((&sent["traceId"], &sent["spanId"]), (&"07".repeat(16).into(), &"01".repeat(8).into()), "{body}");
    assert_eq!(sent["startTimeUnixNano"], "1000000");
    assert_eq!(sent["attributes"][0]["value"]["stringValue"], "a [REDACTED:key]");
    assert_eq!(sent["attributes"][1]["value"]["intValue"], "2");
    assert_eq!((&sent["status"]["code"], &sent["status"]["message"]), (&2.into(), &"flaky".into()));
}

#[test]
fn a_batch_that_was_not_taken_is_sent_again() {
    let collector = Collector::start(503);
    let exporter = Exporter::start(settings(&collector.url)).unwrap();
    exporter.offer(span(1));
    collector.wait_for(1);
    collector.answer(200);
    collector.wait_for(2);
    exporter.offer(span(2));
    assert!(exporter.close(PATIENCE));
    let ids: Vec<_> = collector.spans().into_iter().map(|span| span.span_id[0]).collect();
    assert_eq!(ids, [1, 1, 2]);
}

#[test]
fn nobody_waits_for_a_collector_that_does_not_answer() {
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    let counted = recorder.handle();
    let collector = Collector::start(0);
    let exporter = Exporter::start(settings(&collector.url)).unwrap();
    // The first batch is held by the collector; the queue then takes what it can hold.
    (0..512).for_each(|_| exporter.offer(span(1)));
    collector.wait_for(1);
    metrics::with_local_recorder(&recorder, || (0..10_000).for_each(|_| exporter.offer(span(2))));
    let dropped = counted.render();
    let line = dropped.lines().find(|line| line.starts_with("baton_otlp_spans_dropped_total")).expect("a counter");
    assert!(
        line.contains("queue-full") && line.ends_with(" 1808"),
        "10000 did not fit into 8192, and none waited: {line}"
    );
    assert!(!exporter.close(Duration::from_millis(100)), "not everything went out");
    assert_eq!(collector.requests().len(), 1, "stopping did not wait until the exporter gave the first batch up");
}

#[test]
fn a_collector_that_is_away_costs_nothing_but_its_spans() {
    // The system gives nobody a port below 1024, so nobody listens there.
    let exporter = Exporter::start(settings("http://127.0.0.1:1")).unwrap();
    exporter.offer(span(1));
    assert!(!exporter.close(PATIENCE));
    exporter.offer(span(2));
}

#[test]
fn a_header_that_cannot_be_sent_is_said_at_once() {
    let mut settings = settings("http://127.0.0.1:9");
    settings.headers[0].value = "line\r\nbreak".to_owned();
    assert!(!format!("{settings:?}").contains("break"));
    let refused = Exporter::start(settings).map(|_| ()).unwrap_err();
    assert!(matches!(&refused, Error::Header(name) if name == "authorization"), "{refused}");
}
