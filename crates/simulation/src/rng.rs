//! Chance from a seed.

use std::sync::Arc;

use parking_lot::Mutex;

/// A stream of numbers that the seed names (SplitMix64). Clones draw from the same stream.
#[derive(Clone, Debug)]
pub(crate) struct Rng(Arc<Mutex<u64>>);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(mixed(seed))))
    }

    /// Another stream of the same seed: what draws from one does not move the other.
    pub(crate) fn stream(seed: u64, name: &str) -> Self {
        let salt = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self::new(seed ^ salt)
    }

    pub(crate) fn next(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(*state)
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True so many times in a hundred.
    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        let place = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(place)
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
