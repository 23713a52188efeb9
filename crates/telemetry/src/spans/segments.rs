//! One thing that may have to wait: while it does it has no span, and when it goes on it gets another one, linked to the
//! one before.

use baton_model::{Fault, Timestamp};

use super::known::Known;
use crate::ids::{Parent, SpanId};
use crate::span::{Link, Span, Status};

/// The legs of one thing, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Segments {
    /// How many have begun.
    begun: u32,
    open: Option<Open>,
    last: Option<SpanId>,
}

#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) id: SpanId,
    pub(super) parent: Option<Parent>,
    pub(super) start: Timestamp,
    /// The record that began it.
    pub(super) seq: u64,
    pub(super) link: Option<Link>,
    pub(super) segment: u32,
}

/// How a span ends.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) at: Timestamp,
    pub(super) outcome: &'static str,
    pub(super) status: Status,
}

impl End {
    pub(super) fn new(at: Timestamp, outcome: &'static str, status: Status) -> Self {
        Self { at, outcome, status }
    }

    pub(super) fn completed(at: Timestamp) -> Self {
        Self::new(at, "completed", Status::Ok)
    }

    pub(super) fn failed(at: Timestamp, fault: &Fault) -> Self {
        Self::new(at, "failed", Status::failed(fault))
    }

    pub(super) fn cancelled(at: Timestamp) -> Self {
        Self::new(at, "cancelled", Status::Unset)
    }

    /// It goes on later, in another span.
    pub(super) fn suspended(at: Timestamp) -> Self {
        Self::new(at, "suspended", Status::Unset)
    }

    pub(super) fn paused(at: Timestamp) -> Self {
        Self::new(at, "paused", Status::Unset)
    }
}

impl Segments {
    pub(super) fn open(&self) -> Option<&Open> {
        self.open.as_ref()
    }

    /// The leg under way, else the one before.
    pub(super) fn current(&self) -> Option<SpanId> {
        self.open.as_ref().map(|open| open.id).or(self.last)
    }

    /// Begins a leg unless one is open. The first one may link to something else.
    pub(super) fn begin(
        &mut self,
        known: &Known,
        (at, seq): (Timestamp, u64),
        parent: Option<Parent>,
        first_link: Option<Link>,
        name: impl FnOnce(u32) -> SpanId,
    ) {
        if self.open.is_some() {
            return;
        }
        let segment = self.begun;
        let before = self.last.map(|span| Link { trace: known.lineage.trace, span });
        let link = before.or(first_link);
        self.open = Some(Open { id: name(segment), parent, start: at, seq, link, segment });
        self.begun += 1;
    }

    pub(super) fn end(&mut self) -> Option<Open> {
        let open = self.open.take()?;
        self.last = Some(open.id);
        Some(open)
    }

    /// Forgets the leg under way as if it had never begun.
    pub(super) fn undo(&mut self) {
        if self.open.take().is_some() {
            self.begun -= 1;
        }
    }
}

impl Open {
    /// The span as far as its beginning tells.
    pub(super) fn span(&self, known: &Known, name: String) -> Span {
        let span = known.span(self.id, self.parent, name, self.start).with("openwop.event_seq", self.seq);
        let mut span = if self.segment > 0 { span.with("baton.leg", self.segment) } else { span };
        span.links.extend(self.link);
        span
    }
}

impl Span {
    pub(super) fn ended(mut self, end: &End) -> Self {
        // A clock that went backwards gives a span without a length.
        self.end = Some(end.at.max(self.start));
        self.set("baton.outcome", end.outcome);
        self.status = end.status.clone();
        self
    }
}
