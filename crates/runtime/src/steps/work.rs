//! What step threads do: everything whose cost a tenant chooses.

use std::sync::Arc;

use baton_model::{RunId, TenantId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// A command, decided and folded.
    Step,
    /// A page of a log.
    Fold,
    Replay,
    Verify,
    /// A definition becomes a plan.
    Compile,
    /// A request is judged: schemas, inputs, bounds.
    Judge,
    /// What a node asks for is put together.
    Prepare,
    /// What a tree has spent is read back.
    Account,
    /// A log is looked through for what people answered.
    Answers,
    Compare,
    /// Lines of a file that comes in.
    Import,
    /// A state is written beside its log.
    Checkpoint,
}

impl WorkKind {
    /// As logs and operators see it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Step => "a step",
            Self::Fold => "folding a log",
            Self::Replay => "a replay",
            Self::Verify => "verifying a run",
            Self::Compile => "compiling a definition",
            Self::Judge => "judging a request",
            Self::Prepare => "preparing an answer",
            Self::Account => "reading an account",
            Self::Answers => "looking for answers",
            Self::Compare => "comparing runs",
            Self::Import => "an import",
            Self::Checkpoint => "writing a checkpoint",
        }
    }
}

/// A piece of work that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Work<'a> {
    pub kind: WorkKind,
    pub tenant: &'a TenantId,
    /// On behalf of which run, if there is one yet.
    pub run: Option<&'a RunId>,
    /// That run's. Steps do not say; see [`crate::BeforeStep`].
    pub tags: &'a [String],
}

/// Called before each piece of work, where it is done. For tests that look where that is, or need it to go wrong.
#[derive(Clone)]
pub struct BeforeWork(pub Arc<dyn Fn(&Work<'_>) + Send + Sync>);

impl std::fmt::Debug for BeforeWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BeforeWork")
    }
}
