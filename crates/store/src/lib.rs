//! The storage port: what the runtime needs from a database, by role, and nothing else.
//!
//! One writer, one order. [`Journal::submit`] queues a [`Commit`] and returns at once; queue order is commit order, so
//! whoever queues an effect after its cause can never see the effect survive without the cause. Readers see committed
//! state only. Every adapter passes [`conformance`].

mod annotation;
pub mod archive;
mod blob;
mod chain;
mod checkpoint;
mod checksum;
pub mod codec;
mod commit;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dead_letters;
mod error;
mod in_memory;
mod log_chain;
mod port;
mod quarantine;
mod queue;
mod record;
mod rows;
pub mod run_list;
mod runner;
mod shared;
mod subject;
mod versioned;

pub use annotation::AnnotationRow;
pub use blob::is_blob_of;
pub use chain::{Breaks, Chains, LostPart, WriteChain};
pub use checkpoint::{Checkpoint, CheckpointChunk, CheckpointMark, CheckpointWrite, SpendingRow};
pub use checksum::{Checksum, LogChain};
pub use commit::{
    Commit, CommitPart, CommitReceipt, Committed, Observer, TicketSender, VersionedStoreCommitted, Write,
};
pub use dead_letters::{
    DeadLetter, DeadLetterPlace, DeadLetterWrite, DeathReason, Letters, WebhookChange, WebhookLoad,
};
pub use error::{CommitError, Error, panic_text};
pub use in_memory::{Cluster, Courier, Disk, Line, MemoryStore};
pub use log_chain::{LogCheck, LogEnds};
pub use port::{
    AnnotationReads, CheckpointReads, DefinitionReads, HealthReads, InterruptReads, Journal, Reader, RunReads,
    RunnerReads, Store, VersionedReads, WebhookReads, reads,
};
pub use quarantine::Quarantine;
pub use queue::{FairQueue, QueueGauge, QueuedBytes};
pub use record::StoredRecord;
pub use rows::{
    ActiveTrees, Attempt, Delivery, FailurePolicy, InterruptFilter, InterruptRow, KeptTree, LastFailure, Page, Pruned,
    Reply, RunFilter, RunPlace, RunRow, Usage, UsageClass, Webhook, WebhookStatus, WorkflowVersion,
};
pub use runner::{RunnerRow, RunnerWrite, StepRow, StepState, TokenRow};
pub use shared::{Claim, ClusterEvent, ForwardedCommand, KEEP_ANSWERS, Owner, Recipient, Session, Shared, Suspect};
pub use subject::COMMIT_BYTES;
pub use versioned::{
    Change, Item, Meta, ReadView, VersionedStoreId, VersionedStoreKind, VersionedStoreRow, VersionedStoreState,
};
