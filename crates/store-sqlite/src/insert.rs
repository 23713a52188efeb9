//! Things as rows. A commit and an archive write the same ones; they differ in what becomes of a row that is there
//! already.

use std::sync::LazyLock;

use baton_model::Digest;
use baton_store::codec::{self, Existing, Inserts, NewRun, Stored, Value, Values, integer, names};
use baton_store::{
    AnnotationRow, Change, Checkpoint, CheckpointChunk, DeadLetter, Delivery, InterruptRow, Quarantine, Reply, RunRow,
    RunnerRow, SpendingRow, StepRow, StoredRecord, TokenRow, VersionedStoreId, VersionedStoreState, Webhook,
    WorkflowVersion,
};
use rusqlite::{Connection, Statement, params};

use crate::rows::json_list;

fn into<T: Stored>() -> Inserts {
    beside::<T>(&[])
}

/// With columns that only this database has, behind the others.
fn beside<T: Stored>(own: &[&str]) -> Inserts {
    let own: Vec<&str> = T::SUMS.iter().map(|sum| sum.column).chain(own.iter().copied()).collect();
    let own_names: String = own.iter().map(|name| format!(", {name}")).collect();
    let places: Vec<String> = (1..=T::COLUMNS.len() + own.len()).map(|place| format!("?{place}")).collect();
    let (table, names, places) = (T::TABLE, names(T::COLUMNS), places.join(", "));
    let insert = |how: &str| format!("{how} INTO {table} ({names}{own_names}) VALUES ({places})");
    let changed: Vec<String> = T::COLUMNS
        .iter()
        .filter(|column| !T::KEY.contains(&column.name))
        .map(|column| column.name)
        .chain(T::SUMS.iter().map(|sum| sum.column))
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    let newer = format!(
        "{} ON CONFLICT ({}) DO UPDATE SET {} WHERE excluded.version > {table}.version",
        insert("INSERT"),
        T::KEY.join(", "),
        changed.join(", ")
    );
    Inserts { refuse: insert("INSERT"), keep: insert("INSERT OR IGNORE"), replace: insert("INSERT OR REPLACE"), newer }
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
    Checkpoint,
    CheckpointChunk,
    DeadLetter,
    Delivery,
    InterruptRow,
    VersionedStoreState,
    Quarantine,
    Reply,
    RunnerRow,
    StepRow,
    SpendingRow,
    TokenRow,
    Webhook,
    WorkflowVersion
);

pub(crate) fn row<T: Plain>(connection: &Connection, existing: Existing, row: &T) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(T::insert().sql(existing))?;
    let mut binder = Binder::new(&mut statement);
    row.write(&mut binder);
    for sum in T::SUMS {
        binder.integer(sum.column, codec::sum(sum, &[], row));
    }
    binder.execute()
}

pub(crate) fn run(connection: &Connection, existing: Existing, run: NewRun<'_>) -> rusqlite::Result<()> {
    static INSERT: LazyLock<Inserts> =
        LazyLock::new(|| beside::<RunRow>(&["origin_run", "first_memory", "first_workspace"]));
    let mut statement = connection.prepare_cached(INSERT.sql(existing))?;
    let mut binder = Binder::new(&mut statement);
    run.write(&mut binder);
    for (sum, kept) in RunRow::SUMS.iter().zip(codec::new_run_sums(&run)) {
        binder.maybe_integer(sum.column, kept);
    }
    binder.maybe_text("origin_run", run.source());
    for (name, version) in [
        ("first_memory", run.first.map(|first| first.memory)),
        ("first_workspace", run.first.map(|first| first.workspace)),
    ] {
        binder.put(name, version.map_or(Value::Null, |version| Value::Integer(integer(version))));
    }
    binder.execute()?;
    for tag in &run.row.tags {
        // One that is there under a tag twice is found once.
        let sql = "INSERT OR IGNORE INTO run_tags (tenant, tag, created_at, run)
                   SELECT tenant, ?2, created_at, run FROM runs WHERE id = ?1";
        connection.prepare_cached(sql)?.execute(params![run.row.id.as_str(), tag])?;
    }
    Ok(())
}

/// How far a run looks back that was written before its first record.
pub(crate) fn first_versions(connection: &Connection, run: i64, first: &StoredRecord) -> rusqlite::Result<()> {
    let sql = "UPDATE runs SET first_memory = ?2, first_workspace = ?3 WHERE run = ?1 AND first_memory IS NULL";
    let values = params![run, integer(first.versions.memory), integer(first.versions.workspace)];
    connection.prepare_cached(sql)?.execute(values).map(|_rows| ())
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
    whose: &VersionedStoreId,
    change: &Change,
) -> rusqlite::Result<()> {
    static INSERT: LazyLock<Inserts> = LazyLock::new(|| beside::<Change>(&["ledger"]));
    let mut statement = connection.prepare_cached(INSERT.sql(existing))?;
    let mut binder = Binder::new(&mut statement);
    change.write(&mut binder);
    for sum in Change::SUMS {
        binder.integer(sum.column, codec::sum(sum, &codec::whose(whose), change));
    }
    binder.integer("ledger", ledger);
    binder.execute()
}

/// What is there under a digest is the same.
pub(crate) fn blob(connection: &Connection, digest: &Digest, bytes: &[u8]) -> rusqlite::Result<()> {
    let sql = "INSERT INTO blobs (digest, bytes) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING";
    connection.prepare_cached(sql)?.execute(params![digest.as_str(), bytes]).map(|_rows| ())
}
