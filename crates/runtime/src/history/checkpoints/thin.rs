//! Which checkpoints of a run stay: the newest, and a series over the whole log, so that going back to any record of it
//! costs a small part of folding it.

/// How many a run may have. Between any two of them lies at most about a sixteenth of the log.
pub(super) const MOST: usize = 64;
/// How many bytes they may have together.
pub(super) const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Of checkpoints by place, each with its size and the oldest first, those that go. The newest always stays.
pub(super) fn thinned(mut all: Vec<(u64, u64)>) -> Vec<u64> {
    let mut gone = Vec::new();
    let mut bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    while all.len() > 1 && (all.len() > MOST || bytes > MOST_BYTES) {
        // The one whose going leaves the shortest way from the one before it to the one behind it.
        let way = |place: usize| all[place + 1].0 - place.checked_sub(1).map_or(0, |before| all[before].0);
        let Some(place) = (0..all.len() - 1).min_by_key(|place| way(*place)) else { break };
        let (seq, size) = all.remove(place);
        bytes -= size;
        gone.push(seq);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a run grows: each new one is added, and what is too much goes.
    fn grown(records: u64, every: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        for seq in (every..=records).step_by(every as usize) {
            all.push((seq, bytes));
            let gone = thinned(all.clone());
            all.retain(|(seq, _)| !gone.contains(seq));
        }
        all
    }

    fn widest(all: &[(u64, u64)]) -> u64 {
        let from = std::iter::once(0).chain(all.iter().map(|(seq, _)| *seq));
        from.zip(all).map(|(before, (seq, _))| seq - before).max().unwrap_or(0)
    }

    #[test]
    fn a_long_run_keeps_the_newest_and_a_series_over_all_of_it() {
        for records in [1_000, 20_000, 100_000, 1_000_000] {
            let all = grown(records, 256, 1000);
            assert!(all.len() <= MOST);
            assert_eq!(all.last().map(|(seq, _)| *seq), Some(records / 256 * 256), "the newest");
            let gap = widest(&all);
            assert!(gap <= (records / 16).max(256), "{gap} of {records}: {all:?}");
        }
    }

    #[test]
    fn large_ones_are_fewer() {
        let all = grown(100_000, 1000, MOST_BYTES / 4);
        assert!(all.iter().map(|(_, bytes)| bytes).sum::<u64>() <= MOST_BYTES, "{all:?}");
        assert_eq!(all.len(), 4);
        let alone = grown(100_000, 1000, 2 * MOST_BYTES);
        assert_eq!(alone, [(100_000, 2 * MOST_BYTES)], "the newest stays");
    }
}
