//! What rows look like in the file, column by column. A directory of one version is opened by the next, so nothing of this
//! changes; a new column adds to it.

use std::fmt::Write as _;

use baton_store::Journal as _;
use baton_store::conformance::everything;
use baton_store_sqlite::SqliteStore;
use rusqlite::Connection;

use crate::common::submit;

/// Every column of every row that is not empty, as SQLite writes literals.
fn dump(connection: &Connection) -> String {
    let mut all = String::new();
    for table in everything::TABLES {
        let columns = connection.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let names: Vec<String> = columns.column_names().map(str::to_owned).collect();
        let quoted: Vec<String> = names.iter().map(|name| format!("quote({name})")).collect();
        let sql = format!("SELECT {} FROM {table} ORDER BY {}", quoted.join(", "), names.join(", "));
        let mut rows = connection.prepare(&sql).unwrap();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            writeln!(all, "{table}").unwrap();
            for (index, name) in names.iter().enumerate() {
                let value: String = row.get(index).unwrap();
                if value != "NULL" {
                    writeln!(all, "  {name} = {}", value.escape_debug()).unwrap();
                }
            }
        }
    }
    all
}

#[tokio::test]
async fn rows_look_as_they_always_did() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    for commit in everything::commits() {
        submit(&store, commit).await.unwrap();
    }
    store.close().await;
    let found = dump(&Connection::open(dir.path().join("baton.db")).unwrap());
    // Only for new columns: what was there stays.
    if std::env::var_os("BATON_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/layout.txt"), &found).unwrap();
    }
    let expected = include_str!("layout.txt");
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "line {} of layout.txt", line + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
