//! What agents say to the host in envelopes: that one came, and what became of it. Never what it says.

use baton_model::event::AgentToolCalled;
use baton_model::native::{ENVELOPE, ENVELOPE_SCHEMA_VERSION};
use baton_model::{NodeId, RunId, Timestamp};
use serde_json::Value as Json;

use super::segments::End;
use crate::ids::{Place, own_trace};
use crate::span::{Kind, Span, Status};

pub(super) const NAME: &str = "openwop.envelope";

/// An envelope that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub node: NodeId,
    /// Nothing for one that was refused: a model may have written anything there.
    pub taken: Option<Taken>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// One of those that the host knows.
    pub kind: String,
    /// It was written for an older schema than the host has.
    pub drift: bool,
}

impl Envelope {
    /// The span of one that stands in no run's log, in the trace that a run of that name would have.
    pub fn alone(&self, run: &RunId, place: u64, at: Timestamp) -> Span {
        let span = Span {
            trace: own_trace(run),
            id: Place::Envelope { seq: place }.of(run),
            parent: None,
            name: NAME.to_owned(),
            kind: Kind::Internal,
            start: at,
            end: None,
            attributes: Vec::new(),
            links: Vec::new(),
            status: Status::Unset,
            sampled: true,
            state: None,
        };
        self.describe(span.with("openwop.run_id", run.as_str()), at)
    }

    pub(super) fn describe(&self, span: Span, at: Timestamp) -> Span {
        let mut span = span.with("openwop.node_id", self.node.as_str());
        let Some(Taken { kind, drift }) = &self.taken else {
            return span.ended(&End::new(at, "refused", Status::Unset));
        };
        span.set("envelope_type", kind.as_str());
        if *drift {
            span.set("envelope_schema_version_drift", true);
        }
        span.ended(&End::new(at, "accepted", Status::Ok))
    }
}

/// An envelope that was announced and not judged yet.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) node: NodeId,
    pub(super) at: Timestamp,
    pub(super) seq: u64,
    taken: Taken,
}

impl Announced {
    pub(super) fn read(event: &AgentToolCalled, (at, seq): (Timestamp, u64)) -> Option<Self> {
        let asked = event.private.asked.as_deref().filter(|asked| asked.name == ENVELOPE)?;
        let kind = asked.arguments.get("type").and_then(Json::as_str).unwrap_or_default().to_owned();
        let version = asked.arguments.get("schemaVersion");
        // One that says no version is of the present one; one that says something else than a number is as old as can be.
        let drift = version.is_some_and(|version| version.as_u64().unwrap_or(0) < ENVELOPE_SCHEMA_VERSION);
        let node = event.private.place.node_id.clone();
        Some(Self { node, at, seq, taken: Taken { kind, drift } })
    }

    pub(super) fn judged(self, accepted: bool) -> Envelope {
        Envelope { node: self.node, taken: Some(self.taken).filter(|_| accepted) }
    }
}
