//! Where an entry stands in its table.

use baton_model::RunId;

use super::entry::Entry;
use crate::VersionedStoreId;

/// One value of an entry's key, by what a database makes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart<'a> {
    /// When a run was created: a number of the database's own.
    Creation(&'a RunId),
    /// The run that a record belongs to.
    Run(&'a RunId),
    VersionedStore(&'a VersionedStoreId),
    Text(&'a str),
    /// See [`crate::codec::Kind::Name`].
    Name(&'a str),
    Number(u64),
}

impl Entry {
    /// The values of the columns that [`super::Table::key`] names.
    pub fn key(&self) -> Vec<KeyPart<'_>> {
        use KeyPart::{Creation, Name, Number, Run, Text, VersionedStore};
        match self {
            Self::Blob { digest, .. } => vec![Text(digest.as_str())],
            Self::Workflow(row) => {
                vec![Text(row.tenant.as_str()), Name(row.id.as_str()), Number(row.version.into())]
            }
            Self::Run(row) => vec![Creation(&row.id)],
            Self::Record { run, record } => vec![Run(run), Number(record.seq)],
            Self::VersionedStore(state) => vec![VersionedStore(&state.ledger)],
            Self::Base { ledger, .. } => vec![VersionedStore(ledger)],
            Self::Change { ledger, change } => vec![VersionedStore(ledger), Number(change.version)],
            Self::Interrupt(row) => vec![Text(row.run.as_str()), Name(row.node.as_str())],
            Self::Reply(row) => vec![Text(row.key.as_str())],
            Self::Webhook(row) => vec![Text(row.id.as_str())],
            Self::Delivery(row) => vec![Text(row.webhook.as_str()), Text(row.run.as_str()), Number(row.seq)],
            Self::DeadLetter(row) => vec![Text(row.webhook.as_str()), Text(row.run.as_str()), Number(row.seq)],
            Self::Quarantine(row) => vec![Text(row.root.as_str())],
            Self::Annotation(row) => vec![Text(row.run.as_str()), Text(&row.id)],
            Self::Token(row) => vec![Text(&row.id)],
            Self::Runner(row) => vec![Text(&row.key)],
            Self::RunnerStep(row) => vec![Text(&row.key)],
        }
    }
}
