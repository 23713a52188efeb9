//! Things as rows: however many there are, one statement for a table, with a list of values per column. A commit and an
//! archive write the same ones; they differ in what becomes of a row that is there already.

use std::sync::LazyLock;

use baton_model::{RunId, Timestamp};
use baton_store::codec::{
    self, CHANGE_WITH_TAGS, Column, Existing, Inserts, Kind, NewRun, Stored, Sum, integer, new_run_sums,
    write_versioned_store,
};
use baton_store::{
    AnnotationRow, Change, Checkpoint, CheckpointChunk, DeadLetter, Delivery, InterruptRow, Quarantine, Reply, RunRow,
    RunnerRow, SpendingRow, StepRow, StoredRecord, TokenRow, VersionedStoreId, VersionedStoreState, Webhook,
    WorkflowVersion,
};

use crate::lists::Lists;
use crate::rows::versioned_key;
use crate::statement::Statement;
use crate::summary::Told;
use crate::text;

/// What a table has beside the columns that every database has.
#[derive(Default)]
struct Own {
    /// With their types; a list of values each.
    lists: &'static [(&'static str, &'static str)],
    /// The same value in every row.
    same: Option<&'static str>,
    /// Rows are written in the order of the lists, which counters follow.
    in_order: bool,
}

const fn type_of(kind: Kind) -> &'static str {
    match kind {
        // There are no lists of lists of different lengths, so each goes as a text.
        Kind::Text | Kind::Name | Kind::Texts => "TEXT",
        Kind::Integer => "BIGINT",
        Kind::Flag => "BOOLEAN",
        Kind::Bytes => "BYTEA",
    }
}

fn inserts(table: &str, columns: &[Column], key: &[&str], sums: &[Sum], own: &Own) -> Inserts {
    let mut names: Vec<String> = columns.iter().map(|column| column.name.to_owned()).collect();
    let mut types: Vec<&str> = columns.iter().map(|column| type_of(column.kind)).collect();
    let mut selected: Vec<String> = columns
        .iter()
        .map(|Column { name, kind }| if *kind == Kind::Texts { format!("{name}::TEXT[]") } else { (*name).to_owned() })
        .collect();
    let longs = columns.iter().filter(|column| column.kind == Kind::Name).map(|column| format!("long_{}", column.name));
    let own_lists = own.lists.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
    let sums = sums.iter().map(|sum| (sum.column.to_owned(), "BIGINT"));
    for (name, kind) in longs.map(|name| (name, "TEXT")).chain(sums).chain(own_lists) {
        names.push(name.clone());
        selected.push(name);
        types.push(kind);
    }
    let lists: Vec<String> = types.iter().zip(1..).map(|(kind, place)| format!("${place}::{kind}[]")).collect();
    let (ordinality, order) = if own.in_order { (" WITH ORDINALITY", " ORDER BY place") } else { ("", "") };
    let place = if own.in_order { ", place" } else { "" };
    let from = format!("unnest({}){ordinality} AS new ({}{place}){order}", lists.join(", "), names.join(", "));
    let changed: Vec<String> = names
        .iter()
        .filter(|name| !key.contains(&name.trim_start_matches("long_")))
        .map(|name| format!("{name} = excluded.{name}"))
        .collect();
    if let Some(same) = own.same {
        names.push(same.to_owned());
        selected.push(format!("${}", lists.len() + 1));
    }
    let refuse = format!("INSERT INTO {table} ({}) SELECT {} FROM {from}", names.join(", "), selected.join(", "));
    let (key, changed) = (key.join(", "), changed.join(", "));
    Inserts {
        keep: format!("{refuse} ON CONFLICT ({key}) DO NOTHING"),
        replace: format!("{refuse} ON CONFLICT ({key}) DO UPDATE SET {changed}"),
        newer: format!("{refuse} ON CONFLICT ({key}) DO UPDATE SET {changed} WHERE excluded.version > {table}.version"),
        refuse,
    }
}

