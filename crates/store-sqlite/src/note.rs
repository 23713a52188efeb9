//! A note beside the database of how many transactions are on disk, so that a database that has lost its end is noticed.
//!
//! SQLite takes what it finds of a write-ahead log that is cut or changed, and says nothing: that is also how a crash in
//! the middle of a write looks. So every transaction counts one up in the database, and once it is on disk the number is
//! written to a file of its own. A database that is behind the note has lost transactions that were acknowledged.
//!
//! The note is never synced. After a power loss it may be an older one, or gone: then less is noticed, and nothing that
//! is whole is refused, for the number in the note was on disk before it was written there.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_store::Error;
use rusqlite::{Connection, OptionalExtension as _};

use crate::error::{io_error, read_error};
use crate::files;

const FORMAT: &str = "baton-commits-1";
/// More than a note ever has.
const LONGEST: u64 = 256;

/// Counts a transaction, in it.
pub(crate) const COUNT: &str =
    "UPDATE commits SET number = number + 1, mirror = -(number + 1) WHERE only = 1 RETURNING number";

/// How often a note that does not read back is read again: a host that is at work may be writing it just now.
const LOOKS: u32 = 5;

/// How far a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Tells the database from all others.
    file: String,
    number: u64,
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    Nothing,
    /// There is a file, and it is no note.
    Unreadable,
    Counted(Counted),
}

/// The file, open for writing.
#[derive(Debug)]
pub(crate) struct Note {
    path: PathBuf,
    /// Which database it is about.
    of: String,
    /// None once it could not be written: an old note does no harm.
    file: Option<File>,
}

fn text(of: &str, number: u64) -> String {
    let told = format!("{FORMAT} {of} {number:020}");
    let sum = baton_model::Digest::of_bytes(&told);
    format!("{told} {}\n", sum.as_str())
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join(files::NOTE)
}

pub(crate) fn read(dir: &Path) -> Result<Noted, Error> {
    let mut noted = read_once(dir)?;
    for _ in 1..LOOKS {
        if noted != Noted::Unreadable {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        noted = read_once(dir)?;
    }
    Ok(noted)
}

fn read_once(dir: &Path) -> Result<Noted, Error> {
    let path = path(dir);
    let failed = |error| io_error(&format!("cannot read {}", path.display()), error);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Noted::Nothing),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    file.take(LONGEST).read_to_end(&mut found).map_err(failed)?;
    let said = String::from_utf8_lossy(&found).into_owned();
    let mut words = said.split(' ').skip(1);
    let (of, number) = (words.next().unwrap_or_default(), words.next().and_then(|number| number.parse().ok()));
    Ok(match number {
        Some(number) if text(of, number) == said => Noted::Counted(Counted { file: of.to_owned(), number }),
        _ => Noted::Unreadable,
    })
}

/// How many transactions the database knows of; nothing if it is from before they were counted.
pub(crate) fn counted(connection: &Connection) -> Result<Option<Counted>, Error> {
    let there = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'commits'";
    let there = connection.prepare(there).and_then(|mut there| there.exists([])).map_err(read_error)?;
    if !there {
        return Ok(None);
    }
    let ask = "SELECT file, number, mirror FROM commits WHERE only = 1";
    let found = connection
        .query_row(ask, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))
        .optional()
        .map_err(read_error)?;
    match found {
        Some((file, number, mirror)) if number.checked_neg() == Some(mirror) && number >= 0 => {
            Ok(Some(Counted { file, number: number.unsigned_abs() }))
        }
        _ => Err(Error::Corrupt { reason: "the number of the last transaction does not read back".to_owned() }),
    }
}

/// What is wrong, if the database is behind its note, or is not the one that the note is about.
pub(crate) fn behind(connection: &Connection, dir: &Path) -> Result<Option<String>, Error> {
    let noted = match read(dir)? {
        Noted::Nothing => return Ok(None),
        Noted::Unreadable => {
            let path = path(dir);
            tracing::warn!(path = %path.display(), "the note of the last commit does not read back; nothing is compared");
            return Ok(None);
        }
        Noted::Counted(noted) => noted,
    };
    let (place, note) = (crate::open::file(dir), path(dir));
    let (place, note) = (place.display(), note.display());
    let Some(counted) = counted(connection)? else {
        return Ok(Some(format!(
            "{place} is older than {note}, which knows of {} transactions: an older copy was put in its place",
            noted.number
        )));
    };
    if counted.file != noted.file {
        return Ok(Some(format!(
            "{place} is not the database that {note} is about: another one was put in its place, such as a copy"
        )));
    }
    let lost = noted.number.saturating_sub(counted.number);
    Ok((lost > 0).then(|| {
        format!(
            "{place} has lost its end: it knows of {} transactions, and {} were acknowledged ({lost} are missing). \
             Its write-ahead log was cut, changed or removed, or an older copy was put in its place",
            counted.number, noted.number
        )
    }))
}

impl Note {
    /// The note of this directory, which says from now on what this connection knows.
    pub(crate) fn begin(dir: &Path, connection: &Connection) -> Result<Self, Error> {
        let path = path(dir);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(|error| io_error(&format!("cannot write {}", path.display()), error));
        let file = match file {
            Ok(file) => Some(file),
            // A full disk must not keep the data from being read.
            Err(error) => {
                tracing::warn!(%error, "commits are not noted: a cut end of the data would not be noticed");
                None
            }
        };
        let mut note = Self { path, of: String::new(), file };
        if let Some(counted) = counted(connection)? {
            note.of = counted.file;
            note.write(counted.number);
        }
        Ok(note)
    }

    /// Nothing is noted.
    pub(crate) fn none(dir: &Path) -> Self {
        Self { path: path(dir), of: String::new(), file: None }
    }

    /// What is wrong, if a connection knows of fewer transactions than were noted.
    pub(crate) fn missing(&self, connection: &Connection) -> Result<Option<String>, Error> {
        let Some(dir) = self.path.parent().filter(|_| self.file.is_some()) else { return Ok(None) };
        behind(connection, dir)
    }

    /// So many transactions are on disk.
    pub(crate) fn write(&mut self, number: u64) {
        let Some(file) = &mut self.file else { return };
        // Always as long as before, so nothing of an older one is left behind.
        let written = file.rewind().and_then(|()| file.write_all(text(&self.of, number).as_bytes()));
        if let Err(error) = written {
            tracing::warn!(path = %self.path.display(), %error, "commits are not noted any more");
            self.file = None;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_note_reads_back_and_anything_else_does_not() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap(), Noted::Nothing);
        for number in [0, 7, u64::MAX] {
            std::fs::write(path(dir.path()), text("abc", number)).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Noted::Counted(Counted { file: "abc".to_owned(), number }));
        }
        let whole = text("0123456789abcdef", 41).into_bytes();
        for place in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[place] ^= 1;
            std::fs::write(path(dir.path()), &flipped).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Noted::Unreadable, "byte {place}");
            std::fs::write(path(dir.path()), &whole[..place]).unwrap();
            assert_eq!(read(dir.path()).unwrap(), Noted::Unreadable, "cut at {place}");
        }
    }
}
