//! How much tenants have computed lately, in time on step threads.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_model::TenantId;
use tokio::time::Instant;

/// What is looked at: this segment of time, and the one before it.
const STRETCH: Duration = Duration::from_millis(100);
/// What a tenant may compute in two segments before it gives way: a third of one core.
const MUCH: Duration = Duration::from_millis(66);

/// Only tenants that were stepped in the last two segments are in here.
#[derive(Default)]
pub(super) struct Usage {
    began: Option<Instant>,
    now: BTreeMap<TenantId, Duration>,
    before: BTreeMap<TenantId, Duration>,
}

impl Usage {
    pub(super) fn add(&mut self, tenant: &TenantId, time: Duration, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let age = now.saturating_duration_since(began);
        if age >= STRETCH {
            let last = std::mem::take(&mut self.now);
            self.before = if age < 2 * STRETCH { last } else { BTreeMap::new() };
            self.began = Some(now);
        }
        match self.now.get_mut(tenant) {
            Some(sum) => *sum += time,
            None => drop(self.now.insert(tenant.clone(), time)),
        }
    }

    /// Whether a tenant computes so much, while others work too, that it gives way.
    pub(super) fn is_much(&self, tenant: &TenantId) -> bool {
        let others = self.now.keys().chain(self.before.keys()).any(|known| known != tenant);
        let of = |segment: &BTreeMap<TenantId, Duration>| segment.get(tenant).copied().unwrap_or_default();
        others && of(&self.now) + of(&self.before) >= MUCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn whoever_computes_much_gives_way_while_others_work() {
        let (a, b, start) = (TenantId::new("a"), TenantId::new("b"), Instant::now());
        let mut usage = Usage::default();
        for tick in 0..10 {
            usage.add(&a, 10 * MS, start + 10 * MS * tick);
        }
        assert!(!usage.is_much(&a), "nobody else is there");
        usage.add(&b, MS, start + 95 * MS);
        assert!(usage.is_much(&a) && !usage.is_much(&b));
        // In the next segment what it did in the last one still counts, and the one after that it does not.
        usage.add(&b, MS, start + 105 * MS);
        assert!(usage.is_much(&a));
        usage.add(&b, MS, start + 206 * MS);
        assert!(!usage.is_much(&a));
    }

    #[test]
    fn after_a_pause_nothing_is_held_against_anybody() {
        let (a, b, start) = (TenantId::new("a"), TenantId::new("b"), Instant::now());
        let mut usage = Usage::default();
        usage.add(&a, 90 * MS, start);
        usage.add(&b, MS, start + 1000 * MS);
        assert!(!usage.is_much(&a));
    }
}
