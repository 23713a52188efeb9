use baton_model::{Event, EventId, Part, Record, RunId, Timestamp, Versions};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Error;

/// A record as it lies on disk. `body` is the public RunEvent, served verbatim; `private` never leaves the process.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRecord {
    pub seq: u64,
    pub at: Timestamp,
    pub kind: String,
    pub body: String,
    pub private: Option<String>,
    pub versions: Versions,
    pub part: Option<Part>,
}

impl StoredRecord {
    pub fn encode(run: &RunId, record: &Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
            kind: record.event.type_name().to_owned(),
            body: record.public_json(run),
            private: record.event.private_json(),
            versions: record.versions,
            part: record.part,
        }
    }

    pub fn decode(&self, run: &RunId) -> Result<Record, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Envelope<'a> {
            #[serde(borrow)]
            payload: &'a RawValue,
            #[serde(default)]
            causation_id: Option<EventId>,
        }
        let corrupt = |reason: String| Error::Corrupt { reason: format!("{run} at {}: {reason}", self.seq) };
        let envelope: Envelope<'_> = serde_json::from_str(&self.body).map_err(|e| corrupt(e.to_string()))?;
        let event = Event::decode(&self.kind, envelope.payload.get(), self.private.as_deref())
            .map_err(|e| corrupt(e.to_string()))?;
        let causation = envelope.causation_id.and_then(|id| id.sequence_in(run));
        Ok(Record { seq: self.seq, at: self.at, event, causation, versions: self.versions, part: self.part })
    }
}
