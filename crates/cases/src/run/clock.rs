//! A clock that stands still until it is moved to the next moment that somebody waits for.

use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::Timestamp;
use baton_runtime::Clock;
use parking_lot::Mutex;
use tokio::sync::watch;

pub(crate) struct CaseClock {
    now: watch::Sender<Timestamp>,
    /// How many wait for each moment.
    waiting: Mutex<BTreeMap<Timestamp, usize>>,
}

impl CaseClock {
    pub(crate) fn at(start: Timestamp) -> Self {
        Self { now: watch::Sender::new(start), waiting: Mutex::default() }
    }

    /// The next moment that somebody waits for.
    pub(crate) fn earliest(&self) -> Option<Timestamp> {
        self.waiting.lock().keys().next().copied()
    }

    /// Time never runs backwards.
    pub(crate) fn advance_to(&self, at: Timestamp) {
        self.now.send_modify(|now| *now = (*now).max(at));
    }

    pub(crate) async fn pass(&self, millis: u64) {
        if millis > 0 {
            self.until(self.now().plus_millis(millis)).await;
        }
    }

    async fn reach(&self, at: Timestamp) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self.now.subscribe().wait_for(|now| *now >= at).await;
    }
}

/// Somebody waits; given up with the future.
struct Waiting<'a>(&'a CaseClock, Timestamp);

impl<'a> Waiting<'a> {
    fn begin(clock: &'a CaseClock, at: Timestamp) -> Self {
        *clock.waiting.lock().entry(at).or_default() += 1;
        Self(clock, at)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting.lock();
        if let Some(count) = waiting.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.1);
            }
        }
    }
}

#[async_trait]
impl Clock for CaseClock {
    fn now(&self) -> Timestamp {
        *self.now.borrow()
    }

    async fn until(&self, at: Timestamp) {
        let _waiting = Waiting::begin(self, at);
        self.reach(at).await;
    }

    async fn until_housekeeping(&self, at: Timestamp) {
        self.reach(at).await;
    }
}
