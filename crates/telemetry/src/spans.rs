//! A run's log as spans, record by record.
//!
//! A span is made when the record that ends it is read; where it began, the records before have told. Nothing here
//! reads a clock or depends on how records arrive, so folding a log again, anywhere, gives the same spans.
//!
//! What waits has no span. A node that waits for an answer or for a child ends its span; when nothing else is at work,
//! so does its run. Whoever goes on gets a new span, linked to the one before: a trace of a run that waits for weeks is
//! there from the first day. A pause does the same to everything. The question itself (`openwop.interrupt`) is one span
//! from asking to answer. A delay is work, and one span.

mod detail;
mod envelope;
mod known;
mod segments;
mod visit;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::event::{CapBreached, ChainPhase, InterruptRequested, InterruptResolved, NodeStarted, Outcome};
use baton_model::{Amount, Event, NodeId, Origin, Record, RunId, Timestamp};
use serde_json::Value as Json;

pub use self::detail::Detail;
use self::envelope::Announced;
pub use self::envelope::{Envelope, Taken};
use self::known::Known;
use self::segments::{End, Open, Segments};
use self::visit::Visit;
use crate::ids::{Parent, Place};
use crate::span::{Span, Status, Value};

/// The spans of one run, as far as its log has been read.
#[derive(Debug)]
pub struct RunSpans {
    run: RunId,
    /// A fork whose own part has not come yet.
    ahead: Option<Origin>,
    origin: Option<Origin>,
    detail: Detail,
    known: Option<Arc<Known>>,
    segments: Segments,
    visits: BTreeMap<NodeId, Visit>,
    questions: BTreeMap<NodeId, Question>,
    /// Envelopes that wait to be judged, by the calls they came in.
    envelopes: BTreeMap<String, Announced>,
    asked: u64,
    paused: bool,
    /// When something last stopped working.
    idle_since: Timestamp,
    /// What else is to be said of the run.
    remarks: Vec<(&'static str, Value)>,
}

#[derive(Debug)]
struct Question {
    open: Open,
    kind: String,
    id: String,
}

type Moment = (Timestamp, u64);

impl RunSpans {
    /// Nothing is known yet: the records are to come from the first one on. Those before a fork are its source's.
    pub fn new(run: RunId, origin: Option<Origin>, detail: Detail) -> Self {
        Self {
            run,
            ahead: origin.clone(),
            origin,
            detail,
            known: None,
            segments: Segments::default(),
            visits: BTreeMap::new(),
            questions: BTreeMap::new(),
            envelopes: BTreeMap::new(),
            asked: 0,
            paused: false,
            idle_since: Timestamp::default(),
            remarks: Vec::new(),
        }
    }

    /// Takes the next record in and gives the spans that it ends.
    pub fn record(&mut self, record: &Record) -> Vec<Span> {
        let mut out = Vec::new();
        // A step is decided as a whole: the rest of one that was forked into is the source's too.
        let rest = record.part.is_some_and(|part| !part.first);
        if let Some(origin) = self.ahead.take_if(|origin| record.seq >= origin.seq && !rest) {
            self.cross(&origin, &mut out);
        }
        let floor = self.origin.as_ref().filter(|_| self.ahead.is_none()).map(|origin| origin.at);
        let at = floor.map_or(record.at, |floor| record.at.max(floor));
        if let Event::RunStarted(started) = &record.event {
            let known = Known::new(&self.run, started, self.origin.as_ref(), self.detail);
            self.known = Some(Arc::new(known));
        }
        if let Some(known) = self.known.clone() {
            self.fold(&known, &record.event, (at, record.seq), &mut out);
            if self.detail.events {
                out.push(self.append_span(&known, record, at));
            }
        }
        if self.ahead.is_some() {
            out.clear();
        }
        out
    }

    /// What has begun and not ended.
    pub fn under_way(&self) -> Vec<Span> {
        let Some(known) = self.known.as_deref().filter(|_| self.ahead.is_none()) else { return Vec::new() };
        let run = self.segments.open().map(|open| self.run_span(known, open));
        let visits = self.visits.values().flat_map(|visit| visit.under_way(known));
        let questions = self.questions.values().map(|question| question.span(known));
        run.into_iter().chain(visits).chain(questions).collect()
    }

