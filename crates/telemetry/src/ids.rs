//! The names of spans. Each is a digest of the run and the place in it, so that whoever knows the place knows the name:
//! another process after a crash, a child run, another host. Nobody has to be told.

use std::fmt;

use baton_model::TraceContext;
use baton_model::event::{ParentLink, RunStarted};
use baton_model::json::hex;
use baton_model::{NodeId, RunId};
use sha2::{Digest as _, Sha256};

/// Changes with the derivation, so that names of two kinds never meet.
const DOMAIN: &str = "baton.span.1";
/// How far the visit that started a child is looked for; see [`visit_of`].
const SHELLS: u32 = 14;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub [u8; 16]);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(pub [u8; 8]);

macro_rules! shown_as_hex {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex(&self.0))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
shown_as_hex!(TraceId, SpanId);

/// A place in a run that has a span. `leg` counts the spans of one thing that had to wait in between.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    Run { segment: u32 },
    Node { node: &'a NodeId, visit: u32, segment: u32 },
    Attempt { node: &'a NodeId, visit: u32, attempt: u32, segment: u32 },
    Interrupt { seq: u64 },
    Activity { seq: u64 },
    Envelope { seq: u64 },
    Event { seq: u64 },
}

impl Place<'_> {
    pub fn of(self, run: &RunId) -> SpanId {
        let mut hash = Named::new("span", run);
        match self {
            Self::Run { segment } => hash.text("run").number(segment.into()),
            Self::Node { node, visit, segment } => {
                hash.text("node").text(node.as_str()).number(visit.into()).number(segment.into())
            }
            Self::Attempt { node, visit, attempt, segment } => {
                let hash = hash.text("attempt").text(node.as_str()).number(visit.into());
                hash.number(attempt.into()).number(segment.into())
            }
            Self::Interrupt { seq } => hash.text("interrupt").number(seq),
            Self::Activity { seq } => hash.text("activity").number(seq),
            Self::Envelope { seq } => hash.text("envelope").number(seq),
            Self::Event { seq } => hash.text("event").number(seq),
        };
        SpanId(hash.take())
    }
}

/// Every part with its length, so that no two places read the same.
struct Named(Sha256);

impl Named {
    fn new(kind: &str, run: &RunId) -> Self {
        let mut named = Self(Sha256::new());
        named.text(DOMAIN).text(kind).text(run.as_str());
        named
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
        self
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.0.update(number.to_be_bytes());
        self
    }

    fn take<const N: usize>(self) -> [u8; N] {
        let mut id = [0; N];
        id.copy_from_slice(&self.0.finalize()[..N]);
        if id == [0; N] {
            // All zeros means "none" on the wire.
            id[N - 1] = 1;
        }
        id
    }
}

/// The trace of a tree that was started without one.
pub fn own_trace(root: &RunId) -> TraceId {
    TraceId(Named::new("trace", root).take())
}

/// The trace that a run belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Lineage {
    pub trace: TraceId,
    /// Whoever began the trace wants it kept.
    pub sampled: bool,
    /// `tracestate`, as it came.
    pub state: Option<String>,
}

/// The span above another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parent {
    pub span: SpanId,
    /// It belongs to another process, as far as this one knows.
    pub remote: bool,
}

impl Parent {
    /// A child hangs below the node that started it, any other run below whoever asked for it. A fork is nobody's child:
    /// what its log says of a parent is about its source.
    pub fn of(run: &RunId, started: &RunStarted, forked: bool) -> Option<Self> {
        let facts = &started.private;
        if let Some(link) = facts.parent.as_ref().filter(|_| !forked) {
            return Some(Self { span: invoking_node(link, run), remote: false });
        }
        let carried = facts.trace.as_deref().and_then(Carried::read)?;
        Some(Self { span: carried.span, remote: true })
    }
}

impl Lineage {
    /// The trace that came with whoever asked for the tree, else one of the tree's own.
    pub fn of(run: &RunId, started: &RunStarted, forked: bool) -> Self {
        let facts = &started.private;
        let carried = facts.trace.as_deref().and_then(Carried::read);
        let root = facts.parent.as_ref().filter(|_| !forked).map_or(run, |link| &link.root);
        Self {
            trace: carried.as_ref().map_or_else(|| own_trace(root), |carried| carried.trace),
            sampled: carried.is_none_or(|carried| carried.sampled),
            state: facts.trace.as_ref().and_then(|trace| trace.state.clone()),
        }
    }

    /// What is sent along by whatever happens at this place.
    pub fn context(&self, run: &RunId, place: Place<'_>) -> TraceContext {
        let parent = format!("00-{}-{}-{:02x}", self.trace, place.of(run), u8::from(self.sampled));
        TraceContext { parent, state: self.state.clone() }
    }
}

/// A `traceparent` taken apart.
struct Carried {
    trace: TraceId,
    span: SpanId,
    sampled: bool,
}

