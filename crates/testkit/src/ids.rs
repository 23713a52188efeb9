use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{Digest, RunId};
use baton_runtime::Ids;

/// Names that depend on the seed and on how many were asked for before, so that two lives of one host that ask in the
/// same order get the same ones. Not secret at all.
pub struct SeededIds {
    seed: u64,
    next: AtomicU64,
}

impl SeededIds {
    pub fn new(seed: u64) -> Self {
        Self { seed, next: AtomicU64::new(0) }
    }

    fn hex(&self, what: &str, digits: usize) -> String {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = String::new();
        for part in 0_u64.. {
            if text.len() >= digits {
                break;
            }
            text.push_str(Digest::of_bytes(format!("{}/{what}/{n}/{part}", self.seed)).as_str());
        }
        text.truncate(digits);
        text
    }
}

impl Ids for SeededIds {
    fn run(&self) -> RunId {
        RunId::new(format!("run_{}", self.hex("run", 32)))
    }

    fn secret(&self, bytes: usize) -> String {
        self.hex("secret", bytes * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_names_the_sequence() {
        let (a, b, other) = (SeededIds::new(1), SeededIds::new(1), SeededIds::new(2));
        let first = a.run();
        assert_eq!(first, b.run());
        assert_ne!(first, other.run());
        assert_ne!(first, a.run());
        assert_eq!(first.as_str().len(), 36);
        assert_eq!(a.secret(40).len(), 80);
    }
}
