//! One visit of one node: a span for each time it was at work, and one below it for each attempt.

use std::collections::BTreeSet;

use baton_model::event::{NodeStarted, ProviderUsage};
use baton_model::{NodeId, RunId, Timestamp};

use super::known::Known;
use super::segments::{End, Open, Segments};
use crate::ids::{Parent, Place, SpanId};
use crate::span::{Kind, Span, short};

#[derive(Clone, Debug)]
pub(super) struct Visit {
    node: NodeId,
    pub(super) number: u32,
    type_id: String,
    attempt: u32,
    segments: Segments,
    tries: Segments,
    /// For somebody: an answer, or a child that waits for one.
    pub(super) waits: bool,
    /// The next attempt is still to come.
    retries: bool,
    /// Children that wait for somebody; the node goes on when none is left.
    children: BTreeSet<RunId>,
    /// The model that this attempt asks.
    asked: Option<String>,
    /// When the last answer came, or the attempt began.
    heard_at: Timestamp,
}

type Moment = (Timestamp, u64);

impl Visit {
    pub(super) fn new(event: &NodeStarted, at: Timestamp) -> Self {
        Self {
            node: event.node_id.clone(),
            number: event.private.visit,
            type_id: event.type_id.clone(),
            attempt: event.attempt,
            segments: Segments::default(),
            tries: Segments::default(),
            waits: false,
            retries: false,
            children: BTreeSet::new(),
            asked: None,
            heard_at: at,
        }
    }

    /// The span that what happens here hangs below.
    pub(super) fn current(&self) -> Option<SpanId> {
        self.segments.current()
    }

    /// Another attempt begins, or the first.
    pub(super) fn begin_attempt(&mut self, known: &Known, event: &NodeStarted, moment: Moment, below: SpanId) {
        self.attempt = event.attempt;
        self.asked = event.private.call.as_ref().map(|call| call.model.clone());
        (self.waits, self.retries) = (false, false);
        self.tries = Segments::default();
        self.go_on(known, moment, below);
    }

    /// The node is at work again.
    pub(super) fn go_on(&mut self, known: &Known, moment: Moment, below: SpanId) {
        let Self { node, number, attempt, .. } = self;
        let (node, visit, attempt) = (&*node, *number, *attempt);
        let below = Some(Parent { span: below, remote: false });
        let name = |segment| Place::Node { node, visit, segment }.of(&known.run);
        self.segments.begin(known, moment, below, None, name);
        if !self.retries {
            let parent = self.segments.current().map(|span| Parent { span, remote: false });
            let name = |segment| Place::Attempt { node, visit, attempt, segment }.of(&known.run);
            self.tries.begin(known, moment, parent, None, name);
            self.heard_at = moment.0;
        }
    }

    /// This attempt has failed; the next one has its time.
    pub(super) fn retry_later(&mut self, known: &Known, end: &End, out: &mut Vec<Span>) {
        self.end_attempt(known, end, out);
        self.retries = true;
    }

    pub(super) fn end_attempt(&mut self, known: &Known, end: &End, out: &mut Vec<Span>) {
        let ended = self.tries.end().map(|open| self.attempt_span(known, &open).ended(end));
        out.extend(ended);
    }

    /// A pause took the attempt back and the new one begins where it went on.
    pub(super) fn forget_attempt(&mut self, at: Timestamp) -> bool {
        let fresh = self.tries.open().is_some_and(|open| open.segment > 0 && open.start == at);
        if fresh {
            self.tries.undo();
        }
        fresh
    }

    pub(super) fn end_leg(&mut self, known: &Known, end: &End, out: &mut Vec<Span>) {
        self.end_attempt(known, end, out);
        let ended = self.segments.end().map(|open| self.node_span(known, &open).ended(end));
        out.extend(ended);
    }

