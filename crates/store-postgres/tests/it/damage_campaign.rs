//! Many random changes of stored values, each of which must be noticed or do no harm. Every case is told with its seed;
//! other and more of them: `BATON_SEED=7 BATON_DAMAGE_CASES=2000 cargo test -p baton-store-postgres --test it campaign`.
//!
//! Pages and indexes are the server's own: here are values that it hands out and that are not what was written.
#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::fmt::Debug;

use baton_model::{Digest, RunId, TenantId};
use baton_store::archive::Table;
use baton_store::codec::{Column, Kind, Stored as _};
use baton_store::conformance::everything;
use baton_store::conformance::sample::{put, record, row, sealed, submit};
use baton_store::reads::*;
use baton_store::{
    Error, InterruptFilter, Journal as _, ReadView, RunFilter, RunRow, SpendingRow, StoredRecord, VersionedStoreId,
    Write,
};
use baton_store_postgres::{PostgresStore, Settings};
use baton_testkit::postgres::{Database, rows};

/// As many as take some seconds.
const CASES: u64 = 60;
/// The same everywhere, unless somebody says otherwise.
const SEED: u64 = 1;
const RUNS: u64 = 8;

/// Numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

fn desk() -> VersionedStoreId {
    VersionedStoreId::memory(&TenantId::new("acme"), "campaign")
}

fn id(run: u64) -> RunId {
    RunId::new(format!("run_{run:04}"))
}

fn blob(run: u64) -> Vec<u8> {
    format!("blob {run} ").repeat(20).into_bytes()
}

async fn fill(store: &PostgresStore) {
    for commit in everything::commits() {
        submit(store, commit).await.unwrap();
    }
    for run in 0..RUNS {
        let row = RunRow { tags: vec!["tag".to_owned()], ..row(id(run).as_str()) };
        let records = (0..5).map(|seq| StoredRecord { body: format!("{{\"text\":\"{run} {seq}\"}}"), ..record(seq) });
        let log = sealed(RunRow { next_seq: 5, ..row.clone() }, 0, records.collect());
        let change = Write::Change { ledger: desk(), change: put(run + 1, &format!("key-{}", run % 3)) };
        let blob = Write::PutBlob { digest: Digest::of_bytes(blob(run)), bytes: blob(run) };
        submit(store, vec![Write::CreateRun(row), log, change, blob]).await.unwrap();
    }
}

/// What is served: by question, what came back or that it was noticed.
type Served = BTreeMap<String, Result<String, Error>>;

fn note<T: Debug>(all: &mut Served, question: String, answer: Result<T, Error>) {
    all.insert(question, answer.map(|answer| format!("{answer:?}")));
}

/// Lists leave out what is damaged, so each of their rows is an answer of its own.
fn list<T: Debug>(all: &mut Served, question: &str, rows: Result<Vec<T>, Error>) {
    match rows {
        Ok(rows) => all.extend(rows.iter().map(|row| {
            let row = format!("{row:?}");
            (format!("{question}: {row}"), Ok(row))
        })),
        Err(error) => drop(all.insert(question.to_owned(), Err(error))),
    }
}

async fn everything_of(store: &PostgresStore) -> Served {
    let mut all = Served::new();
    for run in (0..RUNS).map(id).chain(["run_full", "run_fork", "run_plain"].map(RunId::new)) {
        note(&mut all, format!("run {run}"), store.run(&run).await);
        note(&mut all, format!("records {run}"), store.records(&run, 0, 100).await);
        note(&mut all, format!("annotation {run}"), store.annotation(&run, "ann_1").await);
        note(&mut all, format!("quarantine {run}"), store.quarantine(&run).await);
        let spent = store.run_spending(&run).await;
        list(&mut all, &format!("spent {run}"), spent.map(|spent| spent.into_iter().collect()));
    }
    for run in 0..RUNS {
        note(&mut all, format!("blob {run}"), store.blob(&Digest::of_bytes(blob(run))).await);
    }
    let tenant = TenantId::new("acme");
    let filter = RunFilter { tenant: Some(tenant.clone()), limit: 100, ..RunFilter::default() };
    list(&mut all, "runs", store.runs(&filter).await.map(|page| page.items));
    list(&mut all, "workflows", store.workflows(&tenant).await);
    let open = InterruptFilter { tenant: Some(tenant), limit: 100, ..InterruptFilter::default() };
    list(&mut all, "interrupts", store.interrupts(&open).await);
    let view = ReadView { version: 1000, ..ReadView::default() };
    note(&mut all, "items".to_owned(), store.versioned_items(&desk(), &view).await);
    note(&mut all, "changes".to_owned(), store.versioned_changes(&desk(), None, None, 1000).await);
    let webhooks = store.webhooks().await;
    let webhooks =
        webhooks.map(|all| all.into_iter().map(|hook| (hook.id, hook.tenant, hook.url, hook.events, hook.tags)));
    list(&mut all, "webhooks", webhooks.map(Iterator::collect::<Vec<_>>));
    list(&mut all, "tokens", store.tokens(100).await);
    list(&mut all, "spending", store.spending(&RunId::new("run_root"), None, 100).await);
    all
}

