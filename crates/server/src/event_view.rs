//! How events look on the wire: the one place that writes them. A stored event is sent as it lies there, so what is
//! written here is what goes around it, and what is an event to readers without being in a log.

use baton_api as api;
use baton_api::NewerFields;
use baton_model::{Annotation, RunId};
use baton_runtime::EventPage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The type of what somebody says about a run.
pub(crate) const REMARK: &str = "run.annotated";
/// A whole log; the stored events follow, and then [`END`].
pub(crate) const LOG_BEGINS: &[u8] = b"{\"events\":[";
/// Behind the last event of a log or a page.
pub(crate) const END: &[u8] = b"]}";

/// Appends the stored lines, comma separated.
pub(crate) fn push_all(out: &mut Vec<u8>, page: &EventPage, mut first: bool) {
    out.reserve(page.events.iter().map(|line| line.body.len() + 1).sum::<usize>() + END.len());
    for line in &page.events {
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(line.body.as_bytes());
    }
}

/// The answer to a poll. Both "the end" flags wait until the last event is in it.
pub(crate) fn page(run: &RunId, page: &EventPage, after: Option<u64>) -> Vec<u8> {
    let complete = page.is_final(after);
    let around = api::EventPage {
        is_complete: complete,
        is_terminal: complete,
        last_event_seq: page.events.last().map(|line| line.seq).or(after),
        run_id: run.to_string(),
        run_status: page.status,
        events: Vec::new(),
    };
    // Strings and numbers always serialise, and the last member is the empty list.
    let mut out = serde_json::to_vec(&around).unwrap_or_default();
    out.truncate(out.len().saturating_sub(END.len()));
    push_all(&mut out, page, true);
    out.extend_from_slice(END);
    out
}

/// What somebody said about a run, as an event. It has no place in the log, so it has the sequence of what came last.
pub(crate) fn remark(run: &RunId, after: u64, annotation: &Annotation) -> String {
    let event = api::RunEvent {
        event_id: annotation.annotation_id.to_string(),
        run_id: run.to_string(),
        sequence: after,
        kind: REMARK.to_owned(),
        timestamp: annotation.created_at,
        node_id: None,
        causation_id: None,
        payload: serde_json::to_value(annotation).unwrap_or_default(),
        rest: NewerFields::default(),
    };
    // By way of a value: members in the order of stored events.
    serde_json::to_value(event).unwrap_or_default().to_string()
}

/// The payload of a stored event, as it lies there.
pub(crate) fn payload_of(body: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    serde_json::from_str::<Envelope<'_>>(body).ok().map(|envelope| envelope.payload.get())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::RunStatus;
    use baton_runtime::EventLine;
    use serde_json::{Value, json};

    fn read(page: &EventPage, after: Option<u64>) -> Value {
        serde_json::from_slice(&super::page(&RunId::new("run_1"), page, after)).unwrap()
    }

    fn page(seqs: &[u64], status: RunStatus, next_seq: u64) -> EventPage {
        let line =
            |seq: &u64| EventLine { seq: *seq, kind: "node.started".into(), body: format!("{{\"sequence\":{seq}}}") };
        EventPage { events: seqs.iter().map(line).collect(), status, next_seq }
    }

    #[test]
    fn the_answer_is_the_union_of_both_shapes() {
        let body = read(&page(&[1, 2], RunStatus::Completed, 3), Some(0));
        assert_eq!(
            body,
            json!({"runId": "run_1", "isComplete": true, "isTerminal": true, "runStatus": "completed",
                "lastEventSeq": 2, "events": [{"sequence": 1}, {"sequence": 2}]})
        );
        let partial = read(&page(&[1], RunStatus::Completed, 3), Some(0));
        assert_eq!((&partial["isComplete"], &partial["isTerminal"]), (&false.into(), &false.into()));
        let past = read(&page(&[], RunStatus::Completed, 3), Some(90));
        assert_eq!(
            (&past["isComplete"], &past["lastEventSeq"], &past["events"]),
            (&true.into(), &90.into(), &json!([]))
        );
    }

    #[test]
    fn a_payload_is_taken_verbatim() {
        assert_eq!(payload_of(r#"{"type":"output.chunk","payload":{"chunk":"a\n"}}"#), Some(r#"{"chunk":"a\n"}"#));
        assert_eq!(payload_of("{}"), None);
        assert_eq!(payload_of("not json"), None);
    }
}
