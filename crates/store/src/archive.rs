//! Everything that is stored, table by table: for moving it from one kind of store to another.
//!
//! Not the way to write anything else. What is restored here is taken as it is; the rules of the journal, which keep logs
//! free of gaps, were applied when it was first written.

use async_trait::async_trait;
use baton_model::{Digest, RunId};

use crate::{
    Change, DeadLetter, Delivery, Error, InterruptRow, LedgerId, Quarantine, Reply, RunRow, StoredRecord, Webhook,
    WorkflowVersion,
};

/// The tables, in an order in which they can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Blobs,
    Workflows,
    /// In the order of creation, which is also a matter of record.
    Runs,
    Records,
    Ledgers,
    /// Which ledgers were forked from which.
    Bases,
    Changes,
    Interrupts,
    Replies,
    Webhooks,
    Deliveries,
    DeadLetters,
    Quarantine,
}

impl Table {
    pub const ALL: [Self; 13] = [
        Self::Blobs,
        Self::Workflows,
        Self::Runs,
        Self::Records,
        Self::Ledgers,
        Self::Bases,
        Self::Changes,
        Self::Interrupts,
        Self::Replies,
        Self::Webhooks,
        Self::Deliveries,
        Self::DeadLetters,
        Self::Quarantine,
    ];

    /// What it is called in a database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Workflows => "workflows",
            Self::Runs => "runs",
            Self::Records => "events",
            Self::Ledgers | Self::Bases => "ledgers",
            Self::Changes => "changes",
            Self::Interrupts => "interrupts",
            Self::Replies => "replies",
            Self::Webhooks => "webhooks",
            Self::Deliveries => "deliveries",
            Self::DeadLetters => "dead_letters",
            Self::Quarantine => "quarantine",
        }
    }

    /// What people are told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Workflows => "workflow versions",
            Self::Runs => "runs",
            Self::Records => "records",
            Self::Ledgers => "memory scopes and workspaces",
            Self::Bases => "forks of those",
            Self::Changes => "changes",
            Self::Interrupts => "open interrupts",
            Self::Replies => "idempotent replies",
            Self::Webhooks => "webhooks",
            Self::Deliveries => "deliveries",
            Self::DeadLetters => "dead letters",
            Self::Quarantine => "quarantined trees",
        }
    }
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Blob { digest: Digest, bytes: Vec<u8> },
    Workflow(WorkflowVersion),
    Run(Box<RunRow>),
    Record { run: RunId, record: StoredRecord },
    Ledger(LedgerState),
    Base { ledger: LedgerId, base: LedgerId, version: u64 },
    Change { ledger: LedgerId, change: Change },
    Interrupt(InterruptRow),
    Reply(Reply),
    Webhook(Webhook),
    Delivery(Delivery),
    DeadLetter(DeadLetter),
    Quarantine(Quarantine),
}

impl Entry {
    /// The same wherever it is kept.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(format!("{self:?}"))
    }
}

/// Where a ledger stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerState {
    pub ledger: LedgerId,
    pub version: u64,
    pub updated_at: baton_model::Timestamp,
    /// Changes up to this version may be missing.
    pub forgotten: u64,
}

/// The whole of a store that nobody else is using.
#[async_trait]
pub trait Archive: Send + Sync {
    /// How many rows a table has.
    async fn count(&self, table: Table) -> Result<u64, Error>;

    /// At most `limit` rows after this one, in an order of the store's own; from the start if there is none.
    async fn page(&self, table: Table, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, Error>;

    /// Writes rows down as they are, all or none. What is there already stays as it is.
    async fn restore(&self, entries: Vec<Entry>) -> Result<(), Error>;
}
