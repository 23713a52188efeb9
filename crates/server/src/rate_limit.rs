//! One token bucket per key, or per tenant, so that one caller's burst never costs another.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use baton_model::code;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};

use crate::error::ApiError;

/// Who has a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Key,
    Tenant,
}

impl Whose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Tenant => "tenant",
        }
    }
}

pub(crate) struct RateLimit {
    whose: Whose,
    buckets: Vec<DefaultDirectRateLimiter>,
    per_second: NonZeroU32,
    clock: DefaultClock,
}

impl RateLimit {
    /// `None` when the limit is zero, which means no limit.
    pub(crate) fn new(per_second: u32, count: usize, whose: Whose) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let buckets = (0..count).map(|_| RateLimiter::direct(Quota::per_second(per_second))).collect();
        Some(Self { whose, buckets, per_second, clock: DefaultClock::default() })
    }

    pub(crate) fn check(&self, place: usize) -> Result<(), ApiError> {
        let Some(bucket) = self.buckets.get(place) else { return Ok(()) };
        bucket
            .check()
            .map_err(|until| refusal(until.wait_time_from(self.clock.now()), self.per_second.get(), self.whose))
    }
}

/// The header counts whole seconds and the body milliseconds; rounding up keeps both true and within a second.
fn refusal(wait: Duration, limit: u32, whose: Whose) -> ApiError {
    let who = whose.as_str();
    let millis = u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX).max(1);
    ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        code::RATE_LIMITED,
        format!("This {who} may send {limit} requests per second. Wait and try again."),
    )
    .with("retryAfterMs", millis)
    .with("scope", who)
    .with("limit", limit)
    .header(RETRY_AFTER, millis.div_ceil(1000).into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn both_delays_agree_within_a_second() {
        for micros in [0, 1, 999, 1_000, 1_001, 999_999, 1_000_000, 1_000_001, 2_500_000] {
            let reply = refusal(Duration::from_micros(micros), 5, Whose::Key).into_reply();
            let body: Value = serde_json::from_slice(reply.body()).unwrap();
            let millis = body["details"]["retryAfterMs"].as_u64().unwrap();
            let seconds: u64 = reply.header_text(&RETRY_AFTER).unwrap().parse().unwrap();
            assert!(millis * 1000 >= micros && seconds * 1000 >= millis && seconds >= 1, "{micros}");
            assert!(seconds * 1000 - millis < 1000, "{micros}");
            assert_eq!((&body["error"], &body["details"]["scope"]), (&"rate_limited".into(), &"key".into()));
        }
    }

    #[test]
    fn keys_do_not_share_a_bucket_and_zero_means_no_limit() {
        let limit = RateLimit::new(2, 2, Whose::Tenant).unwrap();
        assert!(limit.check(0).is_ok() && limit.check(0).is_ok());
        assert_eq!(limit.check(0).unwrap_err().status, 429);
        assert!(limit.check(1).is_ok());
        assert!(RateLimit::new(0, 2, Whose::Key).is_none());
    }
}
