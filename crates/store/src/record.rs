use baton_model::{Event, EventId, Part, Record, RunId, Timestamp, Versions};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Error;
use crate::checksum::Checksum;

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
    /// Of this record and all before it; see [`crate::LogCheck`]. None for one from before there were checksums, and until
    /// [`crate::RunRow::seal`] sets it.
    pub sum: Option<Checksum>,
}

impl StoredRecord {
    /// The column of its checksum.
    pub(crate) const SUM: &'static str = "sum";

    /// What it takes of a page that is bounded by bytes: both texts, public and private. The rest of a record is small.
    pub fn weight(&self) -> usize {
        self.body.len() + self.private.as_ref().map_or(0, String::len)
    }

    pub fn encode(run: &RunId, record: &Record) -> Self {
        Self {
            seq: record.seq,
            at: record.at,
            kind: record.event.type_name().to_owned(),
            body: record.public_json(run),
            private: record.event.private_json(),
            versions: record.versions,
            part: record.part,
            sum: None,
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
