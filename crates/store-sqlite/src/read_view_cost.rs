//! What looking and forgetting cost, counted in steps of SQLite's machine: the same number for a short versioned store and a long one.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{RunId, TenantId, Timestamp};
use baton_store::{Change, Item, Meta, ReadView, VersionedStoreId};
use rusqlite::Connection;

use crate::cache::Places;
use crate::open;
use crate::read_view::{count, item, items};
use crate::versioned::{Grown, VersionedStores};

const SHORT: u64 = 1_000;
const LONG: u64 = 6_000;

/// Files are what is written over and over.
fn notes() -> VersionedStoreId {
    VersionedStoreId::workspace(&TenantId::new("acme"), "notes")
}

fn change(version: u64, key: String, run: Option<&str>) -> Change {
    let item = Item { content: "text".to_owned(), expires_at: None, meta: Meta::default() };
    Change { version, key, at: Timestamp::from_micros(1), run: run.map(RunId::new), item: Some(item) }
}

/// A versioned store of `length` changes.
fn ledger(length: u64, make: impl Fn(u64) -> Change) -> Connection {
    ledger_of(&notes(), length, make)
}

fn ledger_of(id: &VersionedStoreId, length: u64, make: impl Fn(u64) -> Change) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    open::migrate(&mut connection).unwrap();
    let (mut places, mut grown) = (Places::default(), Grown::default());
    let mut ledgers = VersionedStores { connection: &connection, places: &mut places.ledgers, grown: &mut grown };
    for version in 1..=length {
        ledgers.append(id, &make(version)).unwrap();
    }
    grown.write(&connection).unwrap();
    connection
}

/// What `ask` answers, and how many steps that took.
fn steps<T>(connection: &mut Connection, ask: impl Fn(&Connection) -> rusqlite::Result<T>) -> (T, u64) {
    let taken = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&taken);
    let count_one = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        false
    };
    connection.progress_handler(1, Some(count_one)).unwrap();
    let answer = ask(connection).unwrap();
    connection.progress_handler(1, None::<fn() -> bool>).unwrap();
    (answer, taken.load(Ordering::Relaxed))
}

fn same_cost(make: impl Fn(u64) -> Change, lens: impl Fn(u64) -> ReadView, shows: usize) {
    let view = |length| {
        let (found, taken) = steps(&mut ledger(length, &make), |c| items(c, &notes(), &lens(length)));
        assert_eq!(found.len(), shows);
        taken
    };
    let (short, long) = (view(SHORT), view(LONG));
    assert!(long <= short + short / 20, "{short} steps became {long}");
}

fn limited(version: u64) -> ReadView {
    ReadView { limit: Some(10), ..ReadView::at(version, Timestamp::from_micros(9)) }
}

#[test]
fn looking_back_at_memory_does_not_walk_over_what_came_later() {
    let memory = VersionedStoreId::memory(&TenantId::new("acme"), "notes");
    let view = |length| {
        let mut connection = ledger_of(&memory, length, |n| change(n, format!("m{n}"), None));
        let lens = ReadView { limit: None, ..limited(100) };
        let (found, taken) = steps(&mut connection, |c| items(c, &memory, &lens));
        assert_eq!(found.len(), 100);
        taken
    };
    let (short, long) = (view(SHORT), view(LONG));
    assert!(long <= short + short / 20, "{short} steps became {long}");
}

#[test]
fn the_newest_of_many_keys() {
    same_cost(|n| change(n, format!("k{n}"), None), limited, 10);
    same_cost(|n| change(n, format!("k{n}"), None), |length| limited(length / 2), 10);
}

#[test]
fn the_newest_of_few_keys_that_were_written_often() {
    same_cost(|n| change(n, format!("k{}", n % 7), None), limited, 7);
    same_cost(|n| change(n, format!("k{}", n % 7), None), |length| limited(length / 2), 7);
    same_cost(|n| change(n, format!("k{}", n % 7), None), |length| ReadView { limit: None, ..limited(length) }, 7);
}

#[test]
fn few_keys_under_a_prefix() {
    let make = |n: u64| if n <= 20 { change(n, format!("a/{n}"), None) } else { change(n, format!("b/{n}"), None) };
    let prefix = |prefix: &str, version| ReadView { prefix: Some(prefix.to_owned()), ..limited(version) };
    same_cost(make, |length| prefix("a/", length), 10);
    same_cost(make, |length| prefix("b/", length), 10);
    same_cost(make, |length| ReadView { limit: None, ..prefix("a/", length) }, 20);
}

#[test]
fn own_writes_after_an_old_version() {
    // Others go on writing while the run stays with what it saw at first.
    let make = |n: u64| {
        let run = if n > 300 && n < 320 { "run_own" } else { "run_other" };
        change(n, format!("k{}", n % 50), Some(run))
    };
    let own = |length| ReadView { own: Some((RunId::new("run_own"), length)), ..limited(200) };
    same_cost(make, own, 10);
    same_cost(make, |length| ReadView { limit: Some(30), ..own(length) }, 30);
    let one = |length| {
        let (found, taken) = steps(&mut ledger(length, make), |c| item(c, &notes(), "k30", &own(length)));
        assert_eq!(found.map(|change| change.version), Some(180), "not among its own");
        taken
    };
    assert_eq!(one(LONG), one(SHORT));
}

#[test]
fn one_key_and_a_count_of_few() {
    let make = |n: u64| change(n, format!("k{}", n % 7), None);
    let cost = |length| {
        let mut connection = ledger(length, make);
        let (found, one) = steps(&mut connection, |c| item(c, &notes(), "k3", &limited(length)));
        let (seven, counted) = steps(&mut connection, |c| count(c, &notes(), &limited(length)));
        assert!(found.is_some() && seven == 7);
        one + counted
    };
    assert_eq!(cost(LONG), cost(SHORT));
}

#[test]
fn forgetting_what_was_written_since_the_last_time() {
    let cost = |length| {
        let mut connection = ledger(length, |n| change(n, format!("k{}", n % (length - 20)), None));
        steps(&mut connection, |c| forget(c, length - 10));
        let ((), taken) = steps(&mut connection, |c| forget(c, length));
        let left: i64 = connection.query_row("SELECT count(*) FROM changes", [], |row| row.get(0)).unwrap();
        assert_eq!(left, length.cast_signed() - 20, "one change of each key");
        taken
    };
    assert_eq!(cost(LONG), cost(SHORT));
}

fn forget(connection: &Connection, below: u64) -> rusqlite::Result<()> {
    let (mut places, mut grown) = (Places::default(), Grown::default());
    VersionedStores { connection, places: &mut places.ledgers, grown: &mut grown }.forget_history(&notes(), below)
}
