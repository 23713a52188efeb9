//! The same names every time, so that a case that fails fails the same way again.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::{Digest, RunId};
use baton_runtime::Ids;

/// A run's id has so many digits.
const RUN_DIGITS: usize = 32;

#[derive(Default)]
pub(crate) struct CaseIds {
    next: AtomicU64,
}

impl CaseIds {
    fn hex(&self, what: &str, digits: usize) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = String::new();
        for part in 0_u64.. {
            if text.len() >= digits {
                break;
            }
            text.push_str(Digest::of_bytes(format!("{what}/{number}/{part}")).as_str());
        }
        text.truncate(digits);
        text
    }
}

impl Ids for CaseIds {
    fn run(&self) -> RunId {
        RunId::new(format!("run_{}", self.hex("run", RUN_DIGITS)))
    }

    fn secret(&self, bytes: usize) -> String {
        self.hex("secret", bytes * 2)
    }
}
