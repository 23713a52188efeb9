//! Opening the file: directory, pragmas, migrations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_store::Error;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::{io_error, read_error};
use crate::{files, permissions};

mod embedded {
    refinery::embed_migrations!("migrations");
}

const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// More than there are statements, so that each is compiled once per connection.
const STATEMENTS: usize = 64;

/// The database, and how it is reached.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) path: PathBuf,
    /// A file system of SQLite, by its name: one that fails, for tests. The usual one if absent.
    pub(crate) vfs: Option<&'static str>,
}

impl Database {
    pub(crate) fn of(dir: &Path) -> Self {
        Self { path: file(dir), vfs: None }
    }

    fn open(&self, flags: OpenFlags) -> rusqlite::Result<Connection> {
        match self.vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.path, flags, vfs),
            None => Connection::open_with_flags(&self.path, flags),
        }
    }
}

pub(crate) fn file(dir: &Path) -> PathBuf {
    dir.join(files::DATABASE)
}

/// The one connection that writes. What the log holds stays there when it is closed, until [`fold_on_close`] says otherwise.
///
/// `synchronous=FULL` is what makes an acknowledged commit survive power loss. The WAL may grow to 32 MB before it is
/// folded back: at the default of 4 MB the writer would spend a good part of its time on that.
pub(crate) fn writer(database: &Database) -> Result<Connection, Error> {
    let path = &database.path;
    permissions::create_private(path).map_err(|error| io_error(&format!("cannot create {}", path.display()), error))?;
    let connection = database.open(OpenFlags::default()).map_err(read_error)?;
    // Whoever finds that something is missing leaves everything as it is, also what SQLite makes nothing of.
    fold_on_close(&connection, false)?;
    configure(&connection).map_err(read_error)?;
    // Before the first page of a new file: only then does it have a map of its pages, by which it can become smaller. An
    // old file stays as it is: to say it again would write to it.
    let pages: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).map_err(read_error)?;
    if pages == 0 {
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL;").map_err(read_error)?;
    }
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

/// Whether the log is folded back and removed when the connection is closed.
pub(crate) fn fold_on_close(connection: &Connection, fold: bool) -> Result<(), Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !fold).map(|_set| ()).map_err(read_error)
}

/// Moves what the log holds into the file, and syncs it there.
///
/// A sync that failed may have left parts of the log only in the memory of the system, which takes them for written and
/// never tries again. Whoever added to such a log would build on what a power loss takes away. Written to another place,
/// it is synced like anything new.
pub(crate) fn fold_log(connection: &Connection) -> Result<(), Error> {
    let busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).map_err(read_error)?;
    if busy {
        let reason = "the write-ahead log cannot be folded back while somebody reads it".to_owned();
        return Err(Error::Unavailable { reason, source: None });
    }
    Ok(())
}

/// A connection that cannot write.
pub(crate) fn reader(database: &Database) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = database.open(flags).map_err(read_error)?;
    fold_on_close(&connection, false)?;
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
    for migration in migrations(connection)?.applied_migrations() {
        tracing::info!(%migration, "migrated");
    }
    Ok(())
}

/// A database with nothing in it, as the migrations make it.
pub(crate) fn fresh() -> Result<Connection, Error> {
    let mut connection = Connection::open_in_memory().map_err(read_error)?;
    migrations(&mut connection)?;
    Ok(connection)
}

fn migrations(connection: &mut Connection) -> Result<refinery::Report, Error> {
    use refinery::error::Kind;
    // In one transaction. One at a time, each would be written down in a transaction after its own, and a death in between
    // would leave a file that has a table and does not know it: no start after that could migrate it.
    let runner = embedded::migrations::runner().set_grouped(true);
    runner.run(connection).map_err(|error| match error.kind() {
        Kind::DivergentVersion(..) | Kind::MissingVersion(..) => {
            Error::Corrupt { reason: format!("the data was written by another version of Baton: {error}") }
        }
        _ => Error::Unavailable { reason: format!("cannot migrate: {error}"), source: Some(Box::new(error)) },
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::{RunId, TenantId, Versions};
    use baton_store::reads::*;
    use baton_store::{Change, Commit, Item, Journal as _, LogChain, Meta, ReadView, RunRow, VersionedStoreId, Write};
    use refinery::Target;

    use super::*;
    use crate::SqliteStore;

    #[tokio::test]
    async fn a_file_of_an_older_version_opens_and_goes_on() {
        for version in [1, 10, 13, 16] {
            goes_on(version).await;
        }
    }

    async fn goes_on(version: i32) {
        let dir = tempfile::tempdir().unwrap();
        let mut old = writer(&Database::of(dir.path())).unwrap();
        embedded::migrations::runner().set_target(Target::Version(version)).run(&mut old).unwrap();
        let run = "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, \
                   root, scope, tags) VALUES (?1, 'acme', 'echo', ?4, 'running', 1, 1, 1, 1, ?2, ?3, '[]')";
        let event = "INSERT INTO events (run, seq, at, kind, body) VALUES (?1, 0, 1, 'run.started', '{}')";
        let digest = baton_model::Digest::of_bytes("echo");
        let runs = [("run_a", None, Some("chat")), ("run_b", Some("run_top"), None), ("run_c", None, None)];
        for (number, (id, root, scope)) in (1..).zip(runs) {
            old.execute(run, rusqlite::params![id, root, scope, digest.as_str()]).unwrap();
            old.execute(event, [number]).unwrap();
        }
        if version > 10 {
            old.execute("UPDATE runs SET first_memory = 0, first_workspace = 0", []).unwrap();
        }
        // As a killed process leaves it: all is in the log.
        drop(old);
        assert!(dir.path().join("baton.db-wal").exists());
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
            assert_eq!((records[0].sum, row.chain), (None, LogChain::default()), "nothing is rewritten");
            let mut row = RunRow { next_seq: 2, ..row };
            let mut more = vec![baton_store::StoredRecord { seq: 1, versions, ..records[0].clone() }];
            row.seal(&mut more);
            let append = Write::Append { row, expected: 1, records: more };
            let writes = vec![append, Write::Change { ledger: ledger.clone(), change }];
            store.submit(Commit::new(1, writes)).await.unwrap();
            let newer = store.records(&RunId::new(id), 1, 9).await.unwrap();
            assert_eq!(newer[0].versions, versions);
            let lens = ReadView { version: newer[0].versions.memory, ..ReadView::default() };
            assert_eq!(store.versioned_count(&ledger, &lens).await.unwrap(), 1);
        }
        let report = SqliteStore::check(dir.path()).unwrap();
        assert!(report.is_sound() && report.events == 6 && report.changes == 3, "{report:?}");
        store.close().await;
        drop(store);

        // From here on it is compared: what comes after the upgrade, and that nothing is missing in between.
        let file = Connection::open(dir.path().join("baton.db")).unwrap();
        file.execute("UPDATE events SET at = at + 1 WHERE run = 1 AND seq = 1", []).unwrap();
        file.execute("DELETE FROM events WHERE run = 2 AND seq = 0", []).unwrap();
        drop(file);
        let store = SqliteStore::open(dir.path()).unwrap();
        for (id, seq) in [("run_a", 1), ("run_b", 0)] {
            let found = store.records(&RunId::new(id), 0, 9).await;
            assert!(matches!(&found, Err(Error::Damaged { seq: at, .. }) if *at == seq), "{id}: {found:?}");
        }
        assert_eq!(store.records(&RunId::new("run_c"), 0, 9).await.unwrap().len(), 2);
        store.close().await;
    }
}
