//! Whatever is written and whichever way it is looked at, the index shows what the definition of a view says.

use std::cell::Cell;

use baton_model::{RunId, TenantId, Timestamp};
use baton_store::reads::*;
use baton_store::{Change, Commit, Item, Journal, MemoryStore, Meta, ReadView, Store, VersionedStoreId, Write};
use baton_store_sqlite::SqliteStore;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseResult, TestRunner};

const KEYS: [&str; 9] = ["a", "a/1", "a/2", "a/\u{10FFFF}z", "b", "B", "", "a\0b", "ü/1"];
const PREFIXES: [&str; 8] = ["", "a", "a/", "a/\u{10FFFF}", "b", "ü", "\u{10FFFF}", "none"];
const TAGS: [&str; 6] = ["n\0l", "red", "redder", "ü\"%", "1", "null"];
const RUNS: [&str; 3] = ["run_a", "run_b", "run_c"];
/// Enough that a view with a small limit has to look behind what was replaced.
const MOST: u64 = 200;

fn instant() -> impl Strategy<Value = Timestamp> {
    (0..6i64).prop_map(Timestamp::from_micros)
}

fn pick(from: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(from)
}

fn item() -> impl Strategy<Value = Item> {
    let meta = prop::sample::subsequence(TAGS.to_vec(), 0..3)
        .prop_map(|tags| Meta { tags: tags.into_iter().map(str::to_owned).collect(), ..Meta::default() });
    (".{0,4}", prop::option::weighted(0.3, instant()), meta).prop_map(|(content, expires_at, meta)| Item {
        content,
        expires_at,
        meta,
    })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = (pick(&KEYS), instant(), prop::option::of(pick(&RUNS)), prop::option::weighted(0.8, item()));
    prop::collection::vec(change, 0..MOST as usize).prop_map(|changes| {
        (1..)
            .zip(changes)
            .map(|(version, (key, at, run, item))| Change {
                version,
                key: key.to_owned(),
                at,
                run: run.map(RunId::new),
                item,
            })
            .collect()
    })
}

fn lens() -> impl Strategy<Value = ReadView> {
    let version = || 0..MOST + 5;
    (
        version(),
        prop::option::of((pick(&RUNS).prop_map(RunId::new), version())),
        prop::option::of(instant()),
        prop::option::weighted(0.3, pick(&TAGS).prop_map(str::to_owned)),
        prop::option::weighted(0.3, pick(&PREFIXES).prop_map(str::to_owned)),
        prop::option::weighted(0.3, 0..MOST + 5),
        prop::option::weighted(0.7, 0..12usize),
        any::<bool>(),
    )
        .prop_map(|(version, own, at, tag, prefix, before, limit, bare)| ReadView {
            version,
            own,
            at,
            tag,
            prefix,
            before,
            limit,
            bare,
        })
}

async fn write(store: &impl Store, writes: Vec<Write>) {
    store.submit(Commit::new(store.generation(), writes)).await.unwrap();
}

/// Asks in every way there is and compares with the definition.
async fn agrees(store: &impl Store, ledger: &VersionedStoreId, lens: &ReadView, all: &[Change]) -> TestCaseResult {
    let items = store.versioned_items(ledger, lens).await.unwrap();
    prop_assert_eq!(&items, &lens.view(all), "{:?}", lens);
    let unlimited = ReadView { limit: None, ..lens.clone() };
    let every = unlimited.view(all);
    prop_assert_eq!(store.versioned_count(ledger, lens).await.unwrap(), every.len() as u64, "{:?}", lens);
    for key in KEYS {
        let expected = every.iter().find(|change| change.key == key);
        let found = store.versioned_item(ledger, key, lens).await.unwrap();
        prop_assert_eq!(found.as_ref(), expected, "{:?} of {:?}", key, lens);
    }
    Ok(())
}

/// Both stores, and a runtime to ask them with. A versioned store for each case lies beside those of the others, which must not
/// show.
struct Stores {
    dir: tempfile::TempDir,
    sqlite: SqliteStore,
    memory: MemoryStore,
    runtime: tokio::runtime::Runtime,
    cases: Cell<u64>,
}

impl Stores {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            sqlite: SqliteStore::open(dir.path()).unwrap(),
            memory: MemoryStore::new(),
            runtime: tokio::runtime::Builder::new_current_thread().build().unwrap(),
            cases: Cell::new(0),
            dir,
        }
    }

    /// Tries many cases, each with a versioned store of its own.
    fn check<S: Strategy>(&self, case: S, holds: impl AsyncFn(&VersionedStoreId, S::Value) -> TestCaseResult) {
        let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
        let result = runner.run(&case, |case| {
            self.cases.set(self.cases.get() + 1);
            let ledger = VersionedStoreId::memory(&TenantId::new("acme"), self.cases.get().to_string());
            self.runtime.block_on(holds(&ledger, case))
        });
        result.map_err(|error| error.to_string()).unwrap();
        self.runtime.block_on(self.sqlite.close());
        assert!(SqliteStore::check(self.dir.path()).unwrap().is_sound());
    }

    async fn write(&self, writes: Vec<Write>) {
        write(&self.sqlite, writes.clone()).await;
        write(&self.memory, writes).await;
    }
}

fn appends(ledger: &VersionedStoreId, changes: &[Change]) -> Vec<Write> {
    changes.iter().map(|change| Write::Change { ledger: ledger.clone(), change: change.clone() }).collect()
}

#[test]
fn views_by_index_are_what_the_definition_says() {
    let stores = Stores::new();
    stores.check((changes(), prop::collection::vec(lens(), 1..6)), async |ledger, (all, lenses)| {
        stores.write(appends(ledger, &all)).await;
        for lens in &lenses {
            agrees(&stores.sqlite, ledger, lens, &all).await?;
            agrees(&stores.memory, ledger, lens, &all).await?;
        }
        Ok(())
    });
}

#[test]
fn forgetting_shows_only_to_those_who_look_further_back() {
    let stores = Stores::new();
    let lines = prop::collection::vec(0..MOST, 1..5);
    stores.check((changes(), lines, prop::collection::vec(lens(), 1..4)), async |ledger, (all, lines, lenses)| {
        let every = all.len().div_ceil(lines.len()).max(1);
        let mut written = 0;
        for (part, below) in all.chunks(every).zip(&lines) {
            stores.write(appends(ledger, part)).await;
            written += part.len();
            stores.write(vec![Write::ForgetHistory { ledger: ledger.clone(), below: *below }]).await;
            let kept = stores.sqlite.versioned_changes(ledger, None, None, usize::MAX).await.unwrap();
            prop_assert_eq!(&kept, &stores.memory.versioned_changes(ledger, None, None, usize::MAX).await.unwrap());
            for mut lens in lenses.clone() {
                lens.version = lens.version.max(lines.iter().copied().max().unwrap_or(0));
                agrees(&stores.sqlite, ledger, &lens, &all[..written]).await?;
            }
        }
        Ok(())
    });
}
