use baton_model::RunId;

use crate::LedgerId;

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
    /// Another process owns this data directory.
    #[error("{path} is in use by another process (pid {pid})")]
    Locked { path: String, pid: String },
}

/// Why a commit did not become durable. Any of these ends the generation: everything queued behind the failed commit
/// fails with it, and the runtime reloads from what is durable. Only a refusal ([`CommitError::is_refusal`]) of a commit
/// that stands alone ends nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// Somebody else appended first, or the run exists already.
    #[error("{run} is at sequence {actual}, not {expected}")]
    Conflict { run: RunId, expected: u64, actual: u64 },
    /// Somebody else wrote to this memory scope or workspace first.
    #[error("{} {} of {} is at version {actual}, so {wanted} cannot follow", .ledger.kind.as_str(), .ledger.scope, .ledger.tenant)]
    LedgerConflict { ledger: LedgerId, wanted: u64, actual: u64 },
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
    /// The disk is full, read-only or failing.
    #[error("storage cannot be written: {reason}")]
    Unavailable { reason: String },
    /// Queued before a failure, or for a generation that has ended.
    #[error("an earlier write failed, so this one was not attempted")]
    Stale,
}

impl CommitError {
    /// Whether the commit was judged and must not happen, rather than lost.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Conflict { .. }
                | Self::LedgerConflict { .. }
                | Self::Foreign { .. }
                | Self::LogGone { .. }
                | Self::LogNeeded { .. }
                | Self::Answered { .. }
        )
    }
}
