use std::cell::Cell;

use baton_store::conformance;
use baton_store_sqlite::SqliteStore;

#[tokio::test]
async fn passes_the_conformance_suite() {
    let dir = tempfile::tempdir().unwrap();
    let count = Cell::new(0);
    conformance::all(async || {
        count.set(count.get() + 1);
        SqliteStore::open(&dir.path().join(count.get().to_string())).unwrap()
    })
    .await;
    assert!(count.get() > 20, "every check has a store of its own");
    for n in 1..=count.get() {
        let report = SqliteStore::check(&dir.path().join(n.to_string())).unwrap();
        assert!(report.is_sound(), "{report:?}");
    }
}
