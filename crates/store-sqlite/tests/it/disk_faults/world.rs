//! A store on a disk that can fail, and what it was told. Every commit leaves traces in three places, so that half of one
//! can be told from all of it.

use std::path::Path;

use baton_faulty_disk::{Disk, VFS};
use baton_model::RunId;
use baton_store::conformance::sample::{notes, put, record, row, submit};
use baton_store::reads::*;
use baton_store::{
    CommitError, CommitReceipt, Error, Item, Journal as _, LogChain, ReadView, RunRow, StoredRecord, Write,
};
use baton_store_sqlite::{SqliteOptions, SqliteStore};
use parking_lot::Mutex;

/// Commits go to these in turn.
pub(super) const RUNS: u64 = 3;

pub(super) fn run(number: u64) -> String {
    format!("run_{number}")
}

/// What commit `number` writes, if all before it are there: a record to one of the runs, a change to the memory they
/// share, and a file of this size. Its run's log ends like this before it, and like what comes back after it.
pub(super) fn writes(number: u64, size: usize, before: LogChain) -> (Vec<Write>, LogChain) {
    let (id, expected) = (run(number % RUNS), number / RUNS);
    // As large as a file of this commit would be, and different in each.
    let body = format!("{{\"commit\":{number},\"filler\":\"{}\"}}", format!("{number:08}").repeat(size / 8));
    let mut records = vec![StoredRecord { body, ..record(expected) }];
    let mut row = RunRow { next_seq: expected + 1, chain: before, ..row(&id) };
    let change = put(number + 1, &format!("key-{}", number % 7));
    let item = change.item.map(|item| Item { content: number.to_string(), ..item });
    let create = (expected == 0).then(|| Write::CreateRun(RunRow { next_seq: 0, ..row.clone() }));
    row.seal(&mut records);
    let after = row.chain;
    let append = Write::Append { row, expected, records };
    let change = Write::Change { ledger: notes(), change: baton_store::Change { item, ..change } };
    (create.into_iter().chain([append, change]).collect(), after)
}

/// So many seeds, unless the environment says otherwise.
pub(super) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("TEST_SEED").unwrap_or(1);
    first..first + number("BATON_FAULT_SEEDS").unwrap_or(usual)
}

pub(super) fn open(dir: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open_on(dir, SqliteOptions::default(), VFS)
}

/// How many commits are there, every one of them whole. What is wrong otherwise.
pub(super) async fn whole_commits(store: &SqliteStore) -> Result<u64, String> {
    let told = |error: Error| format!("it does not read: {error}");
    let count = store.versioned_head(&notes()).await.map_err(told)?;
    for number in 0..RUNS {
        let id = RunId::new(run(number));
        let expected = (count + RUNS - 1 - number) / RUNS;
        let row = store.run(&id).await.map_err(told)?;
        if row.as_ref().map_or(0, |row| row.next_seq) != expected {
            return Err(format!("{count} changes, and {id} is {row:?}"));
        }
        let records = store.records(&id, 0, usize::MAX).await.map_err(told)?;
        if records.len() as u64 != expected {
            return Err(format!("{id} has {} of {expected} records", records.len()));
        }
        for (seq, record) in (0..).zip(&records) {
            let commit = seq * RUNS + number;
            let size = record.body.len();
            let written = writes(commit, filler(size), LogChain::default()).0;
            let Write::Append { records: written, .. } = &written[usize::from(seq == 0)] else {
                return Err("not what a commit is".to_owned());
            };
            // Its checksum was compared when it was read.
            if *record != (StoredRecord { sum: record.sum, ..written[0].clone() }) || record.sum.is_none() {
                return Err(format!("record {seq} of {id} is {record:?}"));
            }
        }
    }
    let history =
        store.versioned_count(&notes(), &ReadView { version: count, ..ReadView::default() }).await.map_err(told)?;
    if history as u64 != count.min(7) {
        return Err(format!("{history} entries after {count} changes"));
    }
    Ok(count)
}

/// How large the filler of a body is.
fn filler(body: usize) -> usize {
    body.saturating_sub("{\"commit\":,\"filler\":\"\"}".len()) / 8 * 8
}

