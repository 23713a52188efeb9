//! How many dead letters are kept, and how long.

use baton_model::Timestamp;

/// How many dead letters are kept, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLetterBounds {
    pub per_webhook: u64,
    pub per_tenant: u64,
    pub days: u64,
}

impl Default for DeadLetterBounds {
    /// A letter has some hundred bytes: a few megabytes for one subscriber, some ten for a tenant.
    fn default() -> Self {
        Self { per_webhook: 10_000, per_tenant: 100_000, days: 30 }
    }
}

impl DeadLetterBounds {
    pub(crate) fn expires_at(&self, at: Timestamp) -> Timestamp {
        at.plus_millis(self.days.saturating_mul(DAY))
    }

    /// What is older than this has expired.
    pub(crate) fn oldest(&self, now: Timestamp) -> Timestamp {
        let days = i64::try_from(self.days.saturating_mul(DAY).saturating_mul(1000)).unwrap_or(i64::MAX);
        Timestamp::from_micros(now.as_micros().saturating_sub(days))
    }
}

pub(crate) const DAY: u64 = 24 * HOUR;

pub(crate) const HOUR: u64 = 60 * 60 * 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_lives_as_long_as_is_set() {
        let bounds = DeadLetterBounds { days: 2, ..DeadLetterBounds::default() };
        let at = Timestamp::from_millis(1_000_000_000_000);
        assert_eq!(bounds.expires_at(at).millis_since(at), 2 * DAY);
        assert_eq!(bounds.oldest(bounds.expires_at(at)), at);
        let for_ever = DeadLetterBounds { days: u64::MAX, ..bounds };
        assert!(for_ever.oldest(at) < Timestamp::from_millis(0));
    }
}
