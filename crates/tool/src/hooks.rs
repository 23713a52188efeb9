//! What is asked before a call is made: may this caller use this tool, and not too often. And what is written down
//! about its arguments: a hash, after secrets are out.
//!
//! Both answers are made here and nowhere else, so that a refused call looks the same whoever asked.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_model::json::Digest;
use baton_model::tool::{ToolFault, ToolOutcome, ToolStatus};
use baton_model::{Secret, code};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use serde_json::{Value, json};
use tokio::time::Instant;

use baton_model::redact_value;

/// The scopes a caller holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held<'a> {
    /// Everything the tenant may do.
    All,
    Only(&'a [String]),
    /// Nobody could find out. Whatever needs a scope is refused.
    Unknown,
}

impl<'a> From<Option<&'a [String]>> for Held<'a> {
    /// `None` means all, as in [`ToolRequest`](baton_model::tool::ToolRequest).
    fn from(scopes: Option<&'a [String]>) -> Self {
        scopes.map_or(Self::All, Self::Only)
    }
}

impl Held<'_> {
    pub(crate) fn cover(self, required: &[String]) -> bool {
        match self {
            // A blank scope cannot be held, so it cannot be evaluated either.
            _ if required.iter().any(|scope| scope.trim().is_empty()) => false,
            Self::All => true,
            Self::Only(held) => required.iter().all(|scope| held.contains(scope)),
            Self::Unknown => required.is_empty(),
        }
    }
}

/// Decides about one call: first whether the caller may, then whether it is too soon. A refused call must not be made.
#[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
pub fn admit(
    tool: &str,
    required: &[String],
    principal: &str,
    held: Held<'_>,
    limits: Option<&ToolLimits>,
) -> Result<(), ToolOutcome> {
    authorize(tool, required, held)?;
    limits.map_or(Ok(()), |limits| limits.check(principal, tool))
}

/// Fails closed: a scope that is missing or cannot be evaluated refuses the call.
#[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
pub fn authorize(tool: &str, required: &[String], held: Held<'_>) -> Result<(), ToolOutcome> {
    if held.cover(required) {
        return Ok(());
    }
    let message = format!("{tool} needs scopes that this caller does not hold. Ask the operator for them.");
    Err(refusal(
        ToolStatus::Forbidden,
        code::FORBIDDEN,
        message,
        json!({"scope": "tool", "toolName": tool, "requiredScopes": required}),
        false,
    ))
}

/// What a call gets that comes too soon.
pub fn too_soon(tool: &str, wait: Duration) -> ToolOutcome {
    let millis = u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX).max(1);
    let seconds = millis.div_ceil(1000);
    refusal(
        ToolStatus::RateLimited,
        code::RATE_LIMITED,
        format!("{tool} is called too often on behalf of this caller. Wait {seconds} s and try again."),
        json!({"scope": "tool", "toolName": tool, "retryAfterMs": millis, "retryAfterSeconds": seconds}),
        true,
    )
}

fn refusal(status: ToolStatus, code: &str, message: String, details: Value, retryable: bool) -> ToolOutcome {
    let error = ToolFault { code: code.to_owned(), message, details: Some(details), retryable: Some(retryable) };
    ToolOutcome { status, value: Value::Null, error: Some(error), duration_ms: None }
}

/// SHA-256 over the canonical form of the arguments, secrets replaced: says whether two calls were the same without
/// saying what they were.
pub fn args_hash(arguments: &Value, secrets: &[Secret]) -> String {
    Digest::of_json(&redact_value(arguments, secrets)).to_string()
}

/// How often a caller may use a tool: one bucket for each pair of them.
pub struct ToolLimits {
    buckets: RateLimiter<Bucket, DefaultKeyedStateStore<Bucket>, Ticks, NoOpMiddleware<Duration>>,
    clock: Ticks,
    checks: AtomicU32,
}

type Bucket = (String, String);

/// Full buckets are forgotten once in so many checks.
const SWEEP_EVERY: u32 = 1024;

impl std::fmt::Debug for ToolLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ToolLimits")
    }
}

impl ToolLimits {
    /// `burst` calls at once, and `per_minute` in the long run.
    pub fn new(per_minute: NonZeroU32, burst: NonZeroU32) -> Self {
        let start = Instant::now();
        Self::with_clock(per_minute, burst, move || start.elapsed())
    }

    /// With a clock of the caller's: any monotonic time since whenever.
    pub fn with_clock(
        per_minute: NonZeroU32,
        burst: NonZeroU32,
        now: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        let clock = Ticks(Arc::new(now));
        let quota = Quota::per_minute(per_minute).allow_burst(burst);
        let buckets = RateLimiter::new(quota, DefaultKeyedStateStore::default(), clock.clone());
        Self { buckets, clock, checks: AtomicU32::new(0) }
    }

