//! Who is told what runs do.

use std::fmt;

use baton_model::event::RunStarted;
use baton_model::{NodeId, Origin, Record, RunId, TraceContext};

/// Somebody who is told what runs do. Nothing here may fail or wait: runs do not depend on it.
pub trait Observer: fmt::Debug + Send + Sync {
    /// Begins to follow a run. Its whole log follows, from the first record on; what comes before a fork is its source's.
    fn follow(&self, run: &RunId, origin: Option<&Origin>) -> Box<dyn Follower>;

    /// What a run sends along when it calls somebody, in place of what it was itself started under.
    fn trace(&self, run: &RunId, started: &RunStarted, forked: bool, caller: Caller<'_>) -> TraceContext;
}

/// What of a run calls somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller<'a> {
    /// The run as a whole, or nobody knows more closely.
    Run,
    Node {
        node: &'a NodeId,
        visit: u32,
    },
}

/// One run, seen from outside.
pub trait Follower: Send {
    /// The next record. It is durable. If it is not `fresh`, it was told before, perhaps by another process.
    fn record(&mut self, record: &Record, fresh: bool);
}