    fn fold(&mut self, known: &Known, event: &Event, moment: Moment, out: &mut Vec<Span>) {
        use ChainPhase::{ChildCancelled, ChildCompleted, ChildFailed};
        let (at, _) = moment;
        match event {
            Event::RunStarted(_) => self.work(known, moment),
            Event::RunCompleted(_) => self.finish(known, moment, End::completed(at), out),
            Event::RunFailed(event) => self.finish(known, moment, End::failed(at, &event.error), out),
            Event::RunCancelled(_) => self.finish(known, moment, End::cancelled(at), out),
            Event::RunPaused(_) => self.pause(known, at, out),
            Event::RunResumed(_) => self.resume(known, moment, out),
            Event::NodeStarted(event) => self.start(known, event, moment, out),
            Event::NodeRetried(event) => {
                let end = End::failed(at, &event.last_error);
                if let Some(visit) = self.visits.get_mut(&event.node_id) {
                    visit.retry_later(known, &end, out);
                }
            }
            Event::NodeCompleted(event) => self.end(known, &event.node_id, moment, &End::completed(at), out),
            Event::NodeFailed(event) => self.end(known, &event.node_id, moment, &End::failed(at, &event.error), out),
            Event::NodeCancelled(event) => self.cancel(known, &event.node_id, at, out),
            Event::NodeSuspended(event) => {
                if let Some(visit) = self.visits.get_mut(&event.node_id) {
                    visit.suspend(known, event.child_run_id.as_ref(), at, out);
                }
                self.idle_since = at;
                if !self.is_at_work() {
                    self.rest(known, &End::suspended(at), out);
                }
            }
            Event::NodeResumed(event) => self.go_on(known, &event.node_id, event.child_run_id.as_ref(), moment, out),
            Event::ChainEvent(event) => {
                if let (Some(visit), Some(child)) = (self.visits.get_mut(&event.private.node_id), &event.child_run_id)
                    && matches!(event.phase, ChildCompleted | ChildFailed | ChildCancelled)
                {
                    visit.forget_child(child);
                }
            }
            Event::InterruptRequested(event) => {
                // An envelope that asks people something is judged when they are asked, not when they answer.
                if let Some(call) = event.data.get("callId").and_then(Json::as_str) {
                    self.judge(known, call, true, at, out);
                }
                self.ask(known, event, moment);
            }
            Event::AgentToolCalled(event) => {
                self.envelopes.extend(Announced::read(event, moment).map(|it| (event.call_id.clone(), it)));
            }
            Event::AgentToolReturned(event) => self.judge(known, &event.call_id, event.error.is_none(), at, out),
            Event::InterruptResolved(event) => self.answer(known, event, at, out),
            Event::ProviderUsage(event) => {
                let span = match self.visits.get_mut(&event.node_id) {
                    Some(visit) => visit.activity(known, event, moment),
                    None => visit::activity(known, event, Some(self.below()), (at, at), moment.1),
                };
                out.push(span);
            }
            Event::CapBreached(event) => self.remark_cap(event),
            Event::ReplayDiverged(_) | Event::ReplayDivergedAtRefusal(_) => {
                self.remarks.push(("openwop.replay.diverged", true.into()));
            }
            _ => {}
        }
    }

    fn is_at_work(&self) -> bool {
        self.visits.values().any(|visit| !visit.waits)
    }

    /// The run is at work: it has a span.
    fn work(&mut self, known: &Known, moment: Moment) {
        let name = |segment| Place::Run { segment }.of(&known.run);
        self.segments.begin(known, moment, known.above, known.source, name);
    }

    fn rest(&mut self, known: &Known, end: &End, out: &mut Vec<Span>) {
        if let Some(open) = self.segments.end() {
            out.push(self.run_span(known, &open).ended(end));
        }
    }

    /// What things of the run hang below, even while it rests.
    fn below(&self) -> Parent {
        let first = || Place::Run { segment: 0 }.of(&self.run);
        Parent { span: self.segments.current().unwrap_or_else(first), remote: false }
    }

