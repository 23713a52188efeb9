//! Every log that earlier builds wrote, told as spans: each that begins ends exactly once, hangs in its trace, and comes
//! out the same however far somebody else had read before.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use baton_model::{Event, Origin, Record, RunId, Timestamp, Versions};
use baton_telemetry::{Detail, Place, RunSpans, Span, SpanId};
use serde_json::Value;

struct Run {
    id: RunId,
    origin: Option<Origin>,
    records: Vec<Record>,
}

/// The runs of one file, each with its whole log.
fn runs(text: &str) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(run) = line.get("run") {
            let origin: Option<Origin> =
                run.get("origin").map(|origin| serde_json::from_value(origin.clone()).unwrap());
            let inherited = origin.as_ref().map_or(Vec::new(), |origin| {
                let source = runs.iter().find(|run| run.id == origin.source).expect("sources come first");
                source.records.iter().take_while(|record| record.seq < origin.seq).cloned().collect()
            });
            runs.push(Run { id: RunId::new(run["id"].as_str().unwrap()), origin, records: inherited });
        }
        if let Some(stored) = line.get("record") {
            let private = stored.get("private").map(Value::to_string);
            let (kind, payload) = (stored["kind"].as_str().unwrap(), stored["body"]["payload"].to_string());
            let part = stored.get("part").map(|part| baton_model::Part {
                outside: part["outside"].as_bool().unwrap(),
                first: part["first"].as_bool().unwrap(),
            });
            let record = Record {
                seq: stored["seq"].as_u64().unwrap(),
                at: Timestamp::parse(stored["at"].as_str().unwrap()).unwrap(),
                event: Event::decode(kind, &payload, private.as_deref()).unwrap(),
                causation: None,
                versions: Versions::default(),
                part,
            };
            runs.last_mut().unwrap().records.push(record);
        }
    }
    runs
}

fn journals() -> Vec<(String, Vec<Run>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/journals");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let journals: Vec<_> =
        logs.map(|path| (path.display().to_string(), runs(&std::fs::read_to_string(&path).unwrap()))).collect();
    assert!(journals.len() >= 10, "{}", journals.len());
    journals
}

fn told(run: &Run) -> Vec<Span> {
    let mut fold = RunSpans::new(run.id.clone(), run.origin.clone(), Detail { events: true, labels: true });
    let spans: Vec<Span> = run.records.iter().flat_map(|record| fold.record(record)).collect();
    assert_eq!(fold.under_way(), Vec::new(), "{} has ended", run.id);
    spans
}

#[test]
fn every_span_ends_once_and_hangs_in_its_trace() {
    let mut kinds = BTreeSet::new();
    for (file, runs) in journals() {
        let spans: Vec<Span> = runs.iter().flat_map(told).collect();
        let by_id: BTreeMap<SpanId, &Span> = spans.iter().map(|span| (span.id, span)).collect();
        assert_eq!(by_id.len(), spans.len(), "{file}: a name was used twice");
        for span in &spans {
            kinds.insert(span.name.split('.').take(2).collect::<Vec<_>>().join("."));
            assert!(span.end.is_some_and(|end| end >= span.start), "{file}: {span:?}");
            match span.parent {
                Some(parent) => {
                    let above = by_id.get(&parent.span).unwrap_or_else(|| panic!("{file}: nobody above {span:?}"));
                    assert_eq!(above.trace, span.trace, "{file}: {span:?}");
                    assert!(above.start <= span.start, "{file}: {span:?} begins before {above:?}");
                }
                None => assert_eq!(span.name, "openwop.run", "{file}"),
            }
            for link in &span.links {
                let before = by_id.get(&link.span).unwrap_or_else(|| panic!("{file}: {span:?} links to nothing"));
                assert_eq!(before.trace, link.trace, "{file}: {span:?}");
            }
        }
        for run in &runs {
            begun_and_ended(&file, run, &spans);
        }
    }
    for kind in ["openwop.event", "openwop.interrupt", "openwop.node", "openwop.run"] {
        assert!(kinds.contains(kind), "no journal has {kind}");
    }
}

/// As many visits as began have ended, and the run's last span says how it ended.
fn begun_and_ended(file: &str, run: &Run, spans: &[Span]) {
    let own: Vec<&Span> =
        spans.iter().filter(|span| span.get("openwop.run_id") == Some(&run.id.as_str().into())).collect();
    let from = run.origin.as_ref().map_or(0, |origin| origin.seq);
    let mut attempts = BTreeSet::new();
    for record in run.records.iter().filter(|record| record.seq >= from) {
        if let Event::NodeStarted(event) = &record.event {
            let attempt =
                Place::Attempt { node: &event.node_id, visit: event.private.visit, attempt: event.attempt, segment: 0 };
            attempts.insert(attempt.of(&run.id));
        }
    }
    let ended: BTreeSet<SpanId> = own.iter().map(|span| span.id).collect();
    assert!(attempts.is_subset(&ended), "{file}: {} lost an attempt", run.id);
    let last = own.iter().rfind(|span| span.name == "openwop.run").unwrap();
    let word = match &run.records.last().unwrap().event {
        Event::RunCompleted(_) => "completed",
        Event::RunFailed(_) => "failed",
        Event::RunCancelled(_) => "cancelled",
        other => panic!("{file}: ends with {}", other.type_name()),
    };
    assert_eq!(last.get("baton.outcome"), Some(&word.into()), "{file}");
}

/// Another process goes on from any point: what it tells and what the first one told is what one alone would have.
#[test]
fn a_log_can_be_taken_up_anywhere() {
    for (file, runs) in journals() {
        for run in &runs {
            let whole = told(run);
            for cut in 0..run.records.len() {
                let mut told = Vec::new();
                for process in 0..2 {
                    let detail = Detail { events: true, labels: true };
                    let mut fold = RunSpans::new(run.id.clone(), run.origin.clone(), detail);
                    for (place, record) in run.records.iter().enumerate() {
                        let spans = fold.record(record);
                        if (place < cut) == (process == 0) {
                            told.extend(spans);
                        }
                    }
                }
                assert_eq!(told, whole, "{file}: {} at {cut}", run.id);
            }
        }
    }
}
