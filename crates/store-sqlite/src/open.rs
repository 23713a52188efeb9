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