    fn start(&mut self, known: &Known, event: &NodeStarted, moment: Moment, out: &mut Vec<Span>) {
        self.work(known, moment);
        let below = self.below().span;
        let node = &event.node_id;
        if self.visits.get(node).is_some_and(|visit| visit.number != event.private.visit) {
            self.cancel(known, node, moment.0, out);
        }
        let visit = self.visits.entry(node.clone()).or_insert_with(|| Visit::new(event, moment.0));
        if !visit.forget_attempt(moment.0) {
            visit.end_attempt(known, &End::new(moment.0, "replaced", Status::Unset), out);
        }
        visit.begin_attempt(known, event, moment, below);
    }

    /// A visit is over. One that was waiting ends in a span of its own, so that its end is seen.
    fn end(&mut self, known: &Known, node: &NodeId, moment: Moment, end: &End, out: &mut Vec<Span>) {
        if self.visits.get(node).is_some_and(|visit| visit.waits) {
            self.wake(known, moment, out);
        }
        let Some(mut visit) = self.visits.remove(node) else { return };
        self.envelopes.retain(|_, announced| announced.node != *node);
        self.work(known, moment);
        visit.go_on(known, moment, self.below().span);
        visit.end_leg(known, end, out);
        self.withdraw(known, node, moment.0, out);
        self.idle_since = moment.0;
    }

    fn cancel(&mut self, known: &Known, node: &NodeId, at: Timestamp, out: &mut Vec<Span>) {
        if let Some(mut visit) = self.visits.remove(node) {
            visit.end_leg(known, &End::cancelled(at), out);
        }
        self.envelopes.retain(|_, announced| announced.node != *node);
        self.withdraw(known, node, at, out);
        self.idle_since = at;
    }

    fn go_on(&mut self, known: &Known, node: &NodeId, child: Option<&RunId>, moment: Moment, out: &mut Vec<Span>) {
        if !self.visits.get_mut(node).is_some_and(|visit| visit.may_go_on(child)) {
            return;
        }
        self.wake(known, moment, out);
        let below = self.below().span;
        if let Some(visit) = self.visits.get_mut(node) {
            visit.waits = false;
            visit.go_on(known, moment, below);
        }
    }

    /// The run is at work again. If nothing was any more, its span is over since then: others had finished while this
    /// one waited.
    fn wake(&mut self, known: &Known, moment: Moment, out: &mut Vec<Span>) {
        let waited = !self.visits.is_empty() && !self.is_at_work();
        if waited && self.idle_since < moment.0 {
            self.rest(known, &End::suspended(self.idle_since), out);
        }
        self.work(known, moment);
    }

    fn pause(&mut self, known: &Known, at: Timestamp, out: &mut Vec<Span>) {
        self.paused = true;
        self.idle_since = at;
        for visit in self.visits.values_mut() {
            visit.end_leg(known, &End::paused(at), out);
        }
        self.rest(known, &End::paused(at), out);
    }

    fn resume(&mut self, known: &Known, moment: Moment, out: &mut Vec<Span>) {
        self.paused = false;
        // Something may have been settled meanwhile.
        self.rest(known, &End::paused(self.idle_since), out);
        self.work(known, moment);
        let below = self.below().span;
        for visit in self.visits.values_mut().filter(|visit| !visit.waits) {
            visit.go_on(known, moment, below);
        }
    }

    fn ask(&mut self, known: &Known, event: &InterruptRequested, (at, seq): Moment) {
        self.asked += 1;
        let facts = &event.private;
        let node = self.visits.get(&facts.node_id).and_then(Visit::current);
        let parent = node.map_or_else(|| self.below(), |span| Parent { span, remote: false });
        let id = Place::Interrupt { seq }.of(&known.run);
        let open = Open { id, parent: Some(parent), start: at, seq, link: None, segment: 0 };
        let question = Question { open, kind: event.kind.clone(), id: facts.interrupt_id.clone() };
        self.questions.insert(facts.node_id.clone(), question);
    }

    fn answer(&mut self, known: &Known, event: &InterruptResolved, at: Timestamp, out: &mut Vec<Span>) {
        let end = match event.outcome {
            Outcome::Accepted => End::new(at, "accepted", Status::Ok),
            Outcome::Answered => End::new(at, "answered", Status::Ok),
            Outcome::Rejected => End::new(at, "rejected", Status::Unset),
            Outcome::Cancelled => End::cancelled(at),
        };
        let question = self.questions.remove(&event.node_id);
        out.extend(question.map(|question| question.span(known).ended(&end)));
    }

