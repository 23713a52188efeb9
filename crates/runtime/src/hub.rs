//! Who wants to know that a run's log has grown. Notified after commit, and never trusted: subscribers re-read from
//! their own cursor, so a lost notification can only delay.

use std::sync::Arc;

use baton_model::RunId;
use dashmap::DashMap;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct Hub {
    topics: DashMap<RunId, watch::Sender<u64>>,
}

/// Wakes whenever a run's log has grown on disk.
pub struct Subscription {
    run: RunId,
    receiver: Option<watch::Receiver<u64>>,
    hub: Arc<Hub>,
}

impl Hub {
    pub(crate) fn subscribe(self: &Arc<Self>, run: &RunId) -> Subscription {
        let receiver = self.topics.entry(run.clone()).or_insert_with(|| watch::channel(0).0).subscribe();
        Subscription { run: run.clone(), receiver: Some(receiver), hub: Arc::clone(self) }
    }

    pub(crate) fn committed(&self, run: &RunId, next_seq: u64) {
        if let Some(topic) = self.topics.get(run) {
            topic.send_modify(|seen| *seen = (*seen).max(next_seq));
        }
    }
}

impl Subscription {
    /// Resolves when the log has grown since the last call, or since the subscription was made.
    pub async fn changed(&mut self) {
        if let Some(receiver) = &mut self.receiver
            && receiver.changed().await.is_ok()
        {
            return;
        }
        // The topic cannot end while somebody is subscribed; if it ever does, waiting is the honest answer.
        std::future::pending::<()>().await;
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.receiver = None;
        self.hub.topics.remove_if(&self.run, |_, topic| topic.receiver_count() == 0);
    }
}
