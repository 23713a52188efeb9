//! Asking again, below the level of answers: only where no answer had begun, a few times, with growing pauses.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use tokio::time::Instant;

use crate::{Delta, DeltaSink, ProviderFault};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RetryPolicy {
    /// How often to ask again.
    pub(crate) retries: usize,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
    /// A server that wants a longer pause than this gets none: whoever asked decides when to come back.
    pub(crate) longest_wait: Duration,
}

/// An attempt that came to nothing.
#[derive(Debug)]
pub(super) struct FailedAttempt {
    pub(super) fault: ProviderFault,
    pub(super) again: bool,
    /// When the server wants to be asked again.
    pub(super) wait: Option<Duration>,
}

impl RetryPolicy {
    pub(super) async fn run<T, F, R>(
        &self,
        deadline: Instant,
        sink: &dyn DeltaSink,
        attempt: F,
    ) -> Result<T, ProviderFault>
    where
        F: FnMut() -> R,
        R: Future<Output = Result<T, FailedAttempt>>,
    {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(self.first_pause)
            .with_max_delay(self.longest_pause)
            .with_max_times(self.retries)
            .with_jitter();
        let answer = attempt
            .retry(pauses)
            .when(|trouble| trouble.again)
            // The server's wish counts, unless it is too much to ask or the caller would be gone by then.
            .adjust(|trouble, pause| {
                let pause = trouble.wait.map_or(pause?, |wait| wait.max(self.first_pause));
                let asks_too_much = trouble.wait.is_some() && pause > self.longest_wait;
                let left = deadline.saturating_duration_since(Instant::now());
                (!asks_too_much && pause < left).then_some(pause)
            })
            .notify(|trouble, pause| {
                sink.push(Delta::Again(trouble.fault.clone()));
                tracing::debug!(outcome = trouble.fault.outcome(), ?pause, "a model provider is asked again");
            })
            .await;
        answer.map_err(|trouble| trouble.fault)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn policy() -> RetryPolicy {
        RetryPolicy {
            retries: 3,
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(8),
            longest_wait: Duration::from_secs(30),
        }
    }

    fn trouble(again: bool, wait: Option<u64>) -> FailedAttempt {
        FailedAttempt { fault: ProviderFault::Exhausted, again, wait: wait.map(Duration::from_secs) }
    }

    /// When each attempt is made, in milliseconds, if all fail the same way.
    async fn attempts(again: bool, wait: Option<u64>, deadline_secs: u64) -> Vec<u64> {
        let began = Instant::now();
        let times = RefCell::new(Vec::new());
        let attempt = || async {
            times.borrow_mut().push(began.elapsed().as_millis() as u64);
            Err::<(), _>(trouble(again, wait))
        };
        let deadline = began + Duration::from_secs(deadline_secs);
        assert_eq!(policy().run(deadline, &crate::NoSink, attempt).await, Err(ProviderFault::Exhausted));
        times.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_with_some_chance_and_end() {
        let times = attempts(true, None, 600).await;
        assert_eq!(times.len(), 4, "{times:?}");
        for (pause, least) in times.windows(2).map(|pair| pair[1] - pair[0]).zip([500, 1000, 2000]) {
            // A millisecond for the timer's grain.
            assert!((least..=2 * least + 2).contains(&pause), "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_say_when_but_not_too_late() {
        assert_eq!(attempts(true, Some(7), 600).await.len(), 4);
        let times = attempts(true, Some(7), 600).await;
        assert!((7000..7010).contains(&times[1]), "{times:?}");
        assert_eq!(attempts(true, Some(31), 600).await, [0], "longer than we wait");
        assert_eq!(attempts(true, Some(20), 15).await, [0], "the caller would be gone");
        assert_eq!(attempts(false, None, 600).await, [0], "nothing to hope for");
    }
}
