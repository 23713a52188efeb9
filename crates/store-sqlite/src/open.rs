//! Opening the file: directory, pragmas, migrations.

use std::fs::DirBuilder;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_store::Error;
use rusqlite::{Connection, OpenFlags};

use crate::error::{io_error, read_error};

mod embedded {
    refinery::embed_migrations!("migrations");
}

const FILE_NAME: &str = "baton.db";
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// More than there are statements, so that each is compiled once per connection.
const STATEMENTS: usize = 64;

pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

/// Makes the directory if it is not there. It holds webhook secrets, so a new one is for its owner only.
pub(crate) fn make_dir(dir: &Path) -> Result<(), Error> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| io_error(&format!("cannot create {}", dir.display()), error))
}

/// The one connection that writes.
///
/// `synchronous=FULL` is what makes an acknowledged commit survive power loss. The WAL may grow to 32 MB before it is
/// folded back: at the default of 4 MB the writer would spend a good part of its time on that.
pub(crate) fn writer(path: &Path) -> Result<Connection, Error> {
    let connection = Connection::open(path).map_err(read_error)?;
    configure(&connection).map_err(read_error)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(read_error)?;
    if mode != "wal" {
        let reason = format!("{} cannot use a write-ahead log (is it on a network file system?)", path.display());
        return Err(Error::Unavailable { reason, source: None });
    }
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL;
             PRAGMA wal_autocheckpoint = 8000;
             PRAGMA journal_size_limit = 67108864;
             PRAGMA cache_size = -8192;
             PRAGMA foreign_keys = ON;",
        )
        .map_err(read_error)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn reader(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(read_error)?;
    configure(&connection).map_err(read_error)?;
    connection.execute_batch("PRAGMA cache_size = -2048;").map_err(read_error)?;
    Ok(connection)
}

fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch("PRAGMA temp_store = MEMORY;")
}

pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    use refinery::error::Kind;
    let report = embedded::migrations::runner().run(connection).map_err(|error| match error.kind() {
        Kind::DivergentVersion(..) | Kind::MissingVersion(..) => {
            Error::Corrupt { reason: format!("the data was written by another version of Baton: {error}") }
        }
        _ => Error::Unavailable { reason: format!("cannot migrate: {error}"), source: Some(Box::new(error)) },
    })?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::{RunId, TenantId, Versions};
    use baton_store::reads::*;
    use baton_store::{Change, Commit, Item, Journal as _, Meta, ReadView, RunRow, VersionedStoreId, Write};
    use refinery::Target;

    use super::*;
    use crate::SqliteStore;

    #[tokio::test]
    async fn a_file_of_the_first_version_opens_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut old = writer(&file(dir.path())).unwrap();
        embedded::migrations::runner().set_target(Target::Version(1)).run(&mut old).unwrap();
        let run = "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, \
                   root, scope, tags) VALUES (?1, 'acme', 'echo', ?4, 'running', 1, 1, 1, 1, ?2, ?3, '[]')";
        let event = "INSERT INTO events (run, seq, at, kind, body) VALUES (?1, 0, 1, 'run.started', '{}')";
        let digest = baton_model::Digest::of_bytes("echo");
        let runs = [("run_a", None, Some("chat")), ("run_b", Some("run_top"), None), ("run_c", None, None)];
        for (number, (id, root, scope)) in (1..).zip(runs) {
            old.execute(run, rusqlite::params![id, root, scope, digest.as_str()]).unwrap();
            old.execute(event, [number]).unwrap();
        }
        drop(old);
        assert!(SqliteStore::check(dir.path()).unwrap().is_sound(), "can be checked before it is opened");

        let store = SqliteStore::open(dir.path()).unwrap();
        let tenant = TenantId::new("acme");
        for (id, memory_scope) in [("run_a", "chat"), ("run_b", "run_top"), ("run_c", "run_c")] {
            let row = store.run(&RunId::new(id)).await.unwrap().unwrap();
            assert_eq!((row.memory_scope.as_str(), row.pruned), (memory_scope, None));
            let records = store.records(&row.id, 0, 9).await.unwrap();
            assert_eq!(records.iter().map(|record| record.versions).collect::<Vec<_>>(), [Versions::default()]);
            let ledger = VersionedStoreId::memory(&tenant, memory_scope);
            assert_eq!(store.versioned_floor(&ledger).await.unwrap(), Some(0));
            let item = Some(Item { content: "text".to_owned(), expires_at: None, meta: Meta::default() });
            let change = Change { version: 1, key: "k".to_owned(), at: row.updated_at, run: None, item };
            let versions = Versions { memory: 1, workspace: 0 };
            let append = Write::Append {
                row: RunRow { next_seq: 2, ..row },
                expected: 1,
                records: vec![baton_store::StoredRecord { seq: 1, versions, ..records[0].clone() }],
            };
            let writes = vec![append, Write::Change { ledger: ledger.clone(), change }];
            store.submit(Commit::new(1, writes)).await.unwrap();
            let newer = store.records(&RunId::new(id), 1, 9).await.unwrap();
            assert_eq!(newer[0].versions, versions);
            let lens = ReadView { version: newer[0].versions.memory, ..ReadView::default() };
            assert_eq!(store.versioned_count(&ledger, &lens).await.unwrap(), 1);
        }
        let report = SqliteStore::check(dir.path()).unwrap();
        assert!(report.is_sound() && report.events == 6 && report.changes == 3, "{report:?}");
    }
}
