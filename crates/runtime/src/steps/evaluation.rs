//! How much tenants evaluate. One that uses more units of expressions than its share of a second waits before its next
//! turn, until the average is right again. What a step may use at most is the engine's to say; this is about many steps.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use baton_model::TenantId;
use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a tenant may have evaluated at full speed before it waits: a burst of this many seconds of its share.
const BURST_SECONDS: u64 = 1;
/// Sweeping fewer tenants is not worth it.
const FEW_TENANTS: usize = 256;

thread_local! {
    /// What was evaluated on this thread since somebody asked.
    static UNITS: Cell<u64> = const { Cell::new(0) };
}

/// Told by the engine after every evaluation.
pub(super) fn evaluated(units: u64) {
    UNITS.set(UNITS.get().saturating_add(units));
}

/// Shares of tenants. Without a limit nothing is counted.
pub(crate) struct EvaluationShares {
    per_second: Option<u64>,
    tenants: Mutex<BTreeMap<TenantId, Used>>,
}

/// What a tenant has used beyond what time has made up for.
#[derive(Clone, Copy)]
struct Used {
    units: u64,
    at: Instant,
}

impl EvaluationShares {
    pub(crate) fn new(per_second: Option<u64>) -> Self {
        Self { per_second: per_second.filter(|units| *units > 0), tenants: Mutex::default() }
    }

    /// Does work of a tenant's, and counts what it evaluates.
    pub(super) fn counted<R>(&self, tenant: &TenantId, work: impl FnOnce() -> R) -> R {
        let Some(per_second) = self.per_second else { return work() };
        let before = UNITS.replace(0);
        let done = work();
        let units = UNITS.replace(before);
        if units > 0 {
            self.add(tenant, units, per_second, Instant::now());
        }
        done
    }

    /// The same for work that waits in between.
    pub(super) async fn counted_polls<F: Future>(&self, tenant: &TenantId, work: F) -> F::Output {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|context| self.counted(tenant, || work.as_mut().poll(context))).await
    }

    fn add(&self, tenant: &TenantId, units: u64, per_second: u64, now: Instant) {
        let mut tenants = self.tenants.lock();
        if tenants.len() > FEW_TENANTS && !tenants.contains_key(tenant) {
            tenants.retain(|_, used| used.left(now, per_second) > 0);
        }
        let used = tenants.entry(tenant.clone()).or_insert(Used { units: 0, at: now });
        *used = Used { units: used.left(now, per_second).saturating_add(units), at: now };
    }

    /// How long a tenant has to wait before it may go on: nothing, for nearly everybody.
    pub(super) fn wait(&self, tenant: &TenantId) -> Option<Duration> {
        self.wait_at(tenant, Instant::now())
    }

    fn wait_at(&self, tenant: &TenantId, now: Instant) -> Option<Duration> {
        let per_second = self.per_second?;
        let left = self.tenants.lock().get(tenant)?.left(now, per_second);
        let over = left.checked_sub(per_second.saturating_mul(BURST_SECONDS)).filter(|over| *over > 0)?;
        Some(Duration::from_secs_f64(over as f64 / per_second as f64).max(Duration::from_millis(1)))
    }
}

impl Used {
    fn left(self, now: Instant, per_second: u64) -> u64 {
        let made_up =
            now.saturating_duration_since(self.at).as_micros().saturating_mul(u128::from(per_second)) / 1_000_000;
        self.units.saturating_sub(u64::try_from(made_up).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_evaluates_more_than_its_share_waits_until_the_average_is_right() {
        let (shares, start) = (EvaluationShares::new(Some(1000)), Instant::now());
        let (busy, calm) = (TenantId::new("busy"), TenantId::new("calm"));
        let waits =
            |tenant, seconds| shares.wait_at(tenant, start + Duration::from_secs(seconds)).map(|wait| wait.as_secs());
        shares.add(&busy, 1000, 1000, start);
        shares.add(&calm, 1, 1000, start);
        assert_eq!((waits(&busy, 0), waits(&calm, 0)), (None, None), "a burst is free");
        shares.add(&busy, 3000, 1000, start);
        assert_eq!((waits(&busy, 0), waits(&calm, 0)), (Some(3), None));
        assert_eq!((waits(&busy, 2), waits(&busy, 3)), (Some(1), None));
    }

    #[test]
    fn what_others_evaluated_on_the_thread_is_not_counted_and_old_tenants_are_forgotten() {
        let (shares, start) = (EvaluationShares::new(Some(10)), Instant::now());
        let a = TenantId::new("a");
        evaluated(1_000_000);
        shares.counted(&a, || ());
        assert!(shares.tenants.lock().is_empty());
        shares.counted(&a, || shares.counted(&TenantId::new("b"), || evaluated(5)));
        assert_eq!(shares.tenants.lock().keys().map(TenantId::as_str).collect::<Vec<_>>(), ["b"]);
        for number in 0..10 * FEW_TENANTS as u32 {
            shares.add(&TenantId::new(format!("tenant-{number}")), 1, 10, start + number * Duration::from_millis(200));
        }
        assert!(shares.tenants.lock().len() <= FEW_TENANTS + 2);
        assert!(EvaluationShares::new(Some(0)).wait(&a).is_none());
    }
}
