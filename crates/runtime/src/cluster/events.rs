//! Hearing of what other hosts did. A hint wakes whoever may care, who then looks for itself; and everybody looks now
//! and then without having heard anything.

use std::sync::Arc;

use baton_store::ClusterEvent;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::Options;
use crate::clock::Clock;
use crate::cluster::balance::Balance;
use crate::cluster::membership::Membership;
use crate::cluster::state::ClusterState;
use crate::journal::storage::Storage;
use crate::services::notifications::Notifications;
use crate::services::runners::news::RunnerNews;
use crate::services::versioned::service::VersionedStores;
use crate::services::webhooks::register::WebhookRegistry;
use crate::tasks::Tasks;
use crate::watch::Watch;

/// How far apart looks at all subscriptions are. Each failed call of a webhook is events of one; what has to be known
/// before somebody is told so comes by message.
const WEBHOOKS_PAUSE_MS: u64 = 250;

/// Hears of other hosts and looks after what they leave.
pub(crate) struct Peers {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) options: Arc<Options>,
    pub(crate) runner_news: Arc<RunnerNews>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) balance: Arc<Balance>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) subscriptions: Arc<WebhookRegistry>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl Peers {
    pub(crate) async fn keep_news(self: &Arc<Self>, mut news: broadcast::Receiver<ClusterEvent>) {
        loop {
            let heard = tokio::select! {
                biased;
                heard = news.recv() => heard,
                () = self.tasks.stop.cancelled() => return,
            };
            match heard {
                Ok(news) => self.hear(&news),
                Err(RecvError::Lagged(_)) => self.hear(&ClusterEvent::Missed),
                // Nobody will say anything any more; looking now and then has to do.
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn hear(self: &Arc<Self>, news: &ClusterEvent) {
        match news {
            ClusterEvent::Grew { run, next_seq } => self.notifications.committed(run, *next_seq),
            ClusterEvent::ForwardedCommand => self.cluster.forwarded_commands.notify_one(),
            ClusterEvent::Answered { id } => self.cluster.waiters.ring(id),
            ClusterEvent::Released { name } => self.cluster.waiters.ring(name),
            ClusterEvent::HandedOver { to } => {
                if self.storage.shared().is_some_and(|shared| shared.epoch() == *to) {
                    self.tasks.spawn(self, |room| async move { room.balance.pick_up().await });
                }
            }
            ClusterEvent::Ended { .. } => {
                self.cluster.orphans.notify_one();
                self.cluster.waiters.ring_all();
            }
            ClusterEvent::Annotated { run, id } => self.notifications.annotated(run, id),
            ClusterEvent::Webhooks => self.cluster.webhooks.notify_one(),
            ClusterEvent::Runners => self.runner_news.runners(),
            ClusterEvent::RunnerStep { key, owner } => self.runner_news.step(key, owner),
            ClusterEvent::Missed => self.look_around(),
        }
    }

    /// Looks without having heard anything.
    pub(crate) async fn keep_looking(&self) {
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(self.options.sharing.poll_ms)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
            self.look_around();
        }
    }

    fn look_around(&self) {
        let live = self.storage.current();
        // Of its own runs a host knows everything.
        self.notifications.poke(|run| !live.runs.contains(run));
        self.cluster.forwarded_commands.notify_one();
        self.cluster.orphans.notify_one();
        self.cluster.webhooks.notify_one();
        self.runner_news.look_at_all();
        self.cluster.waiters.ring_all();
    }

    pub(crate) async fn keep_webhooks(&self) {
        loop {
            tokio::select! {
                biased;
                () = self.cluster.webhooks.notified() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            let reloaded = tokio::select! {
                biased;
                reloaded = self.subscriptions.reload_webhooks() => reloaded,
                () = self.tasks.stop.cancelled() => return,
            };
            if let Err(error) = reloaded {
                tracing::debug!(%error, "webhook subscriptions could not be read");
            }
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(WEBHOOKS_PAUSE_MS)) => {}
                () = self.tasks.stop.cancelled() => return,
            }
        }
    }
}

impl Peers {
    /// Ends sessions whose lease is over, and takes work off the busiest host.
    pub(crate) async fn keep_session(&self) {
        let Some(shared) = self.storage.shared() else { return };
        while !self.tasks.stop.is_cancelled() {
            let look = async {
                match shared.end_lapsed().await {
                    Ok(ended) if !ended.is_empty() => {
                        tracing::warn!(sessions = ?ended, "hosts fell silent; taking over what they were at");
                        self.cluster.orphans.notify_one();
                        self.cluster.waiters.ring_all();
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "could not look after the other hosts"),
                }
                self.balance.balance().await;
            };
            let watched = self.watch.work("looking after other hosts");
            tokio::select! {
                biased;
                () = look => {}
                () = self.tasks.stop.cancelled() => return,
            }
            drop(watched);
            if self.membership.a_third_of_the_lease().await.is_none() {
                return;
            }
        }
    }

    /// Lets claims go that nobody here uses any more.
    pub(crate) async fn keep_claims(&self) {
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.versioned.sweep_claims() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            if self.membership.a_third_of_the_lease().await.is_none() {
                return;
            }
        }
    }
}
