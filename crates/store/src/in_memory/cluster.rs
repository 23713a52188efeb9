//! One disk, several hosts: each has a session on it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use baton_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::disk::Disk;
use super::line::Courier;
use crate::{ClusterEvent, CommitPart, Committed, RunnerWrite, Write};

/// How much news somebody may be behind before they have to look for themselves.
const NEWS: usize = 1024;

/// A disk that several hosts share. Leases are judged by the clock it was given. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    pub(super) disk: Arc<Mutex<Disk>>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    pub(super) lease: Duration,
    pub(super) news: broadcast::Sender<ClusterEvent>,
    silent: Arc<AtomicBool>,
    courier: Arc<OnceLock<Arc<dyn Courier>>>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("lease", &self.lease).finish_non_exhaustive()
    }
}

impl Cluster {
    pub fn new(lease: Duration, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self::from_disk(Disk::default(), lease, clock)
    }

    pub fn from_disk(disk: Disk, lease: Duration, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self {
            disk: Arc::new(Mutex::new(disk)),
            clock: Arc::new(clock),
            lease,
            news: broadcast::Sender::new(NEWS),
            silent: Arc::default(),
            courier: Arc::default(),
        }
    }

    /// A copy of what is durable now.
    pub fn disk(&self) -> Disk {
        self.disk.lock().clone()
    }

    /// Lets a session's lease be over, as if its host had been silent for too long.
    pub fn lapse(&self, epoch: u64) {
        if let Some(seat) = self.disk.lock().members.sessions.get_mut(&epoch) {
            seat.lease_until = Timestamp::from_micros(i64::MIN);
        }
    }

    /// From now on nobody hears of anything: whoever wants to know has to look.
    pub fn silence(&self) {
        self.silent.store(true, Ordering::Relaxed);
    }

    /// From now on news goes by this courier. Once.
    pub fn send_by(&self, courier: Arc<dyn Courier>) {
        let _ = self.courier.set(courier);
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub(super) fn tell(&self, news: ClusterEvent) {
        if !self.silent.load(Ordering::Relaxed) {
            let arrived = match self.courier.get() {
                Some(courier) => courier.carry(news),
                None => vec![news],
            };
            for news in arrived {
                // Nobody may be listening.
                let _ = self.news.send(news);
            }
        }
    }

    pub(super) fn lease_from_now(&self) -> Timestamp {
        self.now().plus_millis(self.lease.as_millis() as u64)
    }
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) cluster: Cluster,
    host: String,
    epoch: AtomicU64,
}

impl Member {
    /// Opens a session for one more host.
    pub(super) fn new(cluster: Cluster, host: &str) -> Self {
        let epoch = cluster.disk.lock().members.open(host, cluster.lease_from_now());
        Self { cluster, host: host.to_owned(), epoch: AtomicU64::new(epoch) }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Ends this session and opens the next.
    pub(super) fn start_over(&self, disk: &mut Disk) {
        self.leave(disk);
        self.epoch.store(disk.members.open(&self.host, self.cluster.lease_from_now()), Ordering::Release);
    }

    pub(super) fn leave(&self, disk: &mut Disk) {
        if disk.members.end(self.epoch()) {
            self.cluster.tell(ClusterEvent::Ended { epoch: self.epoch() });
        }
    }
}

/// What others want to know of what was written.
pub(super) fn news_of(part: CommitPart<'_>, runs: &[Committed]) -> Vec<ClusterEvent> {
    let grew = runs.iter().map(|run| ClusterEvent::Grew { run: run.run.clone(), next_seq: run.next_seq });
    let rest = part.writes.iter().filter_map(|write| match write {
        Write::HandOver { to, .. } => Some(ClusterEvent::HandedOver { to: *to }),
        Write::ReleaseClaim { name } => Some(ClusterEvent::Released { name: name.clone() }),
        Write::Annotate(row) => Some(ClusterEvent::Annotated { run: row.run.clone(), id: row.id.clone() }),
        Write::AnswerForwarded { id, .. } => Some(ClusterEvent::Answered { id: id.clone() }),
        Write::PutWebhook(_) | Write::NoteAttempt { .. } | Write::ChangeWebhook { .. } | Write::DeleteWebhook(_) => {
            Some(ClusterEvent::Webhooks)
        }
        Write::Runners(write) => match write {
            RunnerWrite::PutStep(row) => {
                Some(ClusterEvent::RunnerStep { key: row.key.clone(), owner: row.owner.clone() })
            }
            RunnerWrite::DeleteStep { .. } | RunnerWrite::ForgetSteps { .. } => None,
            _ => Some(ClusterEvent::Runners),
        },
        _ => None,
    });
    grew.chain(rest).collect()
}
