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
use std::time::{Duration, Instant};

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

/// How long a note that could not be written is left alone, longer each time.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

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
    /// Absent while it cannot be written. An old note does no harm: less is noticed.
    file: Option<File>,
    /// How many transactions are on disk.
    number: u64,
    /// While it cannot be written, when that is tried again.
    again: Option<Again>,
    /// Whether anything is noted at all.
    on: bool,
}

#[derive(Clone, Copy, Debug)]
struct Again {
    at: Instant,
    pause: Duration,
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
        let mut note = Self { on: true, ..Self::none(dir) };
        if let Some(counted) = counted(connection)? {
            note.of = counted.file;
            // A full disk must not keep the data from being read.
            note.write(counted.number);
        }
        Ok(note)
    }

    /// Nothing is noted.
    pub(crate) fn none(dir: &Path) -> Self {
        Self { path: path(dir), of: String::new(), file: None, number: 0, again: None, on: false }
    }

    /// What is wrong, if a connection knows of fewer transactions than were noted.
    pub(crate) fn missing(&self, connection: &Connection) -> Result<Option<String>, Error> {
        let Some(dir) = self.path.parent().filter(|_| self.on) else { return Ok(None) };
        behind(connection, dir)
    }

    /// So many transactions are on disk.
    pub(crate) fn write(&mut self, number: u64) {
        self.write_at(number, Instant::now());
    }

    /// How long until it is tried again; `None` while it is up to date.
    pub(crate) fn waits(&self) -> Option<Duration> {
        self.again.map(|again| again.at.saturating_duration_since(Instant::now()))
    }

    /// Writes what could not be written before, if it is time for that.
    pub(crate) fn catch_up(&mut self) {
        if self.again.is_some() {
            self.write(self.number);
        }
    }

    fn write_at(&mut self, number: u64, now: Instant) {
        self.number = number;
        if !self.on || self.again.is_some_and(|again| now < again.at) {
            return;
        }
        match self.try_to_write() {
            Ok(()) if self.again.take().is_some() => {
                tracing::info!(path = %self.path.display(), "commits are noted again");
                metrics::gauge!(BEHIND).set(0.0);
            }
            Ok(()) => {}
            Err(error) => {
                self.file = None;
                let before = self.again.map(|again| again.pause);
                let pause = before.map_or(SHORTEST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE));
                self.again = Some(Again { at: now + pause, pause });
                metrics::counter!("baton_commit_note_failures_total").increment(1);
                if before.is_none() {
                    metrics::gauge!(BEHIND).set(1.0);
                    tracing::error!(
                        path = %self.path.display(), %error,
                        "commits are not noted: until they are, a cut end of the data is not noticed"
                    );
                }
            }
        }
    }

    fn try_to_write(&mut self) -> std::io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(open_to_write(&self.path)?),
        };
        // Always as long as before, so nothing of an older one is left behind.
        file.rewind()?;
        file.write_all(text(&self.of, self.number).as_bytes())
    }
}

/// One while the note is older than the data.
const BEHIND: &str = "baton_commit_note_behind";

fn open_to_write(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_could_not_be_written_is_tried_again_later_and_later() {
        let dir = tempfile::tempdir().unwrap();
        let begun = Instant::now();
        let noted = |number| Noted::Counted(Counted { file: "abc".to_owned(), number });
        let mut note = Note { on: true, of: "abc".to_owned(), ..Note::none(dir.path()) };
        note.write_at(1, begun);
        assert_eq!((read(dir.path()).unwrap(), note.waits()), (noted(1), None));
        // One that nothing can be written to.
        note.file = Some(File::open(path(dir.path())).unwrap());
        note.write_at(2, begun);
        assert!(note.waits().is_some(), "it is told that it is behind");
        note.write_at(3, begun + SHORTEST_PAUSE / 2);
        assert_eq!(read(dir.path()).unwrap(), noted(1), "left alone for a while");
        // It cannot be made again either.
        let (aside, at) = (dir.path().join("aside"), path(dir.path()));
        std::fs::rename(&at, &aside).unwrap();
        std::fs::create_dir(&at).unwrap();
        note.write_at(4, begun + SHORTEST_PAUSE);
        std::fs::remove_dir(&at).unwrap();
        std::fs::rename(&aside, &at).unwrap();
        note.write_at(5, begun + SHORTEST_PAUSE * 2);
        assert_eq!(read(dir.path()).unwrap(), noted(1), "left alone for longer");
        note.write_at(6, begun + SHORTEST_PAUSE * 3);
        assert_eq!((read(dir.path()).unwrap(), note.waits()), (noted(6), None));
        for _ in 0..20 {
            note.file = Some(File::open(path(dir.path())).unwrap());
            let at = note.again.map_or(begun, |again| again.at);
            note.write_at(7, at);
        }
        assert_eq!(note.again.map(|again| again.pause), Some(LONGEST_PAUSE));
        // And nobody has to commit for it.
        note.again = Some(Again { at: begun, pause: SHORTEST_PAUSE });
        note.catch_up();
        assert_eq!((read(dir.path()).unwrap(), note.waits()), (noted(7), None));
    }

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