    /// Takes one call out of the bucket, or says how long to wait.
    #[expect(clippy::result_large_err, reason = "a refusal is an outcome, recorded like any other")]
    pub fn check(&self, principal: &str, tool: &str) -> Result<(), ToolOutcome> {
        if self.checks.fetch_add(1, Ordering::Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.buckets.retain_recent();
        }
        let key = (principal.to_owned(), tool.to_owned());
        self.buckets.check_key(&key).map_err(|until| too_soon(tool, until.wait_time_from(self.clock.now())))
    }
}

/// Time since some fixed moment.
#[derive(Clone)]
struct Ticks(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        (self.0)()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn scopes(list: &[&str]) -> Vec<String> {
        list.iter().map(|scope| (*scope).to_owned()).collect()
    }

    #[test]
    fn a_missing_or_unreadable_scope_refuses() {
        let held = scopes(&["a", "b"]);
        let ok = |required: &[&str], held: Held<'_>| authorize("x:y", &scopes(required), held).is_ok();
        assert!(ok(&[], Held::Unknown) && ok(&["a"], Held::All) && ok(&["a", "b"], Held::Only(&held)));
        for (required, held) in [
            (&["c"][..], Held::Only(&held[..])),
            (&["a", "c"], Held::Only(&held)),
            (&["a"], Held::Unknown),
            (&["a"], Held::Only(&[])),
            (&["a", " "], Held::All),
        ] {
            assert!(!ok(required, held), "{required:?} {held:?}");
        }
        let refused = authorize("x:y", &scopes(&["c"]), Held::Only(&held)).unwrap_err();
        assert_eq!((refused.status, refused.duration_ms), (ToolStatus::Forbidden, None));
        let error = refused.error.unwrap();
        assert_eq!(error.code, "forbidden");
        assert_eq!(error.details, Some(json!({"scope": "tool", "toolName": "x:y", "requiredScopes": ["c"]})));
    }

    #[test]
    fn each_caller_has_its_own_bucket_for_each_tool() {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        let two = NonZeroU32::new(2).unwrap();
        let limits = ToolLimits::with_clock(NonZeroU32::new(6).unwrap(), two, move || {
            Duration::from_millis(clock.load(Ordering::SeqCst))
        });
        assert!(limits.check("ann", "t").is_ok() && limits.check("ann", "t").is_ok());
        let refused = limits.check("ann", "t").unwrap_err();
        assert_eq!((refused.status, refused.duration_ms), (ToolStatus::RateLimited, None));
        let error = refused.error.unwrap();
        assert_eq!((error.code.as_str(), error.retryable), ("rate_limited", Some(true)));
        let details = json!({"scope": "tool", "toolName": "t", "retryAfterMs": 10_000, "retryAfterSeconds": 10});
        assert_eq!(error.details, Some(details));
        assert!(limits.check("bob", "t").is_ok() && limits.check("ann", "u").is_ok());
        now.store(10_000, Ordering::SeqCst);
        assert!(limits.check("ann", "t").is_ok() && limits.check("ann", "t").is_err());
    }

    #[test]
    fn who_may_not_call_does_not_empty_the_bucket() {
        let one = NonZeroU32::MIN;
        let limits = ToolLimits::with_clock(one, one, || Duration::ZERO);
        let admit = |held| admit("t", &scopes(&["a"]), "ann", held, Some(&limits)).map_err(|refused| refused.status);
        assert_eq!(admit(Held::Unknown), Err(ToolStatus::Forbidden));
        assert_eq!(admit(Held::All), Ok(()));
        assert_eq!(admit(Held::All), Err(ToolStatus::RateLimited));
        assert_eq!(admit(Held::Unknown), Err(ToolStatus::Forbidden), "authorization comes first");
    }

    #[test]
    fn full_buckets_do_not_pile_up() {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        let one = NonZeroU32::MIN;
        let limits = ToolLimits::with_clock(one, one, move || Duration::from_secs(clock.load(Ordering::SeqCst)));
        for n in 0..SWEEP_EVERY * 3 {
            now.fetch_add(3600, Ordering::SeqCst);
            assert!(limits.check(&format!("p{n}"), "t").is_ok());
        }
        assert!(limits.buckets.len() <= SWEEP_EVERY as usize + 1, "{}", limits.buckets.len());
    }

    #[test]
    fn the_hash_is_canonical_and_blind_to_secrets() {
        // printf '{"a":[1,"x"],"b":"[REDACTED:k]"}' | sha256sum
        let expected = "9a31ead0932acf1052c8350b9880491bd72244fd4fbe2c597d74dc5d3e260a3c";
        let secrets = |value: &str| [Secret::new("k", value)];
        let one = args_hash(&json!({"b": "hunter2-hunter2", "a": [1.0, "x"]}), &secrets("hunter2-hunter2"));
        let two = args_hash(&json!({"a": [1, "x"], "b": "other-secret"}), &secrets("other-secret"));
        assert_eq!((one.as_str(), two.as_str()), (expected, expected));
    }
}
