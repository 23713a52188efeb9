//! A file as programs see it, and as it would be after a power loss.

use std::collections::BTreeSet;

use crate::chance::Chance;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Image {
    /// In the cache of the operating system.
    now: Vec<u8>,
    /// On the platter.
    durable: Vec<u8>,
    /// Sectors that were written and not synced.
    dirty: BTreeSet<usize>,
}

fn place(sector: usize, length: usize) -> std::ops::Range<usize> {
    let begin = (sector * SECTOR).min(length);
    begin..(begin + SECTOR).min(length)
}

/// Copies one sector as far as `from` has it.
fn copy(sector: usize, from: &[u8], to: &mut Vec<u8>) {
    let place = place(sector, from.len());
    if to.len() < place.end {
        to.resize(place.end, 0);
    }
    to[place.clone()].copy_from_slice(&from[place]);
}

impl Image {
    /// What was there before the disk began to fail is on it.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { now: bytes.clone(), durable: bytes, dirty: BTreeSet::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.now.len()
    }

    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        // A gap is zeros, and is written too.
        let begin = at.min(self.now.len());
        if self.now.len() < end {
            self.now.resize(end, 0);
        }
        self.now[at..end].copy_from_slice(bytes);
        self.dirty.extend(begin / SECTOR..end.div_ceil(SECTOR));
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.now.resize(length, 0);
        let end = length.div_ceil(SECTOR);
        self.dirty.retain(|sector| *sector < end);
    }

    pub(crate) fn sync(&mut self) {
        for sector in std::mem::take(&mut self.dirty) {
            copy(sector, &self.now, &mut self.durable);
        }
        self.durable.resize(self.now.len(), 0);
    }

    /// Some of it is written, and nobody knows any more that the rest is not.
    pub(crate) fn fail_to_sync(&mut self, chance: &mut Chance) {
        for sector in std::mem::take(&mut self.dirty) {
            if chance.one_in(2) {
                copy(sector, &self.now, &mut self.durable);
            }
        }
    }

    /// What is there after a power loss: what was synced, and some sectors of what was not, in any order.
    pub(crate) fn after_power_loss(&self, chance: &mut Chance) -> Vec<u8> {
        let mut left = self.durable.clone();
        for sector in &self.dirty {
            if chance.one_in(2) {
                copy(*sector, &self.now, &mut left);
            }
        }
        // The length is written by itself: room that was given may be empty, and what was cut off may be there still.
        if chance.one_in(2) {
            left.resize(self.now.len(), 0);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(bytes: &[u8]) -> Vec<u8> {
        bytes.chunks(SECTOR).map(|sector| sector[0]).collect()
    }

    #[test]
    fn what_was_synced_stays_and_the_rest_is_torn_by_sectors() {
        let mut image = Image::of(vec![1; 4 * SECTOR]);
        image.write(0, &[2; 2 * SECTOR]);
        image.sync();
        image.write(2 * SECTOR, &[3; 4 * SECTOR]);
        let mut seen = BTreeSet::new();
        for seed in 0..200 {
            let left = sectors(&image.after_power_loss(&mut Chance::new(seed)));
            assert_eq!(left[..2], [2, 2]);
            assert!(left[2..].iter().all(|first| [0, 1, 3].contains(first)), "{left:?}");
            seen.insert(left);
        }
        assert!(
            seen.contains(&vec![2, 2, 1, 3, 0, 3]) && seen.contains(&vec![2, 2, 1, 1]),
            "in any order, or not at all"
        );
    }

    #[test]
    fn after_a_failed_sync_a_good_one_does_not_help() {
        let mut image = Image::of(vec![1; 64 * SECTOR]);
        image.write(0, &[2; 64 * SECTOR]);
        image.fail_to_sync(&mut Chance::new(7));
        image.sync();
        let left = sectors(&image.after_power_loss(&mut Chance::new(8)));
        assert!(left.contains(&1) && left.contains(&2), "{left:?}");
        image.write(0, &[3; 64 * SECTOR]);
        image.sync();
        assert_eq!(sectors(&image.after_power_loss(&mut Chance::new(9))), [3; 64], "what is written again is synced");
    }

    #[test]
    fn a_file_that_was_cut_may_be_whole_again() {
        let mut image = Image::of(vec![1; 8 * SECTOR]);
        image.truncate(SECTOR);
        let lengths: BTreeSet<usize> =
            (0..50).map(|seed| image.after_power_loss(&mut Chance::new(seed)).len()).collect();
        assert_eq!(lengths, BTreeSet::from([SECTOR, 8 * SECTOR]));
        image.sync();
        assert_eq!(image.after_power_loss(&mut Chance::new(1)).len(), SECTOR);
    }
}
