//! Rows of any table.

use baton_model::{Digest, RunId};

use super::table::Table;
use crate::codec::{Fields, Source, Stored, Unreadable, Value, Values, integer, versioned_id, write_versioned_id};
use crate::{
    AnnotationRow, Change, DeadLetter, Delivery, InterruptRow, Quarantine, Reply, RunRow, RunnerRow, StepRow,
    StoredRecord, TokenRow, VersionedStoreId, VersionedStoreState, Webhook, WorkflowVersion,
};

/// One row of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Blob { digest: Digest, bytes: Vec<u8> },
    Workflow(WorkflowVersion),
    Run(Box<RunRow>),
    Record { run: RunId, record: StoredRecord },
    VersionedStore(VersionedStoreState),
    Base { ledger: VersionedStoreId, base: VersionedStoreId, version: u64 },
    Change { ledger: VersionedStoreId, change: Change },
    Interrupt(InterruptRow),
    Reply(Reply),
    Webhook(Webhook),
    Delivery(Delivery),
    DeadLetter(DeadLetter),
    Quarantine(Quarantine),
    Annotation(AnnotationRow),
    Token(TokenRow),
    Runner(RunnerRow),
    RunnerStep(StepRow),
}

impl Entry {
    /// One row of a page. It has the table's own columns first, and then what is needed to know whose it is: of a record
    /// its `run`, of a change `tenant, kind, scope` of its versioned store. Blobs are `digest, bytes`; of what was forked from what
    /// there is `tenant, kind, scope, base_version` and the scope of the base.
    pub fn read(table: Table, row: &impl Source) -> Result<Self, Unreadable> {
        let mut row = Fields::new(row);
        Ok(match table {
            Table::Blobs => Self::Blob { digest: row.parsed("digest", Digest::parse)?, bytes: row.bytes("bytes")? },
            Table::Workflows => Self::Workflow(Stored::read(&mut row)?),
            Table::Runs => Self::Run(Box::new(Stored::read(&mut row)?)),
            Table::Records => {
                let record = Stored::read(&mut row)?;
                Self::Record { run: RunId::new(row.text("run")?), record }
            }
            Table::VersionedStores => Self::VersionedStore(Stored::read(&mut row)?),
            Table::Bases => {
                let (ledger, version) = (versioned_id(&mut row)?, row.count("base_version")?);
                let base = VersionedStoreId { scope: row.text("base")?, ..ledger.clone() };
                Self::Base { ledger, base, version }
            }
            Table::Changes => {
                let change = Stored::read(&mut row)?;
                Self::Change { ledger: versioned_id(&mut row)?, change }
            }
            Table::Interrupts => Self::Interrupt(Stored::read(&mut row)?),
            Table::Replies => Self::Reply(Stored::read(&mut row)?),
            Table::Webhooks => Self::Webhook(Stored::read(&mut row)?),
            Table::Deliveries => Self::Delivery(Stored::read(&mut row)?),
            Table::DeadLetters => Self::DeadLetter(Stored::read(&mut row)?),
            Table::Quarantine => Self::Quarantine(Stored::read(&mut row)?),
            Table::Annotations => Self::Annotation(Stored::read(&mut row)?),
            Table::Tokens => Self::Token(Stored::read(&mut row)?),
            Table::Runners => Self::Runner(Stored::read(&mut row)?),
            Table::RunnerSteps => Self::RunnerStep(Stored::read(&mut row)?),
        })
    }

    /// All of it, as columns.
    fn write<'a>(&'a self, out: &mut impl Values<'a>) {
        match self {
            Self::Blob { digest, bytes } => {
                out.text("digest", digest.as_str());
                out.put("bytes", Value::Bytes(bytes));
            }
            Self::Workflow(row) => row.write(out),
            Self::Run(row) => row.write(out),
            Self::Record { run, record } => {
                record.write(out);
                out.text("run", run.as_str());
            }
            Self::VersionedStore(state) => state.write(out),
            Self::Base { ledger, base, version } => {
                write_versioned_id(ledger, out);
                out.integer("base_version", integer(*version));
                out.text("base", &base.scope);
            }
            Self::Change { ledger, change } => {
                change.write(out);
                write_versioned_id(ledger, out);
            }
            Self::Interrupt(row) => row.write(out),
            Self::Reply(row) => row.write(out),
            Self::Webhook(row) => row.write(out),
            Self::Delivery(row) => row.write(out),
            Self::DeadLetter(row) => row.write(out),
            Self::Quarantine(row) => row.write(out),
            Self::Annotation(row) => row.write(out),
            Self::Token(row) => row.write(out),
            Self::Runner(row) => row.write(out),
            Self::RunnerStep(row) => row.write(out),
        }
    }

    /// The same wherever it is kept.
    pub fn digest(&self) -> Digest {
        let mut bytes = Bytes(Vec::new());
        self.write(&mut bytes);
        Digest::of_bytes(bytes.0)
    }
}

/// Columns as bytes that no other columns have: each says what it is and how long.
struct Bytes(Vec<u8>);

impl Bytes {
    fn add(&mut self, kind: u8, bytes: &[u8]) {
        self.0.push(kind);
        self.0.extend((bytes.len() as u64).to_be_bytes());
        self.0.extend(bytes);
    }
}

impl<'a> Values<'a> for Bytes {
    fn put(&mut self, column: &'static str, value: Value<'a>) {
        self.add(b'c', column.as_bytes());
        match value {
            Value::Null => self.add(b'n', &[]),
            Value::Text(text) => self.add(b't', text.as_bytes()),
            Value::Integer(number) => self.add(b'i', &number.to_be_bytes()),
            Value::Flag(flag) => self.add(b'f', &[u8::from(flag)]),
            Value::Texts(texts) => {
                self.add(b'l', &(texts.len() as u64).to_be_bytes());
                texts.iter().for_each(|text| self.add(b't', text.as_bytes()));
            }
            Value::Bytes(bytes) => self.add(b'b', bytes),
        }
    }
}
