//! How much was written for each tenant since this process began.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::TenantId;
use baton_store::Write;
use dashmap::DashMap;

/// Two numbers for each tenant that ever wrote here: as many as have keys.
#[derive(Default)]
pub(crate) struct WrittenBytes(DashMap<TenantId, Written>);

#[derive(Default)]
struct Written {
    all: AtomicU64,
    /// What is in no log, and so is not found by looking at logs.
    beside_logs: AtomicU64,
}

/// What stays until somebody takes it away, and is in no log: definitions, memory, files and remarks.
fn is_beside_logs(write: &Write) -> bool {
    matches!(write, Write::PutBlob { .. } | Write::PutWorkflow(_) | Write::Change { .. } | Write::Annotate(_))
}

impl WrittenBytes {
    /// Counts writes of a tenant, and says how many bytes they have.
    pub(crate) fn add(&self, tenant: &TenantId, writes: &[Write]) -> usize {
        let bytes: usize = writes.iter().map(Write::bytes).sum();
        let beside: usize = writes.iter().filter(|write| is_beside_logs(write)).map(Write::bytes).sum();
        let count = |written: &Written| {
            written.all.fetch_add(bytes as u64, Ordering::Relaxed);
            written.beside_logs.fetch_add(beside as u64, Ordering::Relaxed);
        };
        match self.0.get(tenant) {
            Some(written) => count(&written),
            None => count(&self.0.entry(tenant.clone()).or_default()),
        }
        bytes
    }

    pub(crate) fn by(&self, tenant: &TenantId) -> u64 {
        self.0.get(tenant).map_or(0, |written| written.all.load(Ordering::Relaxed))
    }

    /// The part of [`Self::by`] that is in no log.
    pub(crate) fn beside_logs(&self, tenant: &TenantId) -> u64 {
        self.0.get(tenant).map_or(0, |written| written.beside_logs.load(Ordering::Relaxed))
    }
}
