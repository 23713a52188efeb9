use baton_model::RunId;

use crate::VersionedStoreId;

/// Why a read failed, by what the caller can do about it. Driver errors are the source, never a variant.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Try again later; nothing was lost.
    #[error("storage is unavailable: {reason}")]
    Unavailable {
        reason: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Stop and look: what is stored does not read back.
    #[error("storage is corrupt: {reason}")]
    Corrupt { reason: String },
    /// The same of one run: a record, or what is kept beside its log, is not what was written.
    #[error("storage is damaged: run {run} at sequence {seq}: {reason}. `baton storage check` finds what else is")]
    Damaged { run: RunId, seq: u64, reason: String },
    /// Another process owns this data directory.
    #[error("{path} is in use by another process (pid {pid})")]
    Locked { path: String, pid: String },
}

impl Error {
    pub fn damaged(run: &RunId, seq: u64, reason: impl std::fmt::Display) -> Self {
        Self::Damaged { run: run.clone(), seq, reason: reason.to_string() }
    }

    /// Whether what is stored is not what was written.
    pub const fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt { .. } | Self::Damaged { .. })
    }
}

/// Why something did not become durable. A refusal ([`CommitError::is_refusal`]) is about one part of a commit, which is
/// lost with what builds on it; everything else goes on. The others are about the disk or the session, and end the
/// generation: everything queued behind fails, and the runtime reloads from what is durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Somebody else appended first, or the run exists already.
    #[error("{run} is at sequence {actual}, not {expected}")]
    Conflict { run: RunId, expected: u64, actual: u64 },
    /// Somebody else wrote to this memory scope or workspace first.
    #[error("{} {} of {} is at version {actual}, so {wanted} cannot follow", .ledger.kind.as_str(), .ledger.scope, .ledger.tenant)]
    VersionConflict { ledger: VersionedStoreId, wanted: u64, actual: u64 },
    /// Another session owns this run, or the tree it would be part of.
    #[error("{run} is driven by another host")]
    Foreign { run: RunId },
    /// A fork would begin with records that are not there any more.
    #[error("the log of {run} has been dropped")]
    LogGone { run: RunId },
    /// A fork begins with these records.
    #[error("the log of {run} is needed by its fork {fork}")]
    LogNeeded { run: RunId, fork: RunId },
    /// This letter has been answered.
    #[error("the letter {id} has been answered")]
    Answered { id: String },
    /// This session has ended: another host may have taken over what it owned.
    #[error("this host's lease on the store is over")]
    Fenced,
    /// The disk is well, and would not take this: it is too large, breaks a rule of the database, or cannot be encoded.
    /// Trying again will not help.
    #[error("storage does not take {reason}")]
    Refused {
        /// The run it belongs to, if it belongs to one.
        run: Option<RunId>,
        reason: String,
    },
    /// The disk is full, read-only or failing, or the database is out of reach. Trying again later may help.
    #[error("storage cannot be written: {reason}")]
    Unavailable { reason: String },
    /// Queued behind a failure, built on something that was lost, or for a generation that has ended.
    #[error("an earlier write failed, so this one was not attempted")]
    Stale,
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without words".to_owned())
}

impl CommitError {
    /// Whoever writes panicked in the middle of something. What it said is for the log: it may name somebody.
    pub fn writer_panicked() -> Self {
        Self::Unavailable { reason: "the writer panicked; the log says why".to_owned() }
    }

    /// Whether its text may be shown to anybody: it names no run and nothing else that belongs to a tenant.
    pub const fn names_nobody(&self) -> bool {
        matches!(self, Self::Fenced | Self::Unavailable { .. } | Self::Stale)
    }

    /// Whether whoever made the write is at fault for it, rather than somebody who was faster or what it builds on.
    pub const fn blames(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::Refused { .. })
    }

    /// Whether the commit was judged and must not happen, rather than lost.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::VersionConflict { .. }
                | Self::Foreign { .. }
                | Self::LogGone { .. }
                | Self::LogNeeded { .. }
                | Self::Answered { .. }
                | Self::Refused { .. }
        )
    }
}
