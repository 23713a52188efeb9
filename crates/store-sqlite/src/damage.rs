//! Whether the file holds together: asked before anything of it is used.
//!
//! Pages, trees and indexes are gone through at once where the file is small. A large one is only looked at where a torn
//! or cut file shows at once; `baton storage check` goes through all of it. Rows are compared when they are read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use baton_store::Error;
use rusqlite::Connection;

use crate::error::read_error;
use crate::{derived, note, open};

/// Up to this size a file is gone through at every start: a few tenths of a second.
const SMALL: u64 = 64 * 1024 * 1024;
/// What is shown of what is wrong.
const SHOWN: u32 = 3;

/// Refuses what SQLite would take for a new database, and throw the log away. To be asked before it looks.
pub(crate) fn refuse_gone(dir: &Path) -> Result<(), Error> {
    let (path, note) = (open::file(dir), note::path(dir));
    let log = length(&path.with_extension("db-wal"));
    let reason = match std::fs::metadata(&path).map(|data| data.len()) {
        Ok(0) if log > 0 => format!("{} is empty, and its write-ahead log is not", path.display()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && (log > 0 || note.exists()) => {
            format!(
                "{} is missing, and something of it is left. To begin with nothing, remove {} too",
                path.display(),
                note.display()
            )
        }
        _ => return Ok(()),
    };
    Err(Error::Corrupt { reason })
}

/// Refuses a file that has lost all that was in it, also to whoever looks at what is damaged: there is nothing to see, and
/// what would be made of it would be written over what is left of the log.
pub(crate) fn refuse_nothing_left(connection: &Connection, dir: &Path) -> Result<(), Error> {
    if note::counted(connection).is_ok_and(|counted| counted.is_none())
        && let Some(reason) = note::behind(connection, dir)?
    {
        return Err(Error::Corrupt { reason });
    }
    Ok(())
}

/// What SQLite says of a file, with its name.
pub(crate) fn named(error: Error, dir: &Path) -> Error {
    let path = open::file(dir).display().to_string();
    match error {
        Error::Corrupt { reason } if !reason.contains(&path) => {
            Error::Corrupt { reason: format!("{path} is damaged: {reason}") }
        }
        error => error,
    }
}

/// Refuses what is damaged, before anything is written.
pub(crate) fn refuse(connection: &Connection, dir: &Path) -> Result<(), Error> {
    let path = open::file(dir);
    let corrupt = |what: String| Error::Corrupt { reason: what };
    if let Some(behind) = note::behind(connection, dir)? {
        return Err(corrupt(behind));
    }
    let bytes = bytes(connection)?;
    let waiting = length(&path.with_extension("db-wal"));
    if waiting == 0 && length(&path) < bytes {
        let there = length(&path);
        return Err(corrupt(format!("{} is cut: {there} of {bytes} bytes are there", path.display())));
    }
    if is_small(connection)? {
        let found = integrity(connection, SHOWN)?;
        if !found.is_empty() {
            return Err(corrupt(format!("{} is damaged: {}", path.display(), found.join("; "))));
        }
    }
    Ok(())
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

/// The same for what this version has made of the file.
pub(crate) fn refuse_migrated(connection: &Connection, dir: &Path) -> Result<(), Error> {
    let mut wrong = changed_schema(connection)?;
    if wrong.is_empty() && is_small(connection)? {
        wrong = derived::rebuilt(connection);
    }
    wrong.first().map_or(Ok(()), |wrong| {
        Err(Error::Corrupt { reason: format!("{} is damaged: {wrong}", open::file(dir).display()) })
    })
}

fn is_small(connection: &Connection) -> Result<bool, Error> {
    Ok(bytes(connection)? <= SMALL)
}

/// How much there should be.
fn bytes(connection: &Connection) -> Result<u64, Error> {
    let number =
        |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).map(u64::from).map_err(read_error);
    Ok(number("PRAGMA page_count")? * number("PRAGMA page_size")?)
}

/// What SQLite finds wrong with pages, trees, and indexes against rows.
pub(crate) fn integrity(connection: &Connection, most: u32) -> Result<Vec<String>, Error> {
    let ask = || {
        let mut check = connection.prepare(&format!("PRAGMA integrity_check({most})"))?;
        check.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    };
    let mut found = ask().map_err(read_error)?;
    found.retain(|line| line != "ok");
    Ok(found)
}

/// Tables, indexes and triggers as they lie in a file, by name.
fn schema(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut all =
        connection.prepare("SELECT type || ' ' || name, tbl_name || ': ' || coalesce(sql, '') FROM sqlite_schema")?;
    all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Which migrations were made.
fn made(connection: &Connection) -> rusqlite::Result<Vec<(i32, String, String)>> {
    let mut all = connection.prepare("SELECT version, name, checksum FROM refinery_schema_history ORDER BY version")?;
    all.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
}

type Made = (BTreeMap<String, String>, Vec<(i32, String, String)>);

/// What the migrations make of nothing, and which they are. The same for as long as this process lives.
fn as_made() -> Result<&'static Made, Error> {
    static MADE: OnceLock<Made> = OnceLock::new();
    if let Some(made) = MADE.get() {
        return Ok(made);
    }
    let fresh = open::fresh()?;
    let made = (schema(&fresh).map_err(read_error)?, made(&fresh).map_err(read_error)?);
    Ok(MADE.get_or_init(|| made))
}

/// Whether some migrations are still to be made, and all others are ours.
pub(crate) fn is_older(connection: &Connection) -> bool {
    let (Ok((_, ours)), Ok(found)) = (as_made(), made(connection)) else { return false };
    found.len() < ours.len() && ours.starts_with(&found)
}

/// What is not as the migrations made it, though they have all been made. What others have added is theirs.
pub(crate) fn changed_schema(connection: &Connection) -> Result<Vec<String>, Error> {
    let (ours, ours_made) = as_made()?;
    let found = schema(connection).map_err(read_error)?;
    let changed = ours.iter().filter(|(name, sql)| found.get(*name) != Some(sql));
    let mut changed: Vec<String> = changed.map(|(name, _)| format!("the {name} is not as it was made")).collect();
    if *ours_made != made(connection).map_err(read_error)? {
        changed.push("the list of migrations is not the one that was made".to_owned());
    }
    Ok(changed)
}