/// What has a table without columns that only this database has.
pub(crate) trait Plain: Stored {
    fn inserts() -> &'static Inserts;
}

macro_rules! plain {
    ($($row:ty),*) => {$(
        impl Plain for $row {
            fn inserts() -> &'static Inserts {
                static INSERTS: LazyLock<Inserts> = LazyLock::new(|| {
                    inserts(<$row>::TABLE, <$row>::COLUMNS, <$row>::KEY, <$row>::SUMS, &Own::default())
                });
                &INSERTS
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
    Quarantine,
    Reply,
    RunnerRow,
    StepRow,
    SpendingRow,
    TokenRow,
    Webhook,
    WorkflowVersion
);

pub(crate) fn rows<'a, T: Plain + 'a>(existing: Existing, rows: impl IntoIterator<Item = &'a T>) -> Statement<'a> {
    let rows = rows.into_iter();
    let mut lists = Lists::new(T::COLUMNS, rows.size_hint().0);
    let mut sums: Vec<Vec<i64>> = T::SUMS.iter().map(|_| Vec::with_capacity(rows.size_hint().0)).collect();
    for row in rows {
        lists.row(|lists| row.write(lists));
        for (kept, sum) in sums.iter_mut().zip(T::SUMS) {
            kept.push(codec::sum(sum, &[], row));
        }
    }
    sums.into_iter().fold(lists.statement(T::inserts().sql(existing)), Statement::value)
}

/// In the order of creation, which positions follow. `me` is the session that owns them, or 0.
pub(crate) fn runs<'a>(existing: Existing, runs: &[NewRun<'a>], me: u64) -> Statement<'a> {
    const LISTS: &[(&str, &str)] = &[
        ("origin_run", "TEXT"),
        ("origin_seq", "BIGINT"),
        ("diverged", "BOOLEAN"),
        ("over_budget", "BOOLEAN"),
        ("cost_usd", "DOUBLE PRECISION"),
        ("first_memory", "BIGINT"),
        ("first_workspace", "BIGINT"),
    ];
    static INSERTS: LazyLock<Inserts> = LazyLock::new(|| {
        let own = Own { lists: LISTS, same: Some("owner"), in_order: true };
        inserts(RunRow::TABLE, RunRow::COLUMNS, RunRow::KEY, RunRow::SUMS, &own)
    });
    let mut lists = Lists::new(RunRow::COLUMNS, runs.len());
    for run in runs {
        lists.row(|lists| run.write(lists));
    }
    let told: Vec<Told> = runs.iter().map(|run| Told::by(run.latest)).collect();
    let forked_at = |run: &NewRun<'_>| run.row.origin.as_ref().map_or(0, |origin| integer(origin.seq));
    let sums: Vec<[Option<i64>; 3]> = runs.iter().map(new_run_sums).collect();
    lists
        .statement(INSERTS.sql(existing))
        .list(sums.iter().map(|sums| sums[0]))
        .list(sums.iter().map(|sums| sums[1]))
        .list(sums.iter().map(|sums| sums[2]))
        .maybe_texts(runs.iter().map(NewRun::source))
        .list(runs.iter().map(forked_at))
        .list(told.iter().map(|told| told.diverged))
        .list(told.iter().map(|told| told.over_budget))
        .list(told.iter().map(|told| told.cost_usd))
        .list(runs.iter().map(|run| run.first.map(|first| integer(first.memory))))
        .list(runs.iter().map(|run| run.first.map(|first| integer(first.workspace))))
        .value(integer(me))
}

/// The tags of runs that are there by now, for whoever looks for runs by one.
pub(crate) fn tags<'a>(runs: &[NewRun<'a>]) -> Option<Statement<'a>> {
    let (mut ids, mut keys) = (Vec::new(), Vec::new());
    for run in runs {
        for tag in &run.row.tags {
            ids.push(run.row.id.as_str());
            keys.push(text::key(tag));
        }
    }
    (!ids.is_empty()).then(|| Statement::new(TAGS).texts(ids).value(keys))
}

