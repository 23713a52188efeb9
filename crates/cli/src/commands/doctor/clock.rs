use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::finding::{Finding, State};

const NAME: &str = "clock";
const FIX: &str = "set the clock and keep it set (chrony, systemd-timesyncd)";
/// 2026-01-01: before this program existed.
const BORN: Duration = Duration::from_secs(1_767_225_600);
/// File times may be coarse, and disks may keep their own clock.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Deadlines, timeouts and expiry follow the wall clock: it must not be unset, and must not have gone back.
pub(super) fn check(data: &Path) -> Finding {
    judge(SystemTime::now(), newest(data))
}

fn judge(now: SystemTime, newest: Option<SystemTime>) -> Finding {
    if now < UNIX_EPOCH + BORN {
        return Finding::bad(NAME, State::Wrong, "the clock is not set: it is older than this program", FIX);
    }
    match newest.and_then(|written| written.duration_since(now).ok()).filter(|ahead| *ahead > TOLERANCE) {
        Some(ahead) => Finding::bad(
            NAME,
            State::Wrong,
            format!("the data folder was written {}s in the future: the clock went back", ahead.as_secs()),
            FIX,
        ),
        None => Finding::ok(NAME, "set, and not behind the data"),
    }
}

/// When anything directly in the data folder was last written.
fn newest(data: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(data).ok()?;
    entries.filter_map(|entry| entry.ok()?.metadata().ok()?.modified().ok()).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_unset_or_went_back_is_wrong() {
        let now = UNIX_EPOCH + BORN + Duration::from_secs(1_000_000);
        assert_eq!(judge(UNIX_EPOCH, None).state, State::Wrong);
        assert_eq!(judge(now, Some(now + Duration::from_secs(3600))).state, State::Wrong);
        assert_eq!(judge(now, Some(now + Duration::from_secs(5))).state, State::Ok);
        assert_eq!(judge(now, Some(now - Duration::from_secs(3600))).state, State::Ok);
        assert_eq!(judge(now, None).state, State::Ok);
    }
}
