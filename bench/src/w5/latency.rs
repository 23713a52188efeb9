//! From asking for a fork to its acknowledgement, for longer and longer logs.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{FORK_LIMIT, FORK_POLL};
use crate::Sizes;
use crate::api;
use crate::http::Connection;
use crate::long_log::{LongLog, check_end};
use crate::probe::Disk;
use crate::report::{Bound, Report};
use crate::stats::{Samples, millis};

/// What a fork of this log takes is held against what one of the shortest takes, and against the disk.
const JUDGED_LENGTH: usize = 10_000;
const TARGET_RATIO: f64 = 1.5;
/// A fork goes through the log it comes from once it is acknowledged, so the longest logs are forked less often.
const EVENTS_BEHIND: usize = 500_000;

pub(super) async fn measure(
    report: &mut Report,
    connection: &mut Connection,
    folder: &Path,
    logs: &[(usize, LongLog)],
    sizes: &Sizes,
) -> Result<()> {
    let mut shortest = Vec::new();
    for (length, log) in logs {
        // Disks change their mood within seconds, so the yardstick is taken beside each measurement.
        let disk = Disk::probe(folder)?;
        let times = (EVENTS_BEHIND / log.events).clamp(5, sizes.fork_rounds);
        let middle = log.events / 2;
        for (place, (name, mode, from)) in [
            ("branch at the end of", "branch", log.last()),
            ("replay of the end of", "replay", log.last()),
            ("branch in the middle of", "branch", middle),
        ]
        .into_iter()
        .enumerate()
        {
            // A branch in the middle runs the other half by itself.
            if from == middle && *length > JUDGED_LENGTH {
                continue;
            }
            let samples = forks(connection, log, mode, from, times).await;
            let samples = samples.with_context(|| format!("{name} {length} events"))?;
            let median = millis(samples.median());
            if shortest.len() == place {
                shortest.push(median);
            }
            let mut section = report.section("W5");
            let name = format!("{name} {length} events");
            let counted = format!("median of {times}, worst {:.1} ms", millis(samples.max()));
            // What is decided as a whole is copied whole, so a fork between two records may have more to write.
            if *length != JUDGED_LENGTH || from == middle {
                section.show(name, median, "ms").note(counted);
                continue;
            }
            let bound = 2.0 * millis(disk.p50) + 1.0;
            section.judge(name, median, "ms", Bound::AtMost(bound));
            section.note(format!("2 x fdatasync p50 of {:.2} ms + 1 ms; {counted}", millis(disk.p50)));
            let ratio = median / shortest[place].max(f64::EPSILON);
            let name = format!("  over one of {} events", logs[0].0);
            section.judge(name, ratio, "x", Bound::AtMost(TARGET_RATIO));
        }
    }
    Ok(())
}

/// Forks again and again, each time after the last fork has ended.
async fn forks(connection: &mut Connection, log: &LongLog, mode: &str, from: usize, times: usize) -> Result<Samples> {
    let mut durations: Vec<Duration> = Vec::with_capacity(times);
    // The first one warms up.
    for round in 0..=times {
        let (fork, took) = api::fork(connection, &log.run, mode, from).await?;
        api::await_end(connection, &fork, FORK_LIMIT, FORK_POLL).await?;
        check_end(connection, &fork, log.events).await?;
        if round > 0 {
            durations.push(took);
        }
    }
    Ok(Samples::new(durations))
}
