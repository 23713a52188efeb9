//! Questions for a `doctor`: does the file hold together, and how fast is the disk under it?

use std::fs::OpenOptions;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use baton_model::RunId;
use baton_store::codec::versioned_id;
use baton_store::{Error, VersionedStoreId};
use rusqlite::Connection;

use crate::check_contents::{self, Progress};
use crate::error::{io_error, read_error};
use crate::note::Noted;
use crate::open::Database;
use crate::store::SqliteStore;
use crate::{damage, note, open, rows};

/// Enough to see what is wrong; a broken disk would otherwise fill the screen.
const FINDINGS: u32 = 100;

/// What [`SqliteStore::check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub runs: u64,
    pub events: u64,
    /// What SQLite says is wrong with the file; empty when it is sound.
    pub damage: Vec<String>,
    /// Runs whose log does not match their row.
    pub gaps: Vec<Gap>,
    pub ledgers: u64,
    pub changes: u64,
    /// Memory scopes and workspaces whose changes do not match their row.
    pub version_gaps: Vec<VersionGap>,
    /// What else is not as it was written: records, rows, blobs, and what is derived from rows. A sentence each.
    pub wrong: Vec<String>,
    /// Whether there is a note of the last commit, by which a lost end would be noticed.
    pub noted: bool,
}

/// A run whose log is not 0, 1, 2, … up to what its row says; a fork's begins where it was forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub run: RunId,
    pub next_seq: u64,
    pub events: u64,
    pub last: Option<u64>,
}

/// A versioned store whose changes are not every version after `forgotten` up to what its row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionGap {
    pub ledger: VersionedStoreId,
    pub version: u64,
    /// Versions up to this one may be missing: retention took them.
    pub forgotten: u64,
    /// How many there are after that.
    pub changes: u64,
    pub last: Option<u64>,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.gaps.is_empty() && self.version_gaps.is_empty() && self.wrong.is_empty()
    }
}

impl SqliteStore {
    /// Reads everything in `dir` and says what does not fit. Changes nothing, takes no lock, and may run beside the
    /// process that owns the directory. Blocks for as long as reading the file takes.
    pub fn check(dir: &Path) -> Result<Report, Error> {
        Self::check_telling(dir, |_| {})
    }

    /// The same, telling now and then how far it has come.
    pub fn check_telling(dir: &Path, mut tell: impl FnMut(Progress)) -> Result<Report, Error> {
        let path = open::file(dir);
        damage::refuse_gone(dir)?;
        if !path.exists() {
            return Err(Error::Unavailable { reason: format!("there is no {}", path.display()), source: None });
        }
        let connection = open::reader(&Database::of(dir))?;
        // Before the snapshot: what is noted meanwhile is not in it.
        let behind = note::behind(&connection, dir)?;
        let noted = note::read(dir)?;
        let mut report = match (report(&connection), &behind) {
            (Ok(report), _) => report,
            // So much is missing that nothing can be asked.
            (Err(_), Some(behind)) => return Err(Error::Corrupt { reason: behind.clone() }),
            (Err(error), None) => return Err(damage::named(read_error(error), dir)),
        };
        report.damage.extend(behind);
        report.wrong = check_contents::all(&connection, &mut tell)?;
        report.noted = noted != Noted::Nothing;
        if noted == Noted::Unreadable {
            let note = note::path(dir);
            report.wrong.push(format!(
                "{} does not read back, so nothing tells whether the end is there. The next start writes it anew",
                note.display()
            ));
        }
        Ok(report)
    }

    /// How long `fdatasync` takes in `dir`, `times` times: the floor under every acknowledged write.
    pub fn fsync_probe(dir: &Path, times: usize) -> Result<Vec<Duration>, Error> {
        let path = dir.join(format!("fsync-probe-{}", std::process::id()));
        let measured = measure(&path, times);
        let removed = std::fs::remove_file(&path);
        let measured = measured.map_err(|error| io_error("cannot measure the disk", error))?;
        removed.map_err(|error| io_error(&format!("cannot remove {}", path.display()), error))?;
        Ok(measured)
    }
}

