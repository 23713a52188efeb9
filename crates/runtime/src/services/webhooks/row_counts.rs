//! How many rows each tenant's subscribers have got since somebody last counted them: counting is dear, so it waits until
//! it may matter.

use std::collections::BTreeMap;

use baton_model::TenantId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// After how many new rows of a tenant everything that it has is counted. This much may be over a bound for a moment, on
/// each host.
pub(super) const COUNT_AFTER: u64 = 5_000;

#[derive(Default)]
pub(super) struct Growth {
    added: Mutex<BTreeMap<TenantId, u64>>,
    /// Somebody should be counted.
    pub(super) news: Notify,
}

impl Growth {
    pub(super) fn add(&self, tenant: &TenantId, rows: u64) {
        if rows == 0 {
            return;
        }
        let mut added = self.added.lock();
        let count = match added.get_mut(tenant) {
            Some(count) => count,
            None => added.entry(tenant.clone()).or_default(),
        };
        *count += rows;
        if *count >= COUNT_AFTER {
            self.news.notify_one();
        }
    }

    /// Who should be counted now. Their counts begin anew.
    pub(super) fn take(&self) -> Vec<TenantId> {
        let mut added = self.added.lock();
        let grown: Vec<TenantId> =
            added.iter().filter(|(_, count)| **count >= COUNT_AFTER).map(|(tenant, _)| tenant.clone()).collect();
        for tenant in &grown {
            added.remove(tenant);
        }
        grown
    }
}
