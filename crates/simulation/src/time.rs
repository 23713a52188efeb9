//! Simulated time. There is one for all; each host's clock may be off from it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use baton_model::Timestamp;
use baton_runtime::Clock;
use parking_lot::Mutex;

/// Some afternoon.
const START_US: i64 = 1_800_000_000_000_000;

/// The time that passes for everybody.
#[derive(Debug)]
pub(crate) struct SimTime(AtomicI64);

impl Default for SimTime {
    fn default() -> Self {
        Self(AtomicI64::new(START_US))
    }
}

impl SimTime {
    pub(crate) fn now(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn elapsed_ms(&self) -> i64 {
        (self.now() - START_US) / 1000
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::from_micros(self.now())
    }

    pub(crate) fn advance_to(&self, at: i64) {
        self.0.fetch_max(at, Ordering::Relaxed);
    }
}

/// What one host takes for the time. Whoever waits is woken by the simulation, in the order of what they wait for.
#[derive(Debug)]
pub(crate) struct HostClock {
    time: Arc<SimTime>,
    /// How far it is ahead of the time that passes.
    offset: AtomicI64,
    sleepers: Arc<Mutex<Sleepers>>,
}

#[derive(Debug, Default)]
struct Sleepers {
    next: u64,
    waiting: BTreeMap<(i64, u64), Waker>,
}

impl HostClock {
    pub(crate) fn new(time: Arc<SimTime>, offset: i64) -> Self {
        Self { time, offset: AtomicI64::new(offset), sleepers: Arc::default() }
    }

    fn micros(&self) -> i64 {
        self.time.now() + self.offset.load(Ordering::Relaxed)
    }

    pub(crate) fn offset(&self) -> i64 {
        self.offset.load(Ordering::Relaxed)
    }

    /// Somebody sets it.
    pub(crate) fn jump(&self, micros: i64) {
        self.offset.fetch_add(micros, Ordering::Relaxed);
    }

    /// When somebody who waits is due, by the time that passes.
    pub(crate) fn next_due(&self) -> Option<i64> {
        let sleepers = self.sleepers.lock();
        sleepers.waiting.keys().next().map(|(at, _)| at - self.offset.load(Ordering::Relaxed))
    }

    /// Wakes whoever is due. Says whether anybody was.
    pub(crate) fn wake_due(&self) -> bool {
        let now = self.micros();
        let due = {
            let mut sleepers = self.sleepers.lock();
            let later = sleepers.waiting.split_off(&(now + 1, 0));
            std::mem::replace(&mut sleepers.waiting, later)
        };
        let any = !due.is_empty();
        due.into_values().for_each(Waker::wake);
        any
    }

    /// Sleeps for so long by this clock.
    pub(crate) async fn sleep(&self, micros: i64) {
        self.sleep_until(self.micros() + micros).await;
    }

    async fn sleep_until(&self, at: i64) {
        let number = {
            let mut sleepers = self.sleepers.lock();
            sleepers.next += 1;
            sleepers.next
        };
        Sleep { clock: self, key: (at, number) }.await;
    }
}

struct Sleep<'a> {
    clock: &'a HostClock,
    key: (i64, u64),
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.clock.micros() >= self.key.0 {
            return Poll::Ready(());
        }
        self.clock.sleepers.lock().waiting.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        self.clock.sleepers.lock().waiting.remove(&self.key);
    }
}

#[async_trait]
impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros())
    }

    async fn until(&self, at: Timestamp) {
        self.sleep_until(at.as_micros()).await;
    }
}
