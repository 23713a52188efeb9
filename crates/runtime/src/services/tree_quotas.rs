//! How many trees of runs a tenant may have at work, and how many that wait for somebody. Asked before a start takes a
//! turn or a lock.
//!
//! The store knows how many there are. It is asked now and then, and when what was started since might be too much. To count
//! is to look at an index entry for each tree, so the more a tenant has, the longer a count is good for: what that costs a
//! second is bounded ([`COUNTED_A_SECOND`]).

use std::collections::HashMap;
use std::sync::Arc;

use baton_model::{TenantId, Timestamp, code};
use baton_store::{ActiveTrees, Store};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::services::stored_bytes::StoredBytes;
use crate::tree_limits::TreeLimits;
use crate::{Error, ErrorKind, Options};

/// How long a count is good for where other hosts start runs, too.
const GOOD_FOR_MS: i64 = 1000;
/// The same where nobody else does: runs that were asked something and go on are at work again.
const GOOD_ALONE_MS: i64 = 60_000;
/// A tenant that has too much is counted again no sooner than this: whoever asks all the time is answered from memory.
const APART_MS: i64 = 100;
/// How many index entries are looked at for one tenant in a second, at most: a hundredth of what a core can.
const COUNTED_A_SECOND: u64 = 100_000;
const RETRY_AFTER_SECONDS: u64 = 1;

/// Lets trees begin.
pub(crate) struct TreeQuotas {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) stored_bytes: Arc<StoredBytes>,
    /// One for each tenant that ever started a run here: as many as have keys.
    pub(crate) tenants: Mutex<HashMap<TenantId, Arc<TenantTrees>>>,
}

#[derive(Default)]
pub(crate) struct TenantTrees {
    /// Whoever counts. Others wait for what comes of it.
    counting: tokio::sync::Mutex<()>,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    counted: Option<(ActiveTrees, Timestamp)>,
    /// Durable since the count began. Those that the count saw nevertheless are counted twice until the next one.
    since: u64,
    /// On their way to the disk.
    starting: u64,
}

/// Leave for one tree to begin. Holds its place until the tree is durable, or is not to be.
pub(crate) struct Admitted {
    tenant: Arc<TenantTrees>,
    durable: bool,
}

impl Admitted {
    /// The tree is on disk.
    pub(crate) fn durable(mut self) {
        self.durable = true;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut known = self.tenant.known.lock();
        known.starting -= 1;
        known.since += u64::from(self.durable);
    }
}

impl TreeQuotas {
    /// A place for one more tree of this tenant, or why there is none.
    pub(crate) async fn admit(&self, tenant: &TenantId) -> Result<Option<Admitted>, Error> {
        self.stored_bytes.admit(tenant)?;
        let limits = self.options.tree_limits;
        if limits.running.is_none() && limits.waiting.is_none() {
            return Ok(None);
        }
        let trees = Arc::clone(self.tenants.lock().entry(tenant.clone()).or_default());
        if let Some(admitted) = self.admit_as_known(&trees, limits) {
            return Ok(Some(admitted));
        }
        let _counting = trees.counting.lock().await;
        // Somebody else may have counted meanwhile.
        if let Some(admitted) = self.admit_as_known(&trees, limits) {
            return Ok(Some(admitted));
        }
        self.count(tenant, &trees).await?;
        let mut known = trees.known.lock();
        match known.over(limits) {
            Some(over) => Err(too_many(over)),
            None => Ok(Some(known.admit(&trees))),
        }
    }

    /// Without asking the store: if there is room even if every tree that was at work waits by now.
    fn admit_as_known(&self, trees: &Arc<TenantTrees>, limits: TreeLimits) -> Option<Admitted> {
        let mut known = trees.known.lock();
        let (counted, at) = known.counted?;
        let good_for = if self.store.shared().is_some() { GOOD_FOR_MS } else { GOOD_ALONE_MS };
        let old = self.age_ms(at) > good_for.max(apart_ms(counted));
        let at_work = counted.running + known.since + known.starting;
        let room = |limit: Option<u64>, count: u64| limit.is_none_or(|limit| count < limit);
        let admitted = !old && room(limits.running, at_work) && room(limits.waiting, counted.waiting + at_work);
        admitted.then(|| known.admit(trees))
    }

    async fn count(&self, tenant: &TenantId, trees: &TenantTrees) -> Result<(), Error> {
        let (before, lately) = {
            let known = trees.known.lock();
            (known.since, known.counted.is_some_and(|(counted, at)| self.age_ms(at) < apart_ms(counted)))
        };
        if lately {
            return Ok(());
        }
        let at = self.clock.now();
        let counted = self.store.active_trees(tenant).await?;
        let mut known = trees.known.lock();
        known.counted = Some((counted, at));
        known.since -= before;
        Ok(())
    }

    fn age_ms(&self, at: Timestamp) -> i64 {
        (self.clock.now().as_micros() - at.as_micros()) / 1000
    }
}

/// How long a count of so many trees is not made again.
fn apart_ms(counted: ActiveTrees) -> i64 {
    let entries = counted.running.saturating_add(counted.waiting);
    i64::try_from(entries.saturating_mul(1000) / COUNTED_A_SECOND).unwrap_or(i64::MAX).max(APART_MS)
}

enum Over {
    Running(u64),
    Waiting(u64),
}

impl Known {
    fn admit(&mut self, trees: &Arc<TenantTrees>) -> Admitted {
        self.starting += 1;
        Admitted { tenant: Arc::clone(trees), durable: false }
    }

    fn over(&self, limits: TreeLimits) -> Option<Over> {
        let counted = self.counted.map(|(counted, _)| counted).unwrap_or_default();
        let at_work = counted.running + self.since + self.starting;
        let running = limits.running.filter(|limit| at_work >= *limit).map(Over::Running);
        running.or_else(|| limits.waiting.filter(|limit| counted.waiting >= *limit).map(Over::Waiting))
    }
}

fn too_many(over: Over) -> Error {
    let (what, limit, message, hint) = match over {
        Over::Running(limit) => (
            "runningTrees",
            limit,
            format!("There are {limit} runs at work, as many as one tenant may have."),
            "Wait for some to end, or cancel some. The setting is max_running_trees_per_tenant.",
        ),
        Over::Waiting(limit) => (
            "waitingTrees",
            limit,
            format!("There are {limit} runs that wait for an answer, as many as one tenant may have."),
            "Answer or cancel some. The setting is max_waiting_trees_per_tenant.",
        ),
    };
    metrics::counter!("baton_over_quota_total", "what" => what).increment(1);
    Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message)
        .with("retryAfter", RETRY_AFTER_SECONDS)
        .with("scope", "tenant")
        .with("quota", what)
        .with("limit", limit)
        .with("hint", hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many trees there are, and however often somebody asks: so many index entries a second, and no more.
    #[test]
    fn what_counting_costs_a_second_is_bounded() {
        for running in [0, 1, 1_000, 100_000, 1_000_000, 10_000_000] {
            let counted = ActiveTrees { running, waiting: running / 10 };
            let entries = counted.running + counted.waiting;
            let counts_of_an_hour = 3_600_000 / apart_ms(counted).unsigned_abs();
            let a_second = counts_of_an_hour * entries / 3600;
            assert!(a_second <= COUNTED_A_SECOND + entries / 3600, "{running}: {a_second} entries a second");
            assert!(apart_ms(counted) >= APART_MS);
        }
        assert_eq!(apart_ms(ActiveTrees { running: 1_000_000, waiting: 0 }), 10_000);
    }
}
