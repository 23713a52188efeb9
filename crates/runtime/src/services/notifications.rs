//! Who wants to know that a run's log has grown. Notified after commit, and never trusted: subscribers re-read from
//! their own cursor, so a lost notification can only delay.

use std::sync::Arc;

use baton_model::RunId;
use dashmap::DashMap;
use tokio::sync::{broadcast, watch};

/// How much news may wait for whoever listens to all runs; who is slower is told to look for themselves.
const NEWS: usize = 4096;

/// How many remarks about runs may wait for a reader; one that is slower misses some, and the list has them.
const REMARKS: usize = 64;

pub(crate) struct Notifications {
    topics: DashMap<RunId, watch::Sender<u64>>,
    news: broadcast::Sender<RunId>,
    remarks: broadcast::Sender<(RunId, Arc<str>)>,
}

/// Hears that somebody remarked on a run.
pub struct Annotated {
    run: RunId,
    remarks: broadcast::Receiver<(RunId, Arc<str>)>,
}

impl Annotated {
    /// The id of the next remark. Nothing is lost when this is not awaited to its end.
    pub async fn next(&mut self) -> Arc<str> {
        loop {
            match self.remarks.recv().await {
                Ok((run, id)) if run == self.run => return id,
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => std::future::pending::<()>().await,
            }
        }
    }
}

impl Default for Notifications {
    fn default() -> Self {
        Self { topics: DashMap::new(), news: broadcast::channel(NEWS).0, remarks: broadcast::channel(REMARKS).0 }
    }
}

/// Hears which runs change, of all tenants.
pub struct Activity {
    news: broadcast::Receiver<RunId>,
}

/// What somebody who listens to all runs hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunActivity {
    Changed(RunId),
    /// More than could be kept.
    Missed,
    /// There will be no more.
    Over,
}

impl Activity {
    /// What is known already, without waiting.
    pub fn ready(&mut self) -> Option<RunActivity> {
        match self.news.try_recv() {
            Ok(run) => Some(RunActivity::Changed(run)),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(RunActivity::Missed),
            Err(broadcast::error::TryRecvError::Closed) => Some(RunActivity::Over),
            Err(broadcast::error::TryRecvError::Empty) => None,
        }
    }

    /// The next change. Nothing is lost when this is not awaited to its end.
    pub async fn next(&mut self) -> RunActivity {
        match self.news.recv().await {
            Ok(run) => RunActivity::Changed(run),
            Err(broadcast::error::RecvError::Lagged(_)) => RunActivity::Missed,
            Err(broadcast::error::RecvError::Closed) => RunActivity::Over,
        }
    }
}

/// Wakes whenever a run's log has grown on disk.
pub struct Subscription {
    run: RunId,
    receiver: Option<watch::Receiver<u64>>,
    notifications: Arc<Notifications>,
}

impl Notifications {
    pub(crate) fn subscribe(self: &Arc<Self>, run: &RunId) -> Subscription {
        let receiver = self.topics.entry(run.clone()).or_insert_with(|| watch::channel(0).0).subscribe();
        Subscription { run: run.clone(), receiver: Some(receiver), notifications: Arc::clone(self) }
    }

    pub(crate) fn annotations(&self, run: &RunId) -> Annotated {
        Annotated { run: run.clone(), remarks: self.remarks.subscribe() }
    }

    pub(crate) fn annotated(&self, run: &RunId, id: &str) {
        // Nobody may be listening.
        let _ = self.remarks.send((run.clone(), Arc::from(id)));
    }

    pub(crate) fn activity(&self) -> Activity {
        Activity { news: self.news.subscribe() }
    }

    pub(crate) fn committed(&self, run: &RunId, next_seq: u64) {
        if let Some(topic) = self.topics.get(run) {
            topic.send_modify(|seen| *seen = (*seen).max(next_seq));
        }
        if self.news.receiver_count() > 0 {
            // Whoever listened may just have left.
            let _ = self.news.send(run.clone());
        }
    }
}

impl Notifications {
    /// Wakes the subscribers of these runs, though nobody said that anything happened.
    pub(crate) fn poke(&self, which: impl Fn(&RunId) -> bool) {
        let wanted = self.topics.iter().filter(|topic| which(topic.key()));
        let mut wanted: Vec<RunId> = wanted.map(|topic| topic.key().clone()).collect();
        // Who is woken first must not depend on how a map hashes.
        wanted.sort_unstable();
        for run in &wanted {
            if let Some(topic) = self.topics.get(run) {
                topic.send_modify(|_| {});
            }
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
        self.notifications.topics.remove_if(&self.run, |_, topic| topic.receiver_count() == 0);
    }
}
