//! The line of a host to its disk, and of the hosts to each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use baton_store::{ClusterEvent, Courier, Line};
use parking_lot::Mutex;

use crate::rng::Rng;
use crate::time::HostClock;

/// A question to the disk takes a moment now and then, and may get no answer.
#[derive(Debug)]
pub(crate) struct HostLine {
    rng: Rng,
    clock: Arc<HostClock>,
    cut: AtomicBool,
    /// How many of the next questions get no answer.
    losing: AtomicU64,
    /// A slow disk.
    pub(crate) slow: AtomicBool,
}

impl HostLine {
    pub(crate) fn new(rng: Rng, clock: Arc<HostClock>) -> Self {
        Self { rng, clock, cut: AtomicBool::new(false), losing: AtomicU64::new(0), slow: AtomicBool::new(false) }
    }

    pub(crate) fn set_cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    pub(crate) fn lose(&self, questions: u64) {
        self.losing.store(questions, Ordering::Relaxed);
    }
}

#[async_trait]
impl Line for HostLine {
    async fn wait(&self) {
        match self.rng.below(100) {
            0..=59 => {}
            60..=89 => {
                for _ in 0..self.rng.between(1, 3) {
                    tokio::task::yield_now().await;
                }
            }
            _ => self.clock.sleep(i64::try_from(self.rng.between(50, 5_000)).unwrap_or(0)).await,
        }
        if self.slow.load(Ordering::Relaxed) {
            self.clock.sleep(i64::try_from(self.rng.between(10_000, 400_000)).unwrap_or(0)).await;
        }
    }

    fn cut(&self) -> Option<String> {
        let losing = self.losing.load(Ordering::Relaxed);
        if self.is_cut() || losing > 0 {
            self.losing.store(losing.saturating_sub(1), Ordering::Relaxed);
            return Some("the simulated line is cut".to_owned());
        }
        None
    }
}

/// News between hosts: lost, doubled and late while it is moody.
#[derive(Debug)]
pub(crate) struct MoodyCourier {
    rng: Rng,
    pub(crate) moody: AtomicBool,
    late: Mutex<VecDeque<ClusterEvent>>,
}

impl MoodyCourier {
    pub(crate) fn new(rng: Rng) -> Self {
        Self { rng, moody: AtomicBool::new(false), late: Mutex::default() }
    }
}

impl Courier for MoodyCourier {
    fn carry(&self, event: ClusterEvent) -> Vec<ClusterEvent> {
        let mut late = self.late.lock();
        if !self.moody.load(Ordering::Relaxed) {
            let mut all: Vec<ClusterEvent> = late.drain(..).collect();
            all.push(event);
            return all;
        }
        match self.rng.below(10) {
            0..=2 => Vec::new(),
            3..=4 => vec![event.clone(), event],
            5..=6 => {
                late.push_back(event);
                Vec::new()
            }
            _ => late.pop_front().into_iter().chain([event]).collect(),
        }
    }
}