fn report(connection: &Connection) -> rusqlite::Result<Report> {
    // One snapshot for all questions, whatever is written meanwhile.
    connection.execute_batch("BEGIN")?;
    let number = |sql: &str| connection.query_row(sql, [], rows::count);
    let damage = damage::integrity(connection, FINDINGS).unwrap_or_else(|error| vec![error.to_string()]);
    // A file that this version has not opened yet has no versioned stores, and nothing was pruned from it.
    let has_versioned_stores =
        number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'ledgers'")? > 0;
    // Nor does it know of forks, whose logs begin where they were forked.
    let has_forks = number("SELECT count(*) FROM pragma_table_info('runs') WHERE name = 'origin'")? > 0;
    let begins = if has_forks { "coalesce(runs.origin ->> '$.seq', 0)" } else { "0" };
    let count_of =
        |table: &str| if has_versioned_stores { number(&format!("SELECT count(*) FROM {table}")) } else { Ok(0) };
    Ok(Report {
        runs: number("SELECT count(*) FROM runs")?,
        events: number("SELECT count(*) FROM events")?,
        damage,
        gaps: gaps(connection, if has_versioned_stores { "NOT runs.pruned_log" } else { "true" }, begins)?,
        ledgers: count_of("ledgers")?,
        changes: count_of("changes")?,
        version_gaps: if has_versioned_stores { version_gaps(connection)? } else { Vec::new() },
        wrong: Vec::new(),
        noted: false,
    })
}

fn gaps(connection: &Connection, has_log: &str, begins: &str) -> rusqlite::Result<Vec<Gap>> {
    let mut gaps = connection.prepare(&format!(
        "SELECT runs.id, runs.next_seq, count(events.seq), max(events.seq)
         FROM runs LEFT JOIN events ON events.run = runs.run
         WHERE {has_log}
         GROUP BY runs.run
         HAVING count(events.seq) + {begins} <> runs.next_seq
             OR coalesce(max(events.seq) + 1, {begins}) <> runs.next_seq
         ORDER BY runs.run LIMIT ?1"
    ))?;
    let gaps = gaps.query_map([FINDINGS], |row| {
        rows::fields(row, |row| {
            let run = RunId::new(row.text("id")?);
            let (next_seq, events) = (row.count("next_seq")?, row.count("events")?);
            Ok(Gap { run, next_seq, events, last: row.maybe_count("seq")? })
        })
    })?;
    gaps.collect()
}

fn version_gaps(connection: &Connection) -> rusqlite::Result<Vec<VersionGap>> {
    let mut gaps = connection.prepare(
        "SELECT tenant, kind, scope, ledgers.version, forgotten, count(changes.version), max(changes.version)
         FROM ledgers LEFT JOIN changes ON changes.ledger = ledgers.ledger AND changes.version > forgotten
         GROUP BY ledgers.ledger
         HAVING count(changes.version) <> ledgers.version - forgotten
             OR coalesce(max(changes.version), forgotten) <> ledgers.version
         ORDER BY ledgers.ledger LIMIT ?1",
    )?;
    let gaps = gaps.query_map([FINDINGS], |row| {
        rows::fields(row, |row| {
            let ledger = versioned_id(row)?;
            let (version, forgotten) = (row.count("version")?, row.count("forgotten")?);
            Ok(VersionGap {
                ledger,
                version,
                forgotten,
                changes: row.count("changes")?,
                last: row.maybe_count("version")?,
            })
        })
    })?;
    gaps.collect()
}

fn measure(path: &Path, times: usize) -> io::Result<Vec<Duration>> {
    // Never through what somebody else put there: the folder may be one that others write to.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let page = [0x5a; 4096];
    (0..times)
        .map(|_| {
            // In place, as a write-ahead log that has reached its size is written.
            file.rewind()?;
            file.write_all(&page)?;
            let start = Instant::now();
            file.sync_data()?;
            Ok(start.elapsed())
        })
        .collect()
}
