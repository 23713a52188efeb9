use serde::Serialize;

use crate::{Event, EventId, NodeId, RunId, Timestamp, Versions};

/// Something that happened, before it has a place on the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub event: Event,
    /// Sequence of the record in the same run that caused this one, where the protocol defines causation.
    pub causation: Option<u64>,
}

impl From<Event> for Draft {
    fn from(event: Event) -> Self {
        Self { event, causation: None }
    }
}

/// One entry of a run's log. What the wire shows is [`Record::public_json`]; the event's private part never leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub seq: u64,
    pub at: Timestamp,
    pub event: Event,
    pub causation: Option<u64>,
    /// How far memory and workspace had been written once this had happened. The shell knows; the engine does not ask.
    pub versions: Versions,
    /// Its part in the step that made it; unknown for records from before this was kept.
    pub part: Option<Part>,
}

/// How a record came about. The engine decides in steps: some because the world said something, some by itself. A
/// replay repeats what the engine said and takes the world's word as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The world said something: an answer, a child's end, a cancellation.
    pub outside: bool,
    /// The step begins here.
    pub first: bool,
}

impl Record {
    /// The public RunEvent, as one line of JSON.
    pub fn public_json(&self, run: &RunId) -> String {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Public<'a> {
            event_id: EventId,
            run_id: &'a RunId,
            sequence: u64,
            #[serde(rename = "type")]
            kind: &'a str,
            timestamp: Timestamp,
            #[serde(skip_serializing_if = "Option::is_none")]
            node_id: Option<&'a NodeId>,
            #[serde(skip_serializing_if = "Option::is_none")]
            causation_id: Option<EventId>,
            schema_version: u32,
            payload: crate::event::PublicPayload<'a>,
        }
        let public = Public {
            event_id: EventId::at(run, self.seq),
            run_id: run,
            sequence: self.seq,
            kind: self.event.type_name(),
            timestamp: self.at,
            node_id: self.event.node_id(),
            causation_id: match self.causation {
                Some(seq) => Some(EventId::at(run, seq)),
                None => self.event.outer_cause().cloned(),
            },
            schema_version: 1,
            payload: self.event.payload(),
        };
        // Our payload structs hold only JSON-representable data; serialisation cannot fail.
        serde_json::to_string(&public).unwrap_or_default()
    }
}
