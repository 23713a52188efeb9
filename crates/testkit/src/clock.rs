use async_trait::async_trait;
use baton_model::Timestamp;
use baton_runtime::Clock;
use tokio::sync::watch;

/// A clock that only moves when a test moves it, and then wakes whoever waited for that moment.
#[derive(Debug)]
pub struct SimClock {
    now: watch::Sender<Timestamp>,
}

impl SimClock {
    pub fn at(start: Timestamp) -> Self {
        Self { now: watch::Sender::new(start) }
    }

    pub fn advance(&self, millis: u64) {
        self.now.send_modify(|now| *now = now.plus_millis(millis));
    }

    /// Moves to `at`, unless that has passed: time never runs backwards here.
    pub fn advance_to(&self, at: Timestamp) {
        self.now.send_modify(|now| *now = (*now).max(at));
    }
}

impl Default for SimClock {
    /// Some afternoon; far enough from zero that subtracting a week is harmless.
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_800_000_000_000))
    }
}

#[async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    async fn until(&self, at: Timestamp) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.now.subscribe().wait_for(|now| *now >= at).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn waiters_wake_when_their_moment_comes_and_not_before() {
        let clock = Arc::new(SimClock::default());
        let due = clock.now().plus_millis(100);
        let waiter = {
            let clock = Arc::clone(&clock);
            tokio::spawn(async move { clock.until(due).await })
        };
        tokio::task::yield_now().await;
        clock.advance(99);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        clock.advance(1);
        assert!(waiter.await.is_ok());
        assert_eq!(clock.now(), due);
        clock.until(due).await;
    }
}
