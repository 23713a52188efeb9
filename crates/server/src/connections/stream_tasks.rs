//! The tasks that answer the requests of one HTTP/2 connection. A request whose client takes nothing of its answer is
//! ended alone: others may share the connection, for example behind a proxy.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::sent::Taken;

#[derive(Clone)]
pub(super) struct StreamTasks {
    /// Of requests that were begun and have no task yet: the task comes next, on the same thread.
    begun: Arc<Mutex<VecDeque<Arc<Taken>>>>,
    /// How long a client may take nothing.
    limit: Duration,
    /// Cancelled with the connection.
    over: CancellationToken,
}

impl StreamTasks {
    pub(super) fn new(limit: Duration, over: CancellationToken) -> Self {
        Self { begun: Arc::default(), limit, over }
    }

    pub(super) fn begin(&self, taken: &Arc<Taken>) {
        self.begun.lock().push_back(Arc::clone(taken));
    }
}

impl<F> Executor<F> for StreamTasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, answering: F) {
        let taken = self.begun.lock().pop_front();
        let (limit, over) = (self.limit, self.over.clone());
        tokio::spawn(async move {
            tokio::select! {
                _ = answering => {}
                () = stalled(taken, limit) => {
                    metrics::counter!("baton_http_streams_reset_total").increment(1);
                }
                () = over.cancelled() => {}
            }
        });
    }
}

async fn stalled(taken: Option<Arc<Taken>>, limit: Duration) {
    let Some(taken) = taken else { return std::future::pending().await };
    loop {
        let waiting = taken.waiting_for();
        if waiting >= limit {
            return;
        }
        tokio::time::sleep(limit - waiting).await;
    }
}
