//! The beginning and the end of a host: which tasks it has, and in which order it stops.

use std::sync::Arc;
use std::time::Duration;

use super::rooms::Rooms;
use crate::journal::failed_commit::PICKING_UP;
use crate::services::webhooks;

/// How often the watchdog is shown that workers run while the host stops.
const BEAT: Duration = Duration::from_millis(250);

impl Rooms {
    /// What must be under way before the host does anything: without a lease it could do nothing for long.
    pub(crate) fn join_cluster(&self) {
        let Some(shared) = self.storage.shared() else { return };
        self.membership.renewed_now();
        let events = shared.news();
        let (tasks, peers) = (&self.tasks, &self.peers);
        tasks.keep(&self.membership, "lease", |membership| async move { membership.keep_lease().await });
        tasks.keep(peers, "session", |peers| async move { peers.keep_session().await });
        tasks.keep(peers, "claims", |peers| async move { peers.keep_claims().await });
        tasks.keep_once(peers, "news", |peers| async move { peers.keep_news(events).await });
        tasks.keep(peers, "looking", |peers| async move { peers.keep_looking().await });
        tasks.keep(peers, "subscriptions", |peers| async move { peers.keep_webhooks().await });
    }

    pub(crate) fn start_tasks(self: &Arc<Self>) {
        let tasks = &self.tasks;
        self.watchdog.start_watchdog();
        if self.options.watchdog.is_some() {
            tasks.keep(&self.canary_watch, "canary", |canary| async move { canary.keep_canary().await });
        }
        tasks.keep(&self.recovery, "timers", |recovery| async move { recovery.keep_time().await });
        tasks.keep(&self.recovery, "refilling timers", |recovery| async move { recovery.keep_refilling().await });
        tasks.keep(&self.evictor, "tidying", |evictor| async move { evictor.tidy().await });
        if self.options.checkpoint_every > 0 {
            tasks.keep(&self.checkpoints, "checkpoints", |writer| async move { writer.keep_writing().await });
        }
        tasks.keep(&self.delivery, "webhooks", |delivery| async move { webhooks::deliver(delivery).await });
        tasks.keep(&self.delivery, "dead letters", |delivery| async move { webhooks::keep(delivery).await });
        tasks.keep(&self.runner_upkeep, "runners", |upkeep| async move { upkeep.keep_leases().await });
        if self.options.retention.is_on() {
            tasks.keep(&self.retention_pass, "retention", |pass| async move { pass.keep_pruning().await });
        }
        if self.options.observer.is_some() {
            tasks.keep(&self.observers, "observer", |observers| async move { observers.keep_observing().await });
        }
        tasks.spawn(&self.health, |health| async move { health.measure_at_start().await });
        if self.storage.shared().is_some() {
            tasks.keep(&self.runner_upkeep, "runners elsewhere", |upkeep| async move { upkeep.keep_up().await });
            tasks.keep(&self.inbox, "letters", |inbox| async move { inbox.keep_inbox().await });
            tasks.keep(&self.recovery, "adopting", |recovery| async move { recovery.keep_adopting().await });
            tasks.keep(&self.quarantine, "quarantines", |all| async move { all.keep_up_with_quarantines().await });
        }
        tasks.spawn(&self.recovery, |recovery| async move {
            recovery.tasks.until_done(PICKING_UP, || recovery.recover()).await;
        });
    }

    pub(crate) async fn shut_down(&self) {
        self.tasks.close();
        let closing = async {
            self.tasks.ended().await;
            self.storage.flush(&self.storage.current());
            self.observers.report_the_rest().await;
            self.store.close().await;
        };
        // The watchdog looks on until the end, and its task that shows that workers run has stopped.
        let beating = async {
            loop {
                self.watch.beat();
                tokio::time::sleep(BEAT).await;
            }
        };
        tokio::select! {
            biased;
            () = closing => {}
            () = beating => {}
        }
        self.watch.over();
    }
}
