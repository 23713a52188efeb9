//! Questions for a `doctor`: does the file hold together, and how fast is the disk under it?

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use baton_model::RunId;
use baton_store::Error;
use rusqlite::Connection;

use crate::error::{io_error, read_error};
use crate::{SqliteStore, open, rows};

/// Enough to see what is wrong; a broken disk would otherwise fill the screen.
const FINDINGS: usize = 100;

/// What [`SqliteStore::check`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub runs: u64,
    pub events: u64,
    /// What SQLite says is wrong with the file; empty when it is sound.
    pub damage: Vec<String>,
    /// Runs whose log does not match their row.
    pub gaps: Vec<Gap>,
}

/// A run whose log is not 0, 1, 2, … up to what its row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub run: RunId,
    pub next_seq: u64,
    pub events: u64,
    pub last: Option<u64>,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty() && self.gaps.is_empty()
    }
}

impl SqliteStore {
    /// Reads everything in `dir` and says what does not fit. Changes nothing, takes no lock, and may run beside the
    /// process that owns the directory. Blocks for as long as reading the file takes.
    pub fn check(dir: &Path) -> Result<Report, Error> {
        let path = open::file(dir);
        if !path.exists() {
            return Err(Error::Unavailable { reason: format!("there is no {}", path.display()), source: None });
        }
        report(&open::reader(&path)?).map_err(read_error)
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
    let number = |sql: &str| connection.query_row(sql, [], |row| rows::count(row, 0));
    let mut quick_check = connection.prepare(&format!("PRAGMA quick_check({FINDINGS})"))?;
    let mut damage: Vec<String> = quick_check.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    damage.retain(|line| line != "ok");
    let mut gaps = connection.prepare(
        "SELECT runs.id, runs.next_seq, count(events.seq), max(events.seq)
         FROM runs LEFT JOIN events ON events.run = runs.run
         GROUP BY runs.run
         HAVING count(events.seq) <> runs.next_seq OR coalesce(max(events.seq) + 1, 0) <> runs.next_seq
         ORDER BY runs.run LIMIT ?1",
    )?;
    let gaps = gaps.query_map([FINDINGS as i64], |row| {
        Ok(Gap {
            run: RunId::new(rows::text(row, 0)?),
            next_seq: rows::count(row, 1)?,
            events: rows::count(row, 2)?,
            last: row.get::<_, Option<i64>>(3)?.map(i64::cast_unsigned),
        })
    })?;
    Ok(Report {
        runs: number("SELECT count(*) FROM runs")?,
        events: number("SELECT count(*) FROM events")?,
        damage,
        gaps: gaps.collect::<Result<_, _>>()?,
    })
}

fn measure(path: &Path, times: usize) -> std::io::Result<Vec<Duration>> {
    let mut file = File::create(path)?;
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