    fn judge(&mut self, known: &Known, call: &str, accepted: bool, at: Timestamp, out: &mut Vec<Span>) {
        let Some(announced) = self.envelopes.remove(call) else { return };
        let (start, seq) = (announced.at, announced.seq);
        let node = self.visits.get(&announced.node).and_then(Visit::current);
        let parent = node.map_or_else(|| self.below(), |span| Parent { span, remote: false });
        let id = Place::Envelope { seq }.of(&known.run);
        let span = known.span(id, Some(parent), envelope::NAME.to_owned(), start).with("openwop.event_seq", seq);
        out.push(announced.judged(accepted).describe(span, at));
    }

    /// Nobody is asked any more.
    fn withdraw(&mut self, known: &Known, node: &NodeId, at: Timestamp, out: &mut Vec<Span>) {
        let question = self.questions.remove(node);
        out.extend(question.map(|question| question.span(known).ended(&End::cancelled(at))));
    }

    fn finish(&mut self, known: &Known, moment: Moment, end: End, out: &mut Vec<Span>) {
        let at = moment.0;
        self.wake(known, moment, out);
        for node in self.visits.keys().chain(self.questions.keys()).cloned().collect::<Vec<_>>() {
            self.cancel(known, &node, at, out);
        }
        self.rest(known, &end, out);
    }

    /// The log passes into a fork. What is under way is under way here too, from now on and under names of its own.
    fn cross(&mut self, origin: &Origin, out: &mut Vec<Span>) {
        let Some(known) = self.known.clone() else { return };
        let moment = (origin.at, origin.seq);
        self.segments = Segments::default();
        self.idle_since = origin.at;
        self.remarks.clear();
        for (node, visit) in &mut self.visits {
            visit.begin_anew(self.questions.contains_key(node));
        }
        self.work(&known, moment);
        if self.paused {
            self.rest(&known, &End::paused(origin.at), out);
        } else if !self.is_at_work() && !self.visits.is_empty() {
            self.rest(&known, &End::suspended(origin.at), out);
        } else {
            let below = self.below().span;
            for visit in self.visits.values_mut().filter(|visit| !visit.waits) {
                visit.go_on(&known, moment, below);
            }
        }
        for announced in self.envelopes.values_mut() {
            announced.at = origin.at;
        }
        let parent = self.below();
        for question in self.questions.values_mut() {
            let id = Place::Interrupt { seq: question.open.seq }.of(&self.run);
            question.open = Open { id, parent: Some(parent), start: origin.at, ..question.open };
        }
    }

    fn remark_cap(&mut self, event: &CapBreached) {
        let kind = serde_json::to_value(event.kind).unwrap_or_default();
        self.remarks.push(("openwop.cap_kind", kind.as_str().unwrap_or_default().into()));
        self.remarks.push(("openwop.cap_limit", amount(event.limit)));
        self.remarks.push(("openwop.cap_observed", amount(event.observed)));
    }

    fn run_span(&self, known: &Known, open: &Open) -> Span {
        let mut span = open.span(known, "openwop.run".to_owned());
        known.describe(&mut span);
        if self.asked > 0 {
            span.set("openwop.interrupt_count", self.asked);
        }
        for (key, value) in &self.remarks {
            span.set(key, value.clone());
        }
        span
    }

    fn append_span(&self, known: &Known, record: &Record, at: Timestamp) -> Span {
        let id = Place::Event { seq: record.seq }.of(&self.run);
        let mut span = known.span(id, Some(self.below()), "openwop.event.append".to_owned(), at);
        span.end = Some(at);
        span.with("openwop.event_type", record.event.type_name()).with("openwop.event_seq", record.seq)
    }
}

/// Only money has fractions.
fn amount(amount: Amount) -> Value {
    match amount {
        Amount::Whole(n) => n.into(),
        Amount::Part(n) => n.into(),
    }
}

impl Question {
    fn span(&self, known: &Known) -> Span {
        let span = self.open.span(known, "openwop.interrupt".to_owned());
        span.with("openwop.interrupt_kind", self.kind.as_str()).with("openwop.interrupt_id", self.id.as_str())
    }
}

#[cfg(test)]
#[path = "spans/tests.rs"]
mod tests;
