//! How far a run is ahead of the disk. What it has queued lies in memory, so one that writes faster than the disk waits
//! for it; but only for half, so that the disk is never idle meanwhile.

/// Bytes that a run has queued and that are not known to be on disk.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    bytes: usize,
    /// A place in the queue, once half of what is allowed was reached.
    mark: Option<Mark>,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// How many records of the run lie before it.
    records: u64,
    /// How many of the bytes lie before it.
    bytes: usize,
}

impl Ahead {
    /// So much more was queued; the run has `queued` records in all now, and may be `most` bytes ahead.
    pub(crate) fn add(&mut self, bytes: usize, queued: u64, most: usize) {
        self.bytes += bytes;
        if self.mark.is_none() && self.bytes >= most / 2 {
            self.mark = Some(Mark { records: queued, bytes: self.bytes });
        }
    }

    /// The disk has this many of the run's `queued` records.
    pub(crate) fn reached(&mut self, committed: u64, queued: u64) {
        if committed >= queued {
            *self = Self::default();
        } else if let Some(mark) = self.mark.filter(|mark| mark.records <= committed) {
            self.bytes = self.bytes.saturating_sub(mark.bytes);
            self.mark = Some(Mark { records: queued, bytes: self.bytes });
        }
    }

    /// How many records must be on disk before the run may go on.
    pub(crate) fn too_far(&self, most: usize) -> Option<u64> {
        self.mark.filter(|_| self.bytes >= most).map(|mark| mark.records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 100;

    #[test]
    fn whoever_is_too_far_ahead_waits_for_half_of_it() {
        let mut ahead = Ahead::default();
        for record in 1..=9 {
            ahead.add(10, record, MOST);
            assert_eq!(ahead.too_far(MOST), None, "record {record}");
        }
        ahead.add(10, 10, MOST);
        assert_eq!(ahead.too_far(MOST), Some(5));
        ahead.reached(4, 10);
        assert_eq!(ahead.too_far(MOST), Some(5), "not yet");
        ahead.reached(6, 10);
        assert_eq!(ahead.too_far(MOST), None);
        // Half of the room is free again, and the other half is what is waited for next.
        (11..15).for_each(|record| ahead.add(10, record, MOST));
        assert_eq!(ahead.too_far(MOST), None);
        ahead.add(10, 15, MOST);
        assert_eq!(ahead.too_far(MOST), Some(10));
    }

    #[test]
    fn one_large_step_is_waited_for_as_a_whole() {
        let mut ahead = Ahead::default();
        ahead.add(10 * MOST, 7, MOST);
        assert_eq!(ahead.too_far(MOST), Some(7));
        ahead.reached(7, 7);
        assert_eq!(ahead.too_far(MOST), None);
    }

    #[test]
    fn whoever_is_on_disk_altogether_is_not_ahead() {
        let mut ahead = Ahead::default();
        (1..=9).for_each(|record| ahead.add(10, record, MOST));
        ahead.reached(9, 9);
        ahead.add(90, 10, MOST);
        assert_eq!(ahead.too_far(MOST), None);
    }
}
