//! Things as rows. A commit and an archive write the same ones; they differ in what becomes of a row that is there
//! already.

use std::sync::LazyLock;

use baton_model::Digest;
use baton_store::codec::{Existing, Inserts, NewRun, Stored, Value, Values, names};
use baton_store::{
    AnnotationRow, Change, DeadLetter, Delivery, InterruptRow, Quarantine, Reply, RunRow, StoredRecord,
    VersionedStoreState, Webhook, WorkflowVersion,
};
use rusqlite::{Connection, Statement, params};

use crate::rows::json_list;

fn into<T: Stored>() -> Inserts {
    beside::<T>(&[])
}

/// With columns that only this database has, behind the others.
fn beside<T: Stored>(own: &[&str]) -> Inserts {
    let own_names: String = own.iter().map(|name| format!(", {name}")).collect();
    let places: Vec<String> = (1..=T::COLUMNS.len() + own.len()).map(|place| format!("?{place}")).collect();
    let (table, names, places) = (T::TABLE, names(T::COLUMNS), places.join(", "));
    let insert = |how: &str| format!("{how} INTO {table} ({names}{own_names}) VALUES ({places})");
    Inserts { refuse: insert("INSERT"), keep: insert("INSERT OR IGNORE"), replace: insert("INSERT OR REPLACE") }
}

/// Binds the columns of a row, one after the other.
struct Binder<'s, 'c> {
    statement: &'s mut Statement<'c>,
    bound: usize,
    outcome: rusqlite::Result<()>,
}

impl<'s, 'c> Binder<'s, 'c> {
    fn new(statement: &'s mut Statement<'c>) -> Self {
        Self { statement, bound: 0, outcome: Ok(()) }
    }

    fn execute(self) -> rusqlite::Result<()> {
        self.outcome?;
        self.statement.raw_execute().map(|_rows| ())
    }
}

impl<'a> Values<'a> for Binder<'_, '_> {
    fn put(&mut self, _: &'static str, value: Value<'a>) {
        if self.outcome.is_err() {
            return;
        }
        self.bound += 1;
        let (statement, place) = (&mut *self.statement, self.bound);
        self.outcome = match value {
            Value::Null => statement.raw_bind_parameter(place, rusqlite::types::Null),
            Value::Text(text) => statement.raw_bind_parameter(place, &*text),
            Value::Integer(number) => statement.raw_bind_parameter(place, number),
            Value::Flag(flag) => statement.raw_bind_parameter(place, flag),
            Value::Texts(texts) => statement.raw_bind_parameter(place, json_list(texts)),
            Value::Bytes(bytes) => statement.raw_bind_parameter(place, bytes),
        };
    }
}

/// What has a table without columns that only this database has.
pub(crate) trait Plain: Stored {
    fn insert() -> &'static Inserts;
}

macro_rules! plain {
    ($($row:ty),*) => {$(
        impl Plain for $row {
            fn insert() -> &'static Inserts {
                static INSERT: LazyLock<Inserts> = LazyLock::new(into::<$row>);
                &INSERT
            }
        }
    )*};
}

plain!(
    AnnotationRow,
    DeadLetter,
    Delivery,
    InterruptRow,
    VersionedStoreState,
    Quarantine,
    Reply,
    Webhook,
    WorkflowVersion
);

pub(crate) fn row<T: Plain>(connection: &Connection, existing: Existing, row: &T) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(T::insert().sql(existing))?;
    let mut binder = Binder::new(&mut statement);
    row.write(&mut binder);
    binder.execute()
}

pub(crate) fn run(connection: &Connection, existing: Existing, run: NewRun<'_>) -> rusqlite::Result<()> {
    static INSERT: LazyLock<Inserts> = LazyLock::new(|| beside::<RunRow>(&["origin_run"]));
    let mut statement = connection.prepare_cached(INSERT.sql(existing))?;
    let mut binder = Binder::new(&mut statement);
    run.write(&mut binder);
    binder.maybe_text("origin_run", run.source());
    binder.execute()
}

pub(crate) fn records(
    connection: &Connection,
    existing: Existing,
    run: i64,
    records: &[StoredRecord],
) -> rusqlite::Result<()> {
    static INSERT: LazyLock<Inserts> = LazyLock::new(|| beside::<StoredRecord>(&["run"]));
    let mut statement = connection.prepare_cached(INSERT.sql(existing))?;
    for record in records {
        let mut binder = Binder::new(&mut statement);
        record.write(&mut binder);
        binder.integer("run", run);
        binder.execute()?;
    }
    Ok(())
}

pub(crate) fn change(
    connection: &Connection,
    existing: Existing,
    ledger: i64,
    change: &Change,
) -> rusqlite::Result<()> {
    static INSERT: LazyLock<Inserts> = LazyLock::new(|| beside::<Change>(&["ledger"]));
    let mut statement = connection.prepare_cached(INSERT.sql(existing))?;
    let mut binder = Binder::new(&mut statement);
    change.write(&mut binder);
    binder.integer("ledger", ledger);
    binder.execute()
}

/// What is there under a digest is the same.
pub(crate) fn blob(connection: &Connection, digest: &Digest, bytes: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING";
    connection.prepare_cached(sql)?.execute(params![digest.as_str(), bytes]).map(|_rows| ())
}
