//! What each tenant has in progress, and how much that may be: requests, streams, and bytes of answers that wait for
//! their readers. One that has too much is told so, and nobody else notices.
//!
//! Without a number for it, a tenant may have as many requests in progress as are still free. So one tenant alone gets
//! half of all places, two a third each, and there is always something left for whoever comes next.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use baton_model::{TenantId, code};
use parking_lot::Mutex;

use crate::error::ApiError;

const RETRY_AFTER_SECONDS: u64 = 1;

/// The part of all places that one tenant's streams may take, where no number says otherwise: a quarter.
const STREAM_SHARE: usize = 4;

/// The numbers. What is absent follows from the others.
#[derive(Clone, Debug)]
pub struct TenantLimits {
    /// Requests and streams in progress at once.
    pub in_flight: Option<usize>,
    /// Streams among them.
    pub streams: Option<usize>,
    /// Bytes of answers that were made and not yet sent.
    pub reply_bytes: usize,
    /// Requests per second of all keys of a tenant together; no limit when absent.
    pub rate_per_second: Option<u32>,
}

impl Default for TenantLimits {
    fn default() -> Self {
        // Three hundred answers of the largest common size, or thirty debug bundles.
        Self { in_flight: None, streams: None, reply_bytes: 256 * 1024 * 1024, rate_per_second: None }
    }
}

pub(crate) struct Quotas {
    total: usize,
    limits: TenantLimits,
    /// Whether there is anybody to leave something to.
    several: bool,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    all: usize,
    /// Only those that use something.
    by_tenant: HashMap<Whose, Usage>,
}

/// Nobody is whoever calls without a key: all of them together.
pub(crate) type Whose = Option<TenantId>;

#[derive(Default)]
struct Usage {
    in_flight: usize,
    streams: usize,
    bytes: usize,
}

/// A request or a stream in progress.
pub(crate) struct InProgress {
    quotas: Arc<Quotas>,
    whose: Whose,
    bytes: usize,
}

/// A stream in progress.
pub(crate) struct OpenStream {
    quotas: Arc<Quotas>,
    whose: Whose,
}

impl Quotas {
    pub(crate) fn new(total: usize, limits: TenantLimits, several: bool) -> Arc<Self> {
        Arc::new(Self { total: total.max(1), limits, several, used: Mutex::default() })
    }

    /// Begins a request.
    pub(crate) fn enter(self: &Arc<Self>, whose: Whose) -> Result<InProgress, ApiError> {
        let mut used = self.used.lock();
        if used.all >= self.total {
            drop(used);
            counted("host_in_flight");
            return Err(ApiError::busy(RETRY_AFTER_SECONDS));
        }
        let free = self.total - used.all;
        let limit = match self.limits.in_flight {
            Some(limit) => Some(limit),
            None if self.several || whose.is_none() => Some(free),
            None => None,
        };
        let usage = used.by_tenant.entry(whose.clone()).or_default();
        if let Some(limit) = limit.filter(|limit| usage.in_flight >= *limit) {
            drop(used);
            counted("in_flight");
            let message =
                format!("There are {limit} requests and streams in progress, as many as one tenant may have.");
            return Err(too_many(message, limit, "Wait for some to end, or close streams that nobody reads."));
        }
        usage.in_flight += 1;
        used.all += 1;
        drop(used);
        Ok(InProgress { quotas: Arc::clone(self), whose, bytes: 0 })
    }

    /// Begins a stream; its request is in progress already.
    pub(crate) fn stream(self: &Arc<Self>, tenant: &TenantId) -> Result<OpenStream, ApiError> {
        let limit = match self.limits.streams {
            Some(limit) => Some(limit),
            None if self.several => Some((self.total / STREAM_SHARE).max(1)),
            None => None,
        };
        let whose = Some(tenant.clone());
        let mut used = self.used.lock();
        let usage = used.by_tenant.entry(whose.clone()).or_default();
        if let Some(limit) = limit.filter(|limit| usage.streams >= *limit) {
            used.forget_idle(&whose);
            drop(used);
            counted("streams");
            let message = format!("There are {limit} streams open, as many as one tenant may have.");
            return Err(too_many(message, limit, "Close streams that nobody reads, or poll instead."));
        }
        usage.streams += 1;
        drop(used);
        Ok(OpenStream { quotas: Arc::clone(self), whose })
    }
}

impl Used {
    fn forget_idle(&mut self, whose: &Whose) {
        let idle = |usage: &Usage| usage.in_flight == 0 && usage.streams == 0 && usage.bytes == 0;
        if self.by_tenant.get(whose).is_some_and(idle) {
            self.by_tenant.remove(whose);
        }
    }
}

