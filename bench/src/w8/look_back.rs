//! Looking back: a run with its memory as of one of its records, for longer and longer logs.
//!
//! The API gives memory and the folded run together. Folding up to the last record costs what the log is long; as of
//! one of the first records there is next to nothing to fold, and what is left is finding the record and its memory.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::fill;
use crate::Sizes;
use crate::http::Connection;
use crate::long_log;
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::{Samples, millis};

const SCOPE: &str = "bench-looked-back-at";
const ENTRIES: usize = 100;
/// A record with nearly nothing before it.
const EARLY: usize = 1;
const EARLY_LOOKS: usize = 200;
const LATE_LOOKS: usize = 5;
/// Finding a record must not depend on how many there are.
const TARGET_RATIO: f64 = 1.5;

#[derive(Deserialize)]
struct Seen {
    seq: usize,
    memory: Vec<IgnoredAny>,
}

pub(super) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    // A host of its own: the list of files is part of every answer, and here there are none.
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    fill(&server, SCOPE, ENTRIES).await?;
    let mut connection = server.connect().await?;
    let mut shortest = None;
    let mut runs = Vec::with_capacity(sizes.log_lengths.len());
    for &length in sizes.log_lengths {
        let log = long_log::build(&mut connection, length, SCOPE).await?;
        let early = look(&mut connection, "surroundings", &log.run, log.last(), EARLY_LOOKS).await?;
        let late = look(&mut connection, "state", &log.run, log.last(), LATE_LOOKS).await?;
        let mut section = report.section("W8");
        let early = millis(early.median());
        section.show(format!("memory as of the last record of {length}"), early, "ms");
        section.note(format!("{ENTRIES} entries; median of {EARLY_LOOKS}"));
        section.show(format!("run and memory as of the last of {length}"), millis(late.median()), "ms");
        section.note(format!("folds {} records; median of {LATE_LOOKS}", log.events));
        let shortest = *shortest.get_or_insert(early);
        runs.push(log.run);
        if Some(&length) == sizes.log_lengths.last() {
            let name = format!("  memory, log of {length} over log of {}", sizes.log_lengths[0]);
            section.judge(name, early / shortest.max(f64::EPSILON), "x", Bound::AtMost(TARGET_RATIO));
        }
    }
    // What was remembered since is not in sight, and should not be in the way either.
    let later = fill(&server, SCOPE, sizes.read_entries).await?.len();
    let run = runs.first().context("no logs")?;
    let looks = look(&mut connection, "surroundings", run, EARLY, EARLY_LOOKS / 4).await?;
    let mut section = report.section("W8");
    section.show(format!("  memory, {later} later entries in the scope"), millis(looks.median()), "ms");
    section.note(format!("still {ENTRIES} entries, record {EARLY} of {}", sizes.log_lengths[0]));
    server.kill().await
}

async fn look(connection: &mut Connection, what: &str, run: &str, at: usize, times: usize) -> Result<Samples> {
    let path = format!("/v1/host/baton/runs/{run}/{what}?at={at}");
    let mut durations: Vec<Duration> = Vec::with_capacity(times);
    for _ in 0..times {
        let response = connection.get(&path).await?;
        response.expect(200, "look back")?;
        durations.push(response.total);
        let seen: Seen = serde_json::from_slice(response.body).context("a run as of a record")?;
        let memory = seen.memory.len();
        ensure!(seen.seq == at && memory == ENTRIES, "as of {}: {memory} entries, not {ENTRIES}", seen.seq);
    }
    Ok(Samples::new(durations))
}
