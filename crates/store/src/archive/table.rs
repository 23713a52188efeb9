//! What there is to move.

use crate::codec::{Column, Stored as _, Sum};
use crate::{
    AnnotationRow, Change, DeadLetter, Delivery, InterruptRow, Quarantine, Reply, RunRow, RunnerRow, StepRow,
    StoredRecord, TokenRow, VersionedStoreState, Webhook, WorkflowVersion,
};

/// The tables, in an order in which they can be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    Blobs,
    Workflows,
    /// In the order of creation, which is also a matter of record.
    Runs,
    Records,
    VersionedStores,
    /// Which versioned stores were forked from which.
    Bases,
    Changes,
    Interrupts,
    Replies,
    Webhooks,
    Deliveries,
    DeadLetters,
    Quarantine,
    Annotations,
    Tokens,
    Runners,
    RunnerSteps,
}

impl Table {
    pub const ALL: [Self; 17] = [
        Self::Blobs,
        Self::Workflows,
        Self::Runs,
        Self::Records,
        Self::VersionedStores,
        Self::Bases,
        Self::Changes,
        Self::Interrupts,
        Self::Replies,
        Self::Webhooks,
        Self::Deliveries,
        Self::DeadLetters,
        Self::Quarantine,
        Self::Annotations,
        Self::Tokens,
        Self::Runners,
        Self::RunnerSteps,
    ];

    /// What it is called in a database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Workflows => WorkflowVersion::TABLE,
            Self::Runs => RunRow::TABLE,
            Self::Records => StoredRecord::TABLE,
            Self::VersionedStores | Self::Bases => VersionedStoreState::TABLE,
            Self::Changes => Change::TABLE,
            Self::Interrupts => InterruptRow::TABLE,
            Self::Replies => Reply::TABLE,
            Self::Webhooks => Webhook::TABLE,
            Self::Deliveries => Delivery::TABLE,
            Self::DeadLetters => DeadLetter::TABLE,
            Self::Quarantine => Quarantine::TABLE,
            Self::Annotations => AnnotationRow::TABLE,
            Self::Tokens => TokenRow::TABLE,
            Self::Runners => RunnerRow::TABLE,
            Self::RunnerSteps => StepRow::TABLE,
        }
    }

    /// The columns that rows are told apart by, and follow each other by. A database may have a shorter name for a run or a
    /// versioned store, and then goes by that.
    pub const fn key(self) -> &'static [&'static str] {
        match self {
            Self::Blobs => &["digest"],
            Self::Workflows => WorkflowVersion::KEY,
            Self::Runs => RunRow::KEY,
            Self::Records => StoredRecord::KEY,
            Self::VersionedStores | Self::Bases => VersionedStoreState::KEY,
            Self::Changes => Change::KEY,
            Self::Interrupts => InterruptRow::KEY,
            Self::Replies => Reply::KEY,
            Self::Webhooks => Webhook::KEY,
            Self::Deliveries => Delivery::KEY,
            Self::DeadLetters => DeadLetter::KEY,
            Self::Quarantine => Quarantine::KEY,
            Self::Annotations => AnnotationRow::KEY,
            Self::Tokens => TokenRow::KEY,
            Self::Runners => RunnerRow::KEY,
            Self::RunnerSteps => StepRow::KEY,
        }
    }

    /// The columns that are the same in every database, first in every page. Of blobs and of what was forked from what
    /// there are none: see [`super::Entry::read`].
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Blobs | Self::Bases => &[],
            Self::Workflows => WorkflowVersion::COLUMNS,
            Self::Runs => RunRow::COLUMNS,
            Self::Records => StoredRecord::COLUMNS,
            Self::VersionedStores => VersionedStoreState::COLUMNS,
            Self::Changes => Change::COLUMNS,
            Self::Interrupts => InterruptRow::COLUMNS,
            Self::Replies => Reply::COLUMNS,
            Self::Webhooks => Webhook::COLUMNS,
            Self::Deliveries => Delivery::COLUMNS,
            Self::DeadLetters => DeadLetter::COLUMNS,
            Self::Quarantine => Quarantine::COLUMNS,
            Self::Annotations => AnnotationRow::COLUMNS,
            Self::Tokens => TokenRow::COLUMNS,
            Self::Runners => RunnerRow::COLUMNS,
            Self::RunnerSteps => StepRow::COLUMNS,
        }
    }

    /// The checksums of its rows, which come last in every page.
    pub const fn sums(self) -> &'static [Sum] {
        match self {
            Self::Blobs | Self::Bases => &[],
            Self::Workflows => WorkflowVersion::SUMS,
            Self::Runs => RunRow::SUMS,
            Self::Records => StoredRecord::SUMS,
            Self::VersionedStores => VersionedStoreState::SUMS,
            Self::Changes => Change::SUMS,
            Self::Interrupts => InterruptRow::SUMS,
            Self::Replies => Reply::SUMS,
            Self::Webhooks => Webhook::SUMS,
            Self::Deliveries => Delivery::SUMS,
            Self::DeadLetters => DeadLetter::SUMS,
            Self::Quarantine => Quarantine::SUMS,
            Self::Annotations => AnnotationRow::SUMS,
            Self::Tokens => TokenRow::SUMS,
            Self::Runners => RunnerRow::SUMS,
            Self::RunnerSteps => StepRow::SUMS,
        }
    }

    /// What people are told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blobs => "blobs",
            Self::Workflows => "workflow versions",
            Self::Runs => "runs",
            Self::Records => "records",
            Self::VersionedStores => "memory scopes and workspaces",
            Self::Bases => "forks of those",
            Self::Changes => "changes",
            Self::Interrupts => "open interrupts",
            Self::Replies => "idempotent replies",
            Self::Webhooks => "webhooks",
            Self::Deliveries => "deliveries",
            Self::DeadLetters => "dead letters",
            Self::Quarantine => "quarantined trees",
            Self::Annotations => "annotations",
            Self::Tokens => "tokens",
            Self::Runners => "runners",
            Self::RunnerSteps => "steps of runners",
        }
    }
}