impl InProgress {
    /// Says how many bytes of its answer are held now, instead of those that were.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), ApiError> {
        let limit = self.quotas.limits.reply_bytes;
        let mut used = self.quotas.used.lock();
        let Some(usage) = used.by_tenant.get_mut(&self.whose) else { return Ok(()) };
        let others = usage.bytes.saturating_sub(self.bytes);
        // One answer always goes, however large it is.
        if bytes > 0 && others > 0 && others.saturating_add(bytes) > limit {
            drop(used);
            counted("reply_bytes");
            let message = format!("Answers of {limit} bytes wait to be read, as much as one tenant may have.");
            return Err(too_many(message, limit, "Read answers as they come, or ask for less at once."));
        }
        usage.bytes = others.saturating_add(bytes);
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut used = self.quotas.used.lock();
        used.all -= 1;
        if let Some(usage) = used.by_tenant.get_mut(&self.whose) {
            usage.in_flight -= 1;
            usage.bytes = usage.bytes.saturating_sub(self.bytes);
        }
        used.forget_idle(&self.whose);
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut used = self.quotas.used.lock();
        if let Some(usage) = used.by_tenant.get_mut(&self.whose) {
            usage.streams -= 1;
        }
        used.forget_idle(&self.whose);
    }
}

fn counted(what: &'static str) {
    metrics::counter!("baton_http_over_quota_total", "what" => what).increment(1);
}

fn too_many(message: String, limit: usize, hint: &'static str) -> ApiError {
    ApiError::new(StatusCode::TOO_MANY_REQUESTS, code::RATE_LIMITED, message)
        .with("retryAfterMs", RETRY_AFTER_SECONDS * 1000)
        .with("scope", "tenant")
        .with("limit", limit)
        .with("hint", hint)
        .header(RETRY_AFTER, RETRY_AFTER_SECONDS.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> Whose {
        Some(TenantId::new(name))
    }

    fn fill(quotas: &Arc<Quotas>, whose: &Whose) -> Vec<InProgress> {
        std::iter::from_fn(|| quotas.enter(whose.clone()).ok()).collect()
    }

    #[test]
    fn whoever_comes_next_always_finds_something() {
        let quotas = Quotas::new(100, TenantLimits::default(), true);
        let first = fill(&quotas, &tenant("a"));
        assert_eq!(first.len(), 50);
        let second = fill(&quotas, &tenant("b"));
        assert_eq!(second.len(), 25);
        assert_eq!(fill(&quotas, &None).len(), 13, "nobody has a share like everybody");
        let refusal = quotas.enter(tenant("a")).err().unwrap();
        assert_eq!((refusal.status.as_u16(), refusal.code), (429, "rate_limited"));
        drop((first, second));
        assert!(quotas.used.lock().by_tenant.is_empty());
        assert_eq!(quotas.used.lock().all, 0);
    }

    #[test]
    fn a_tenant_of_its_own_host_has_all_of_it() {
        let quotas = Quotas::new(10, TenantLimits::default(), false);
        let all = fill(&quotas, &tenant("a"));
        assert_eq!(all.len(), 10);
        assert_eq!(quotas.enter(tenant("a")).err().unwrap().status, 503);
        let streams: Vec<_> = std::iter::from_fn(|| quotas.stream(&TenantId::new("a")).ok()).take(100).collect();
        assert_eq!(streams.len(), 100, "streams count as requests already");
    }

    #[test]
    fn numbers_that_are_given_hold() {
        let limits = TenantLimits { in_flight: Some(3), streams: Some(2), ..TenantLimits::default() };
        let quotas = Quotas::new(100, limits, true);
        assert_eq!(fill(&quotas, &tenant("a")).len(), 3);
        let a = TenantId::new("a");
        let (_one, two) = (quotas.stream(&a).unwrap(), quotas.stream(&a).unwrap());
        let refusal = quotas.stream(&a).err().unwrap();
        assert_eq!((refusal.status.as_u16(), &refusal.details["limit"]), (429, &2.into()));
        assert!(refusal.details["hint"].is_string());
        assert!(quotas.stream(&TenantId::new("b")).is_ok());
        drop(two);
        assert!(quotas.stream(&a).is_ok());
    }

    #[test]
    fn answers_that_nobody_reads_are_bounded_together_and_one_always_goes() {
        let limits = TenantLimits { reply_bytes: 1000, ..TenantLimits::default() };
        let quotas = Quotas::new(100, limits, true);
        let mut large = quotas.enter(tenant("a")).unwrap();
        large.hold(5000).unwrap();
        let mut next = quotas.enter(tenant("a")).unwrap();
        assert_eq!(next.hold(1).unwrap_err().status, 429);
        let mut other = quotas.enter(tenant("b")).unwrap();
        other.hold(900).unwrap();
        // What it holds now is instead of what it held.
        other.hold(900).unwrap();
        large.hold(0).unwrap();
        next.hold(1000).unwrap();
        drop((large, next, other));
        assert!(quotas.used.lock().by_tenant.is_empty());
    }
}
