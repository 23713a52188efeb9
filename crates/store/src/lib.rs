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
mod error;
mod ledger;
mod letters;
mod memory;
mod port;
mod quarantine;
mod record;
mod rows;
mod shared;
mod subject;

pub use annotation::AnnotationRow;
pub use commit::{Commit, Committed, LedgerCommitted, Observer, Ticket, TicketSender, Write};
pub use error::{CommitError, Error, panic_text};
pub use ledger::{Change, Item, LedgerId, LedgerKind, LedgerRow, LedgerState, Lens, Meta};
pub use letters::{DeadLetter, DeathReason, LetterPlace, LetterWrite, Letters, WebhookChange, WebhookLoad};
pub use memory::{Cluster, Disk, MemoryStore};
pub use port::{
    DefinitionReads, HealthReads, Journal, LedgerReads, QuestionReads, Reader, RemarkReads, RunReads, Store,
    WebhookReads, reads,
};
pub use quarantine::Quarantine;
pub use record::StoredRecord;
pub use rows::{
    Attempt, Delivery, InterruptFilter, InterruptRow, LastFailure, Page, Patience, Pruned, Reply, RunFilter, RunRow,
    Usage, UsageClass, Webhook, WebhookStatus, WorkflowVersion,
};
pub use shared::{Address, Claim, KEEP_ANSWERS, Letter, News, Owner, Session, Shared, Suspect};
pub use subject::COMMIT_BYTES;