/// What is left of a power loss, opened on a healthy disk.
pub(super) async fn after_power_loss(disk: &Disk, seed: u64) -> Result<(u64, tempfile::TempDir), String> {
    let left = tempfile::tempdir().unwrap();
    disk.power_loss(seed, left.path()).unwrap();
    let count = reopened(left.path()).await?;
    Ok((count, left))
}

/// The same where there may be no database yet, or one without tables.
pub(super) async fn reopened_or_empty(dir: &Path) -> Result<u64, String> {
    let healthy = Disk::of(dir, 0);
    drop(open(dir).map_err(|error| format!("it does not open: {error}"))?);
    drop(healthy);
    reopened(dir).await
}

/// Opens a folder on a healthy disk: what is in it is whole, and it takes more.
pub(super) async fn reopened(dir: &Path) -> Result<u64, String> {
    // One that nothing is really synced to, so that a test may do this often.
    let _healthy = Disk::of(dir, 0);
    let report = SqliteStore::check(dir).map_err(|error| format!("it cannot be checked: {error}"))?;
    if !report.is_sound() {
        return Err(format!("{report:?}"));
    }
    let store = open(dir).map_err(|error| format!("it does not open: {error}"))?;
    let count = whole_commits(&store).await?;
    let next = writes(count, 8, ends(&store).await?[(count % RUNS) as usize]).0;
    submit(&store, next).await.map_err(|error| format!("it takes nothing more: {error}"))?;
    let after = whole_commits(&store).await?;
    store.close().await;
    if after == count + 1 { Ok(count) } else { Err(format!("{after} after {count} and one more")) }
}

/// How the logs of all runs end.
async fn ends(store: &SqliteStore) -> Result<Vec<LogChain>, String> {
    let mut all = Vec::new();
    for number in 0..RUNS {
        let row = store.run(&RunId::new(run(number))).await.map_err(|error| format!("it does not read: {error}"))?;
        all.push(row.map(|row| row.chain).unwrap_or_default());
    }
    Ok(all)
}

pub(super) struct World {
    pub(super) disk: Disk,
    pub(super) store: SqliteStore,
    pub(super) dir: tempfile::TempDir,
    /// Commits that are there for certain, and the next one's number.
    pub(super) acknowledged: u64,
    /// Failed commits that were there all the same afterwards.
    pub(super) there_after_all: u64,
    /// How the logs of all runs end, with what was submitted.
    ends: Mutex<Vec<LogChain>>,
}

impl World {
    /// With a few commits in it.
    pub(super) async fn new(seed: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::of(dir.path(), seed);
        let store = open(dir.path()).unwrap();
        let ends = Mutex::new(ends(&store).await.unwrap());
        let mut world = Self { disk, store, dir, acknowledged: 0, there_after_all: 0, ends };
        for _ in 0..RUNS {
            world.commit(100).await.unwrap();
        }
        world
    }

    pub(super) fn submit(&self, number: u64, size: usize) -> CommitReceipt {
        let end = &mut self.ends.lock()[(number % RUNS) as usize];
        let (writes, after) = writes(number, size, *end);
        *end = after;
        submit(&self.store, writes)
    }

    /// The next commit, waited for.
    pub(super) async fn commit(&mut self, size: usize) -> Result<(), CommitError> {
        self.submit(self.acknowledged, size).await?;
        self.acknowledged += 1;
        Ok(())
    }

    /// Goes on after a failure, in this process, of which `attempted` commits might be there.
    pub(super) async fn recover(&mut self, attempted: u64) -> Result<(), String> {
        self.store.recover().await.map_err(|error| error.to_string())?;
        let count = whole_commits(&self.store).await?;
        if !(self.acknowledged..=attempted).contains(&count) {
            return Err(format!("{count} are there of {} acknowledged", self.acknowledged));
        }
        *self.ends.lock() = ends(&self.store).await?;
        self.there_after_all += count - self.acknowledged;
        self.acknowledged = count;
        Ok(())
    }
}
