//! What pruning costs, counted in steps of SQLite's machine: as much for the last run of many as for the first.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{Digest, RunId, Timestamp};
use baton_store::{Commit, Pruned, Write};
use rusqlite::{Connection, params};

use crate::cache::Places;
use crate::query::{list, one};
use crate::transact::{Verdict, transact};
use crate::{open, rows, runs};

/// Ended runs of one tenant with three records each, all of which may look back into its workspace.
fn filled(count: u64) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    open::migrate(&mut connection).unwrap();
    let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
        INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, tags,
            first_memory, first_workspace)
        SELECT printf('run_%06d', n), 'acme', 'w', ?2, 'completed', n, n, 3, 0, '[]', 0, n FROM n";
    connection.execute(fill, params![count.cast_signed(), Digest::of_bytes("w").as_str()]).unwrap();
    let events = "INSERT INTO events (run, seq, at, kind, body)
        SELECT run, seq.value, 1, 'node.started', '{}' FROM runs, json_each('[0, 1, 2]') seq";
    connection.execute(events, []).unwrap();
    connection
}

struct Counter(Arc<AtomicU64>);

impl Counter {
    fn on(connection: &mut Connection) -> Self {
        let taken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&taken);
        let count_one = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count_one)).unwrap();
        Self(taken)
    }

    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

/// What the host does for some runs: finds them, marks them, asks how far anybody still looks back.
fn prune(connection: &Connection, places: &mut Places, numbers: std::ops::Range<u64>) {
    let found = list(connection, runs::KEPT_TREES, params!["acme", i64::MAX, i64::MAX, 50], |row| {
        rows::fields(row, baton_store::codec::kept_tree)
    });
    assert!(!found.unwrap().is_empty());
    let marks = numbers.clone().map(|number| {
        let pruned = Pruned { at: Timestamp::from_micros(1), log: true };
        Write::Prune { run: RunId::new(format!("run_{number:06}")), pruned }
    });
    let commit = Commit::new(1, marks.collect());
    let outcome = transact(connection, places, std::slice::from_ref(&commit));
    assert!(outcome.verdicts.iter().all(|verdict| matches!(verdict, Verdict::Written)));
    let floor = one(connection, runs::WORKSPACE_FLOOR, ["acme", "default"], rows::maybe_count).unwrap().flatten();
    assert_eq!(floor, Some(numbers.end), "the oldest that is left");
}

#[test]
fn pruning_twenty_thousand_runs_costs_the_same_for_each() {
    const RUNS: u64 = 20_000;
    const AT_ONCE: u64 = 50;
    let mut connection = filled(RUNS + 1);
    let counter = Counter::on(&mut connection);
    let mut places = Places::default();
    let mut costs = Vec::new();
    for first in (1..=RUNS).step_by(AT_ONCE as usize) {
        prune(&connection, &mut places, first..first + AT_ONCE);
        costs.push(counter.take());
    }
    let (least, most) = (costs.iter().min().unwrap(), costs.iter().max().unwrap());
    assert!(*most <= least * 2, "between {least} and {most} steps for {AT_ONCE} runs");
    assert!(*most <= 400 * AT_ONCE, "{most} steps for {AT_ONCE} runs");
    let left: u64 = connection.query_row("SELECT count(*) FROM events", [], rows::count).unwrap();
    assert_eq!(left, 3, "of the one that was not pruned");
}