/// What is served and was not written, and what is missing and nothing tells of it.
fn silent(truth: &Served, found: &Served, sound: bool) -> Vec<String> {
    let told = !sound || found.values().any(Result::is_err);
    let short = |text: &String| text.chars().take(200).collect::<String>();
    let mut wrong = Vec::new();
    for (question, answer) in truth {
        let Ok(answer) = answer else { continue };
        match found.get(question) {
            Some(Ok(other)) if other != answer => wrong.push(format!("{question} is {}", short(other))),
            None if !told => wrong.push(format!("{} is not there", short(question))),
            _ => {}
        }
    }
    let unknown = found.iter().filter(|(question, answer)| answer.is_ok() && !truth.contains_key(*question));
    wrong.extend(unknown.map(|(question, _)| format!("{} was never written", short(question))));
    wrong
}

/// The tables whose rows have checksums, and which of their columns these tell of. What finds a row is left alone: a value
/// that is changed by a statement is found by indexes as it is then.
fn places() -> Vec<(&'static str, Vec<Column>)> {
    let of = |name, columns: &'static [Column], key: &[&str], sums: &'static [baton_store::codec::Sum]| {
        let summed = |column: &&Column| sums.iter().any(|sum| sum.of.contains(&column.name));
        let columns = columns.iter().filter(|column| sums.is_empty() || summed(column));
        (name, columns.filter(|column| !key.contains(&column.name)).copied().collect())
    };
    let mut all: Vec<(&str, Vec<Column>)> = Table::ALL
        .into_iter()
        .filter(|table| !table.sums().is_empty())
        .map(|table| of(table.name(), table.columns(), table.key(), table.sums()))
        .collect();
    all.push(of(StoredRecord::TABLE, StoredRecord::COLUMNS, &["run", "seq"], &[]));
    all.push(of(SpendingRow::TABLE, SpendingRow::COLUMNS, SpendingRow::KEY, SpendingRow::SUMS));
    all.push(("blobs", vec![Column { name: "bytes", kind: Kind::Bytes }]));
    all
}

/// Another value, as SQL.
fn other(kind: Kind, value: &str, numbers: &mut Numbers) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match kind {
        // Some of them have two bytes.
        Kind::Integer => (value.parse::<i64>().unwrap() ^ (1 << numbers.below(14))).to_string(),
        Kind::Flag => (value != "t").to_string(),
        Kind::Bytes => {
            let mut digits: Vec<char> = value.chars().collect();
            // Behind `\x`.
            let at = 2 + numbers.below(digits.len() - 2);
            digits[at] = if digits[at] == '0' { '8' } else { '0' };
            quoted(&digits.into_iter().collect::<String>())
        }
        Kind::Text | Kind::Name => {
            let mut letters: Vec<char> = value.chars().collect();
            match letters.len() {
                0 => letters.push('x'),
                length => {
                    let at = numbers.below(length);
                    letters[at] = if letters[at] == 'x' { 'y' } else { 'x' };
                }
            }
            quoted(&letters.into_iter().collect::<String>())
        }
        Kind::Texts => "ARRAY['x']::TEXT[]".to_owned(),
    }
}

#[tokio::test]
async fn campaign() {
    let Some(database) = Database::fresh().await else { return };
    let settings = Settings::new(database.url.clone());
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (cases, seed) = (number("BATON_DAMAGE_CASES").unwrap_or(CASES), number("BATON_SEED").unwrap_or(SEED));
    let store = PostgresStore::open(&settings).await.unwrap();
    fill(&store).await;
    let truth = everything_of(&store).await;
    assert!(truth.len() > 60 && truth.values().all(Result::is_ok), "{}: {truth:#?}", truth.len());
    assert_eq!(PostgresStore::check(&settings).await.unwrap().problems, Vec::<String>::new());

    let places = places();
    let (mut noticed, mut tried) = (0, 0);
    for case in 0..cases {
        let mut numbers = Numbers(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let (table, columns) = &places[numbers.below(places.len())];
        let Column { name, kind } = columns[numbers.below(columns.len())];
        let values = format!("SELECT ctid, {name} FROM {table} WHERE {name} IS NOT NULL ORDER BY ctid");
        let found = rows(&database.url, &values).await;
        if found.is_empty() {
            continue;
        }
        let (place, value) = (&found[numbers.below(found.len())][0], &found[numbers.below(found.len())][1]);
        let value = found.iter().find(|row| row[0] == *place).map_or(value, |row| &row[1]);
        let new = other(kind, value, &mut numbers);
        let case = format!("seed {seed}, case {case}: {name} of {table} at {place}, {value:.80} is {new:.80}");
        let spoil = format!("UPDATE {table} SET {name} = {new} WHERE ctid = '{place}' RETURNING ctid");
        let moved = rows(&database.url, &spoil).await;
        let [moved] = moved.as_slice() else { panic!("{case}: {moved:?}") };
        tried += 1;

        let sound = PostgresStore::check(&settings).await.unwrap().problems.is_empty();
        let now = everything_of(&store).await;
        let wrong = silent(&truth, &now, sound);
        assert!(wrong.is_empty(), "{case}: served silently: {wrong:#?}");
        assert!(now.values().all(Result::is_ok) || !sound, "{case}: noticed on read, and no check finds it");
        noticed += u64::from(!sound);

        let old = match kind {
            Kind::Integer => value.clone(),
            _ => format!("'{}'", value.replace('\'', "''")),
        };
        let mend = format!("UPDATE {table} SET {name} = {old} WHERE ctid = '{}' RETURNING 1", moved[0]);
        assert_eq!(rows(&database.url, &mend).await.len(), 1, "{case}");
    }
    eprintln!("{tried} values changed, {noticed} noticed by a check");
    assert_eq!(noticed, tried, "every changed value has a checksum");
    assert_eq!(PostgresStore::check(&settings).await.unwrap().problems, Vec::<String>::new(), "all is mended");
    store.close().await;
}
