//! How much was written for each tenant since this process began.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::TenantId;
use dashmap::DashMap;

/// A number for each tenant that ever wrote here: as many as have keys.
#[derive(Default)]
pub(crate) struct WrittenBytes(DashMap<TenantId, AtomicU64>);

impl WrittenBytes {
    pub(crate) fn add(&self, tenant: &TenantId, bytes: usize) {
        if let Some(written) = self.0.get(tenant) {
            written.fetch_add(bytes as u64, Ordering::Relaxed);
            return;
        }
        self.0.entry(tenant.clone()).or_default().fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn by(&self, tenant: &TenantId) -> u64 {
        self.0.get(tenant).map_or(0, |written| written.load(Ordering::Relaxed))
    }
}
