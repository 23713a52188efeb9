use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_store_sqlite::SqliteStore;

use super::finding::{Finding, State};

const PROBES: usize = 50;
/// Beyond this every acknowledged write is felt by a person.
const SLOW: Duration = Duration::from_millis(50);
/// Faster than any disk that really wrote: something on the way only pretends.
const UNBELIEVABLE: Duration = Duration::from_micros(5);

const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 64 << 20;

/// The data folder, or the nearest folder above it that exists: it may not have been made yet.
fn existing(data: &Path) -> PathBuf {
    let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new(".")).to_owned()
}

pub(super) fn free_space(data: &Path) -> Finding {
    const NAME: &str = "free space";
    const FIX: &str = "free some space, or move the data folder (--data) to a larger disk";
    let folder = existing(data);
    let free = match rustix::fs::statvfs(&folder) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Finding::bad(NAME, State::Wrong, format!("{}: {error}", folder.display()), FIX),
    };
    let found = format!("{} MiB free in {}", free >> 20, folder.display());
    match free {
        ..TOO_LITTLE => Finding::bad(NAME, State::Wrong, found, FIX),
        TOO_LITTLE..LITTLE => Finding::bad(NAME, State::Warning, found, FIX),
        LITTLE.. => Finding::ok(NAME, found),
    }
}

/// What one durable write costs: the floor under every acknowledged request.
pub(super) fn fsync_latency(data: &Path) -> Finding {
    const NAME: &str = "fsync";
    let folder = existing(data);
    let mut times = match SqliteStore::fsync_probe(&folder, PROBES) {
        Ok(times) => times,
        Err(error) => {
            return Finding::bad(
                NAME,
                State::Wrong,
                error.to_string(),
                "make the folder writable for this user, or choose another with --data",
            );
        }
    };
    times.sort();
    let (p50, p99) = (percentile(&times, 50), percentile(&times, 99));
    let found = format!("p50 {} p99 {} over {PROBES} writes", describe(p50), describe(p99));
    if p50 > SLOW {
        return Finding::bad(NAME, State::Warning, found, "use a local SSD for the data folder, not a network disk");
    }
    if p99 < UNBELIEVABLE {
        return Finding::bad(
            NAME,
            State::Warning,
            format!("{found}; too fast to be true"),
            "tmpfs and some virtual disks forget on power loss; use a real disk for the data folder",
        );
    }
    Finding::ok(NAME, found)
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn describe(time: Duration) -> String {
    format!("{:.2}ms", time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let times: Vec<Duration> = (1..=50).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 50), Duration::from_millis(25));
        assert_eq!(percentile(&times, 99), Duration::from_millis(50));
        assert_eq!(percentile(&[], 50), Duration::ZERO);
    }

    #[test]
    fn a_folder_that_is_not_there_yet_is_judged_by_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(existing(&dir.path().join("a/b/c")), dir.path());
        assert_ne!(free_space(&dir.path().join("a/b")).found, "");
    }
}
