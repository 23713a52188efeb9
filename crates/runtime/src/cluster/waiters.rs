//! Who waits for what, by name. Rung when there is news of it; never trusted.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct NotifyMap(DashMap<String, Arc<Notify>>);

/// A bell somebody listens to. Gone with the last who does.
pub(super) struct Bell<'a> {
    name: &'a str,
    pub(super) notify: Arc<Notify>,
    waiters: &'a NotifyMap,
}

impl NotifyMap {
    pub(super) fn hang<'a>(&'a self, name: &'a str) -> Bell<'a> {
        let notify = Arc::clone(&self.0.entry(name.to_owned()).or_default());
        Bell { name, notify, waiters: self }
    }

    pub(super) fn ring(&self, name: &str) {
        if let Some(bell) = self.0.get(name) {
            bell.notify_waiters();
        }
    }

    pub(super) fn ring_all(&self) {
        let mut bells: Vec<_> = self.0.iter().map(|bell| (bell.key().clone(), Arc::clone(&bell))).collect();
        // Who is woken first must not depend on how a map hashes.
        bells.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        bells.iter().for_each(|(_, bell)| bell.notify_waiters());
    }
}

impl Drop for Bell<'_> {
    fn drop(&mut self) {
        // One in the map, one here.
        self.waiters.0.remove_if(self.name, |_, bell| Arc::strong_count(bell) <= 2);
    }
}
