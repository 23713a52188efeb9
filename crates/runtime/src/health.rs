//! What a host knows of itself: since when it runs, what it found when it started, how much it holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_model::Timestamp;
use baton_store::{Store, Usage};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{Error, Readiness};

/// For how long a measurement of the store is good enough.
const FRESH: Duration = Duration::from_secs(5);

pub(crate) struct HealthState {
    started_at: Timestamp,
    recovery: Mutex<Option<Recovery>>,
    unknown_calls: AtomicU64,
    at_start: OnceLock<u64>,
    usage: tokio::sync::Mutex<Option<(Instant, Usage)>>,
}

/// What the latest start, or the latest return after a failed commit, found to pick up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    pub at: Timestamp,
    /// Unfinished runs.
    pub found: u64,
    /// Those of them that went on at once; the others are tried again.
    pub resumed: u64,
}

/// A host about itself.
#[derive(Clone, Debug)]
pub struct HostStatus {
    /// Another one after each start.
    pub instance: String,
    pub started_at: Timestamp,
    pub readiness: Readiness,
    pub generation: u64,
    /// None while the first is under way.
    pub recovery: Option<Recovery>,
    /// Calls since the start of which nobody knew whether they took place.
    pub unknown_calls: u64,
}

/// What the store holds, and how much more than when the host started.
#[derive(Clone, Debug)]
pub struct StorageUsage {
    pub usage: Usage,
    pub grown: Option<i64>,
}

impl HealthState {
    pub(crate) fn new(started_at: Timestamp) -> Self {
        Self {
            started_at,
            recovery: Mutex::new(None),
            unknown_calls: AtomicU64::new(0),
            at_start: OnceLock::new(),
            usage: tokio::sync::Mutex::new(None),
        }
    }

    pub(crate) fn started_at(&self) -> Timestamp {
        self.started_at
    }

    pub(crate) fn recovered(&self, recovery: Recovery) {
        *self.recovery.lock() = Some(recovery);
    }

    pub(crate) fn unknown_call(&self) {
        self.unknown_calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// How the host is doing, and how much it holds.
pub(crate) struct HostHealth {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) health_state: Arc<HealthState>,
}

impl HostHealth {
    pub(crate) fn condition(&self, readiness: Readiness, generation: u64) -> HostStatus {
        let health_state = &self.health_state;
        HostStatus {
            instance: format!("{:x}", health_state.started_at.as_micros()),
            started_at: health_state.started_at,
            readiness,
            generation,
            recovery: *health_state.recovery.lock(),
            unknown_calls: health_state.unknown_calls.load(Ordering::Relaxed),
        }
    }

    /// How much there is in the store, about.
    pub(crate) async fn held(&self) -> Result<StorageUsage, Error> {
        let usage = self.measure().await?;
        let grown = usage.bytes.zip(self.health_state.at_start.get().copied());
        let grown = grown.map(|(now, then)| now.cast_signed().saturating_sub(then.cast_signed()));
        Ok(StorageUsage { usage, grown })
    }

    /// Notes how much there is to begin with, to tell later how much was added.
    pub(crate) async fn measure_at_start(&self) {
        match self.store.usage().await {
            Ok(usage) => drop(usage.bytes.map(|bytes| self.health_state.at_start.set(bytes))),
            Err(error) => tracing::debug!(%error, "the store could not be measured"),
        }
    }

    /// Measures the store, if that was not done a moment ago.
    pub(crate) async fn measure(&self) -> Result<Usage, Error> {
        let mut known = self.health_state.usage.lock().await;
        if let Some((at, usage)) = &*known
            && at.elapsed() < FRESH
        {
            return Ok(usage.clone());
        }
        let usage = self.store.usage().await?;
        *known = Some((Instant::now(), usage.clone()));
        Ok(usage)
    }
}
