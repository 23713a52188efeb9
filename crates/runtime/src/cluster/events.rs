//! Hearing of what other hosts did. A hint wakes whoever may care, who then looks for itself; and everybody looks now
//! and then without having heard anything.

use baton_store::News;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::inner::Inner;

/// How far apart looks at all subscriptions are. Each failed call of a webhook is news of one; what has to be known
/// before somebody is told so comes by letter.
const WEBHOOKS_PAUSE_MS: u64 = 250;

impl Inner {
    pub(super) async fn keep_news(&self, mut news: broadcast::Receiver<News>) {
        loop {
            let heard = tokio::select! {
                heard = news.recv() => heard,
                () = self.stop.cancelled() => return,
            };
            match heard {
                Ok(news) => self.hear(&news),
                Err(RecvError::Lagged(_)) => self.hear(&News::Missed),
                // Nobody will say anything any more; looking now and then has to do.
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn hear(&self, news: &News) {
        match news {
            News::Grew { run, next_seq } => self.hub.committed(run, *next_seq),
            News::Letter => self.company.letters.notify_one(),
            News::Answered { id } => self.company.bells.ring(id),
            News::Released { name } => self.company.bells.ring(name),
            News::HandedOver { to } => {
                if self.shared().is_some_and(|shared| shared.epoch() == *to) {
                    self.spawn(|inner| async move { inner.pick_up().await });
                }
            }
            News::Ended { .. } => {
                self.company.orphans.notify_one();
                self.company.bells.ring_all();
            }
            News::Annotated { run, id } => self.hub.annotated(run, id),
            News::Webhooks => self.company.webhooks.notify_one(),
            News::Missed => self.look_around(),
        }
    }

    /// Looks without having heard anything.
    pub(super) async fn keep_looking(&self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(self.options.sharing.poll_ms)) => {}
                () = self.stop.cancelled() => return,
            }
            self.look_around();
        }
    }

    fn look_around(&self) {
        let world = self.current_world();
        // Of its own runs a host knows everything.
        self.hub.poke(|run| !world.slots.contains_key(run));
        self.company.letters.notify_one();
        self.company.orphans.notify_one();
        self.company.webhooks.notify_one();
        self.company.bells.ring_all();
    }

    pub(super) async fn keep_webhooks(&self) {
        loop {
            tokio::select! {
                () = self.company.webhooks.notified() => {}
                () = self.stop.cancelled() => return,
            }
            let reloaded = tokio::select! {
                reloaded = self.reload_webhooks() => reloaded,
                () = self.stop.cancelled() => return,
            };
            if let Err(error) = reloaded {
                tracing::debug!(%error, "webhook subscriptions could not be read");
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(WEBHOOKS_PAUSE_MS)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }
}