pub(crate) const TAGS: &str = "INSERT INTO run_tags (tenant, tag, created_at, position, run)
    SELECT runs.tenant, new.tag, runs.created_at, runs.position, runs.id
    FROM unnest($1::TEXT[], $2::TEXT[]) AS new (id, tag) JOIN runs ON runs.id = new.id
    ON CONFLICT (tenant, tag, created_at, position) DO NOTHING";

/// `me` is the session that writes them, or 0.
pub(crate) fn records<'a>(existing: Existing, records: &[(&'a RunId, &'a StoredRecord)], me: u64) -> Statement<'a> {
    static INSERTS: LazyLock<Inserts> = LazyLock::new(|| {
        let own = Own { lists: &[("run", "TEXT")], same: Some("epoch"), in_order: false };
        inserts(StoredRecord::TABLE, StoredRecord::COLUMNS, StoredRecord::KEY, &[], &own)
    });
    let mut lists = Lists::new(StoredRecord::COLUMNS, records.len());
    for (_, record) in records {
        lists.row(|lists| record.write(lists));
    }
    let runs = records.iter().map(|(run, _)| run.as_str());
    lists.statement(INSERTS.sql(existing)).texts(runs).value(integer(me))
}

pub(crate) fn changes<'a>(existing: Existing, changes: &[(&'a VersionedStoreId, &'a Change)]) -> Statement<'a> {
    static INSERTS: LazyLock<Inserts> = LazyLock::new(|| {
        let own = Own { lists: &[("ledger", "BYTEA")], ..Own::default() };
        inserts(Change::TABLE, CHANGE_WITH_TAGS, Change::KEY, Change::SUMS, &own)
    });
    let mut lists = Lists::new(CHANGE_WITH_TAGS, changes.len());
    for (_, change) in changes {
        lists.row(|lists| change.write(lists));
    }
    let sums = |sum: &Sum| -> Vec<i64> {
        changes.iter().map(|(ledger, change)| codec::sum_apart(sum, &codec::whose(ledger), *change)).collect()
    };
    let statement = Change::SUMS.iter().fold(lists.statement(INSERTS.sql(existing)), |all, sum| all.value(sums(sum)));
    statement.list(changes.iter().map(|(ledger, _)| versioned_key(ledger)))
}

/// A versioned store and where it stands: its version, when that was written, and up to where changes may be missing.
pub(crate) type Standing<'a> = (&'a VersionedStoreId, u64, Timestamp, u64);

pub(crate) fn ledgers<'a>(existing: Existing, ledgers: &[Standing<'a>]) -> Statement<'a> {
    static INSERTS: LazyLock<Inserts> = LazyLock::new(|| {
        let own = Own { lists: &[("ledger", "BYTEA")], ..Own::default() };
        inserts(VersionedStoreState::TABLE, VersionedStoreState::COLUMNS, VersionedStoreState::KEY, &[], &own)
    });
    let mut lists = Lists::new(VersionedStoreState::COLUMNS, ledgers.len());
    for (ledger, version, updated_at, forgotten) in ledgers {
        lists.row(|lists| write_versioned_store(ledger, *version, *updated_at, *forgotten, lists));
    }
    lists.statement(INSERTS.sql(existing)).list(ledgers.iter().map(|(ledger, ..)| versioned_key(ledger)))
}

/// What is there under a digest is the same.
pub(crate) fn blobs<'a>(blobs: impl Iterator<Item = (&'a str, &'a [u8])>) -> Statement<'a> {
    let (digests, bytes): (Vec<&str>, Vec<&[u8]>) = blobs.unzip();
    Statement::new(
        "INSERT INTO blobs (digest, bytes) SELECT * FROM unnest($1::TEXT[], $2::BYTEA[]) ON CONFLICT (digest) DO NOTHING",
    )
    .texts(digests)
    .value(bytes)
}
