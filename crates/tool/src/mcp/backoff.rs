//! How long to wait before a server is tried again.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

const FIRST_WAIT: Duration = Duration::from_millis(250);
/// Long enough that a server which is gone for good costs nothing, short enough that nobody restarts a host because of one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// A wait is shortened by up to this share, so that servers and hosts which failed together do not come back together.
const JITTER_PERCENT: u32 = 25;

/// The wait after so many failures in a row, with chance in it.
pub(super) fn wait_after(failures: u32) -> Duration {
    shortened(doubled(failures), RandomState::new().build_hasher().finish())
}

fn doubled(failures: u32) -> Duration {
    // Eight doublings are already longer than the longest wait.
    (FIRST_WAIT * 2_u32.pow(failures.saturating_sub(1).min(8))).min(LONGEST_WAIT)
}

fn shortened(wait: Duration, chance: u64) -> Duration {
    let share = u32::try_from(chance % u64::from(JITTER_PERCENT + 1)).unwrap_or_default();
    wait - wait * share / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let waits: Vec<_> = (1..=12).map(|failures| doubled(failures).as_millis()).collect();
        assert_eq!(waits[..4], [250, 500, 1000, 2000]);
        assert_eq!(waits[8..], [60_000; 4]);
        assert_eq!(doubled(u32::MAX), LONGEST_WAIT);
    }

    #[test]
    fn chance_shortens_a_wait_by_a_quarter_at_most_and_not_always_alike() {
        let wait = Duration::from_secs(60);
        assert_eq!((shortened(wait, 0), shortened(wait, 25)), (wait, Duration::from_secs(45)));
        let all: std::collections::BTreeSet<_> = (0..1000).map(|chance| shortened(wait, chance)).collect();
        assert_eq!((all.len(), all.first(), all.last()), (26, Some(&Duration::from_secs(45)), Some(&wait)));
    }
}