impl Carried {
    fn read(context: &TraceContext) -> Option<Self> {
        let mut parts = context.parent.split('-').skip(1);
        let (trace, span) = (TraceId(bytes(parts.next()?)?), SpanId(bytes(parts.next()?)?));
        let [flags] = bytes(parts.next()?)?;
        Some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut all = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (place, byte) in all.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(all)
}

/// The first span of the visit that started a child.
fn invoking_node(link: &ParentLink, child: &RunId) -> SpanId {
    let visit = visit_of(link, child).unwrap_or(1);
    Place::Node { node: &link.node, visit, segment: 0 }.of(&link.run)
}

/// A child's record names the run and the node it comes from, and its own name is made of those and the visit: the visit
/// is the one that gives the name. Small visits and small ordinals come first; after some hundred thousand tries it is
/// given up.
fn visit_of(link: &ParentLink, child: &RunId) -> Option<u32> {
    let names = |visit: u32, ordinal: u32| link.run.child(&link.node, visit, ordinal) == *child;
    (0..SHELLS).find_map(|shell| {
        let (inner, outer) = ((1_u32 << shell) / 2, 1_u32 << shell);
        // All pairs whose product lies between the two.
        (1..=outer).find_map(|place| {
            let ordinal = place - 1;
            // A branch counts the children that it starts anew from the other end.
            (inner / place + 1..=outer / place).find(|&visit| names(visit, ordinal) || names(visit, u32::MAX - ordinal))
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::event::RunSettings;
    use serde_json::json;
    use std::collections::BTreeSet;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn started(parent: Option<ParentLink>, trace: Option<&str>) -> RunStarted {
        let trace =
            trace.map(|parent| TraceContext { parent: parent.to_owned(), state: Some("a=1".to_owned()) }).map(Box::new);
        let public = json!({"workflowId": "w", "inputs": {}, "transport": "rest", "owner": {"tenant": "t"}});
        let started: RunStarted = serde_json::from_value(public).unwrap();
        RunStarted { private: RunSettings { parent, trace, ..RunSettings::default() }, ..started }
    }

    fn link(run: &RunId) -> ParentLink {
        let node = NodeId::new("call");
        let (root, cause) = (RunId::new("run_root"), "core.subWorkflow".to_owned());
        ParentLink { run: run.clone(), node, root, cause, workflow: None, event: None }
    }

    #[test]
    fn names_are_for_ever() {
        // Other hosts, and spans that were sent last week, rely on these. Computed independently.
        let (run, node) = (RunId::new("run_a"), NodeId::new("n"));
        let names = [
            own_trace(&run).to_string(),
            Place::Run { segment: 0 }.of(&run).to_string(),
            Place::Node { node: &node, visit: 1, segment: 0 }.of(&run).to_string(),
            Place::Attempt { node: &node, visit: 1, attempt: 0, segment: 0 }.of(&run).to_string(),
        ];
        assert_eq!(
            names,
            ["4e752d3e28371405e895f71c6d54c5c3", "8a8aa56edaa9e58b", "bdf963b7b884173c", "2410b0998fba1606"]
        );
    }

    #[test]
    fn places_have_names_of_their_own() {
        let nodes = ["n", "n1", ""].map(NodeId::new);
        let mut names = BTreeSet::new();
        let mut count = 0;
        for run in ["run_a", "run_b", "run_an"].map(RunId::new) {
            for number in 0..3 {
                let seq = u64::from(number);
                let mut places = vec![
                    Place::Run { segment: number },
                    Place::Interrupt { seq },
                    Place::Activity { seq },
                    Place::Event { seq },
                ];
                for node in &nodes {
                    for segment in 0..2 {
                        places.push(Place::Node { node, visit: number, segment });
                        places.push(Place::Attempt { node, visit: number, attempt: 0, segment });
                        places.push(Place::Attempt { node, visit: number, attempt: 7, segment });
                    }
                }
                count += places.len();
                names.extend(places.into_iter().map(|place| place.of(&run)));
            }
        }
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_child_finds_the_visit_that_started_it() {
        let parent = RunId::new("run_p");
        let link = link(&parent);
        for (visit, ordinal) in [(1, 0), (1, 40), (2, 0), (300, 0), (60, 9), (7, u32::MAX), (3, u32::MAX - 2)] {
            let child = parent.child(&link.node, visit, ordinal);
            let started = started(Some(link.clone()), None);
            let expected = Place::Node { node: &link.node, visit, segment: 0 }.of(&parent);
            let found = Parent::of(&child, &started, false);
            assert_eq!(found, Some(Parent { span: expected, remote: false }), "{visit} {ordinal}");
            assert_eq!(Lineage::of(&child, &started, false).trace, own_trace(&link.root));
        }
    }

    #[test]
    fn a_run_hangs_where_it_was_asked_for() {
        let run = RunId::new("run_a");
        let of = |started: &RunStarted, forked| (Lineage::of(&run, started, forked), Parent::of(&run, started, forked));
        let (alone, nobody) = of(&started(None, None), false);
        assert_eq!((alone.trace, alone.sampled, nobody), (own_trace(&run), true, None));
        let (asked, asker) = of(&started(None, Some(TRACE)), false);
        assert_eq!(asked.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let parent = asker.unwrap();
        assert_eq!((parent.span.to_string().as_str(), parent.remote), ("00f067aa0ba902b7", true));
        let quiet = TRACE.replace("-01", "-00");
        assert!(asked.sampled && !of(&started(None, Some(&quiet)), false).0.sampled);
        let below = started(Some(link(&RunId::new("run_p"))), Some(TRACE));
        let (child, parent) = of(&below, false);
        assert_eq!(child.trace, asked.trace, "one trace for the whole tree");
        assert!(!parent.unwrap().remote, "not whoever asked for the tree");
        assert_eq!(of(&below, true), (asked, asker), "its source's parent is not a fork's own");
    }

    #[test]
    fn what_is_sent_along_names_the_place() {
        let run = RunId::new("run_a");
        let lineage = Lineage::of(&run, &started(None, Some(TRACE)), false);
        let place = Place::Run { segment: 0 };
        let context = lineage.context(&run, place);
        assert_eq!(context.parent, format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", place.of(&run)));
        assert_eq!(context.state.as_deref(), Some("a=1"));
        assert_eq!(TraceContext::parse(&context.parent, None).unwrap().parent, context.parent);
    }
}
