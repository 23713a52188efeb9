//! Which live runs may be able to leave memory.

use baton_model::RunId;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Runs whose records have just become durable and may be able to leave memory.
#[derive(Default)]
pub(crate) struct EvictionQueue {
    pub(crate) visits: Mutex<Vec<RunId>>,
    pub(crate) work: Notify,
}

impl EvictionQueue {
    pub(crate) fn visit(&self, runs: impl IntoIterator<Item = RunId>) {
        self.visits.lock().extend(runs);
        self.work.notify_one();
    }
}
