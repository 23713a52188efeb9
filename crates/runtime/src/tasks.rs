//! Tasks that live as long as the host. Each has an owner that notices its end: one that panics or returns is named,
//! the host is not ready meanwhile, and it is started again.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::inner::{Inner, RETRY_MS};
use crate::steps::panic_text;

impl Inner {
    /// Runs a task until the host stops, however often it ends.
    pub(crate) fn keep<F, T>(&self, name: &'static str, task: F)
    where
        F: Fn(Arc<Self>) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        self.spawn(move |inner| async move {
            loop {
                let ended = AssertUnwindSafe(task(Arc::clone(&inner))).catch_unwind().await;
                if inner.stop.is_cancelled() {
                    return;
                }
                let why = ended.err().map_or_else(|| "it returned".to_owned(), |panic| panic_text(panic.as_ref()));
                tracing::error!(task = name, %why, "a task of the host stopped; starting it again");
                metrics::counter!("baton_task_restarts_total", "task" => name).increment(1);
                inner.watch.task_down(name, why);
                tokio::select! {
                    () = inner.clock.until(inner.clock.now().plus_millis(RETRY_MS)) => {}
                    () = inner.stop.cancelled() => return,
                }
                inner.watch.task_up(name);
            }
        });
    }

    /// The same for a task that cannot be started a second time. Without it the host only knows less: it says so.
    pub(crate) fn keep_once<F, T>(&self, name: &'static str, task: F)
    where
        F: FnOnce(Arc<Self>) -> T,
        T: Future<Output = ()> + Send + 'static,
    {
        self.spawn(|inner| {
            let task = AssertUnwindSafe(task(Arc::clone(&inner))).catch_unwind();
            async move {
                let ended = task.await;
                if !inner.stop.is_cancelled() {
                    let why = ended.err().map_or_else(|| "it returned".to_owned(), |panic| panic_text(panic.as_ref()));
                    tracing::error!(task = name, %why, "a task of the host stopped");
                    inner.watch.task_down(name, why);
                }
            }
        });
    }
}