    pub(super) fn suspend(&mut self, known: &Known, child: Option<&RunId>, at: Timestamp, out: &mut Vec<Span>) {
        self.waits = true;
        self.children.extend(child.cloned());
        self.end_leg(known, &End::suspended(at), out);
    }

    pub(super) fn forget_child(&mut self, child: &RunId) {
        self.children.remove(child);
    }

    /// Whether it goes on, now that this child does, or now that somebody has answered.
    pub(super) fn may_go_on(&mut self, child: Option<&RunId>) -> bool {
        if let Some(child) = child {
            self.forget_child(child);
        }
        self.waits && self.children.is_empty()
    }

    /// A fork begins here: what was said so far is its source's.
    pub(super) fn begin_anew(&mut self, asks: bool) {
        self.segments = Segments::default();
        self.tries = Segments::default();
        self.children.clear();
        self.waits = self.waits && asks;
    }

    /// A model was asked and has answered.
    pub(super) fn activity(&mut self, known: &Known, event: &ProviderUsage, (at, seq): Moment) -> Span {
        let parent = self.tries.current().or(self.segments.current()).map(|span| Parent { span, remote: false });
        let mut span = activity(known, event, parent, (self.heard_at, at), seq);
        let by_node = event.private.step.is_none();
        if let Some(model) = self.asked.as_ref().filter(|_| by_node) {
            span.set("gen_ai.request.model", model.as_str());
        }
        self.heard_at = at;
        span
    }

    pub(super) fn under_way(&self, known: &Known) -> impl Iterator<Item = Span> {
        let node = self.segments.open().map(|open| self.node_span(known, open));
        let attempt = self.tries.open().map(|open| self.attempt_span(known, open));
        node.into_iter().chain(attempt)
    }

    fn node_span(&self, known: &Known, open: &Open) -> Span {
        self.describe(open.span(known, format!("openwop.node.{}", short(&self.type_id))))
    }

    fn attempt_span(&self, known: &Known, open: &Open) -> Span {
        self.describe(open.span(known, format!("openwop.node.{}.attempt", short(&self.type_id))))
    }

    fn describe(&self, span: Span) -> Span {
        let span = span.with("openwop.node_id", self.node.as_str()).with("openwop.node_type", self.type_id.as_str());
        span.with("openwop.node_attempt", self.attempt)
    }
}

/// A call of a model: who, how much, never what.
pub(super) fn activity(
    known: &Known,
    event: &ProviderUsage,
    parent: Option<Parent>,
    (start, end): (Timestamp, Timestamp),
    seq: u64,
) -> Span {
    let name = format!("openwop.activity.{}", short(&event.provider));
    let mut span = known.span(Place::Activity { seq }.of(&known.run), parent, name, start);
    span.kind = Kind::Client;
    span.end = Some(end.max(start));
    span.set("openwop.node_id", event.node_id.as_str());
    span.set("openwop.event_seq", seq);
    span.set("gen_ai.operation.name", "chat");
    span.set("gen_ai.provider.name", event.provider.as_str());
    span.set("gen_ai.request.model", event.model.as_str());
    span.set("gen_ai.response.model", event.model.as_str());
    span.set("gen_ai.usage.input_tokens", event.input_tokens);
    span.set("gen_ai.usage.output_tokens", event.output_tokens);
    span.set("openwop.cost.tokens.input", event.input_tokens);
    span.set("openwop.cost.tokens.output", event.output_tokens);
    span.set("openwop.cost.tokens.total", event.total_tokens);
    span.set("openwop.cost.provider", event.provider.as_str());
    // Prices are the host's, and so are the tokens where the server counted none.
    let uncounted = event.private.reply.as_ref().is_some_and(|reply| reply.usage.estimated);
    if let Some(usd) = event.cost_estimate_usd {
        span.set("openwop.cost.usd", usd);
        span.set("openwop.cost.currency", "USD");
    }
    if uncounted || event.cost_estimate_usd.is_some() {
        span.set("openwop.cost.estimated", true);
    }
    span
}
