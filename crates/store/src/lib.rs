//! The storage port: what the runtime needs from a database, by role, and nothing else.
//!
//! One writer, one order. [`Journal::submit`] queues a [`Commit`] and returns at once; queue order is commit order, so
//! whoever queues an effect after its cause can never see the effect survive without the cause. Readers see committed
//! state only. Every adapter passes [`conformance`].

mod annotation;
pub mod archive;
pub mod codec;
mod commit;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dead_letters;
mod error;
mod in_memory;
mod port;
mod quarantine;
mod record;
mod rows;
mod shared;
mod subject;
mod versioned;

pub use annotation::AnnotationRow;
pub use commit::{Commit, CommitReceipt, Committed, Observer, TicketSender, VersionedStoreCommitted, Write};
pub use dead_letters::{
    DeadLetter, DeadLetterPlace, DeadLetterWrite, DeathReason, Letters, WebhookChange, WebhookLoad,
};
pub use error::{CommitError, Error, panic_text};
pub use in_memory::{Cluster, Disk, MemoryStore};
pub use port::{
    AnnotationReads, DefinitionReads, HealthReads, InterruptReads, Journal, Reader, RunReads, Store, VersionedReads,
    WebhookReads, reads,
};
pub use quarantine::Quarantine;
pub use record::StoredRecord;
pub use rows::{
    Attempt, Delivery, FailurePolicy, InterruptFilter, InterruptRow, LastFailure, Page, Pruned, Reply, RunFilter,
    RunRow, Usage, UsageClass, Webhook, WebhookStatus, WorkflowVersion,
};
pub use shared::{Claim, ClusterEvent, ForwardedCommand, KEEP_ANSWERS, Owner, Recipient, Session, Shared, Suspect};
pub use subject::COMMIT_BYTES;
pub use versioned::{
    Change, Item, Meta, ReadView, VersionedStoreId, VersionedStoreKind, VersionedStoreRow, VersionedStoreState,
};
