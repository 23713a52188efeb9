//! About how much tenants have stored, and who may store more.
//!
//! What is written is counted exactly while this process lives, wherever it comes from: all commits go the same way. The
//! logs that were there before are estimated once, in the background: trees and their records are counted, and the newest
//! of them say what a record of this tenant weighs. Nobody waits for that: until it is known, nobody is refused. Runs that
//! are under way go on: whoever has too much begins and stores nothing new.

use std::collections::HashMap;
use std::sync::Arc;

use baton_model::{TenantId, Timestamp, code};
use baton_store::{RunPlace, Store};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::journal::written::WrittenBytes;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Options};

/// Trees that are read at a time.
const PAGE: usize = 500;
/// How many of the newest trees say what a record weighs, and how much of each is read.
const SAMPLED_TREES: usize = 16;
const SAMPLED_RECORDS: u64 = 64;
const SAMPLED_BYTES: usize = 256 * 1024;
/// A tenant that has too much is looked at again no sooner than this: it may have pruned.
const APART_MS: i64 = 30_000;
const RETRY_AFTER_SECONDS: u64 = 30;

/// Lets tenants store more, as long as they have not too much.
pub(crate) struct StoredBytes {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) written: Arc<WrittenBytes>,
    /// One for each tenant that ever asked: as many as have keys.
    pub(crate) known: Mutex<HashMap<TenantId, Known>>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Known {
    /// What there was, how much had been written by then, and when that was.
    counted: Option<(u64, u64, Timestamp)>,
    counting: bool,
}

impl StoredBytes {
    /// Refuses a tenant that has as much as it may have.
    pub(crate) fn admit(self: &Arc<Self>, tenant: &TenantId) -> Result<(), Error> {
        let Some(limit) = self.options.work_limits.stored_bytes else { return Ok(()) };
        let mut known = self.known.lock();
        let known = known.entry(tenant.clone()).or_default();
        let over = known.counted.is_some_and(|(there, before, _)| {
            there.saturating_add(self.written.by(tenant).saturating_sub(before)) >= limit
        });
        let old = known
            .counted
            .is_none_or(|(_, _, at)| over && self.clock.now().as_micros() - at.as_micros() > APART_MS * 1000);
        if old && !known.counting {
            known.counting = true;
            let tenant = tenant.clone();
            self.tasks.spawn(self, |room| async move { room.count(&tenant).await });
        }
        if over { Err(too_much(limit)) } else { Ok(()) }
    }

    async fn count(&self, tenant: &TenantId) {
        let (before, beside, at) = (self.written.by(tenant), self.written.beside_logs(tenant), self.clock.now());
        let counted = self.estimate(tenant).await.map(|logs| logs.saturating_add(beside));
        if let Err(error) = &counted {
            tracing::debug!(%tenant, %error, "how much a tenant has stored could not be counted");
        }
        let mut known = self.known.lock();
        let known = known.entry(tenant.clone()).or_default();
        known.counting = false;
        if let Ok(there) = counted {
            known.counted = Some((there, before, at));
        }
    }

    async fn estimate(&self, tenant: &TenantId) -> Result<u64, Error> {
        let (mut records, mut sample) = (0_u64, Sample::default());
        let mut before: Option<RunPlace> = None;
        loop {
            let page = self.store.kept_trees(tenant, before, PAGE).await?;
            for tree in &page {
                records = records.saturating_add(tree.records);
                if sample.trees < SAMPLED_TREES {
                    sample.trees += 1;
                    // The end of a log says more than its beginning: what grows has grown by then.
                    let from = tree.records.saturating_sub(SAMPLED_RECORDS);
                    let some =
                        self.store.records_within(&tree.id, from, SAMPLED_RECORDS as usize, SAMPLED_BYTES).await?;
                    sample.records += some.len() as u64;
                    sample.bytes += some.iter().map(|record| record.weight() as u64).sum::<u64>();
                }
            }
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some(last.place),
                _ => break,
            }
        }
        Ok(records.saturating_mul(sample.bytes) / sample.records.max(1))
    }
}

#[derive(Default)]
struct Sample {
    trees: usize,
    records: u64,
    bytes: u64,
}

fn too_much(limit: u64) -> Error {
    metrics::counter!("baton_over_quota_total", "what" => "storedBytes").increment(1);
    let message = format!("This tenant has stored about {limit} bytes, as much as one tenant may have.");
    Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message)
        .with("retryAfter", RETRY_AFTER_SECONDS)
        .with("scope", "tenant")
        .with("quota", "storedBytes")
        .with("limit", limit)
        .with(
            "hint",
            "Prune runs that are no longer needed (`baton run prune`). The setting is max_stored_bytes_per_tenant.",
        )
}
