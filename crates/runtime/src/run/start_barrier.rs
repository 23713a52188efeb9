//! Which starts are under way. A start knows which versions of memory and files it sees a moment before it is queued, and
//! whoever prunes those waits for it. Only starts of the same tenant are waited for, and only those that had begun: one
//! that never ends holds up nobody else, and nobody who starts.

use std::collections::BTreeMap;

use baton_model::TenantId;
use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Starts {
    open: Mutex<Open>,
    ended: Notify,
}

#[derive(Default)]
struct Open {
    next: u64,
    tenants: BTreeMap<u64, TenantId>,
}

/// A start that is under way.
pub(crate) struct Starting<'a> {
    starts: &'a Starts,
    number: u64,
}

impl Starts {
    pub(crate) fn begin(&self, tenant: &TenantId) -> Starting<'_> {
        let mut open = self.open.lock();
        let number = open.next;
        open.next += 1;
        open.tenants.insert(number, tenant.clone());
        Starting { starts: self, number }
    }

    /// Waits until every start of this tenant that has begun by now is queued.
    pub(crate) async fn queued(&self, tenant: &TenantId) {
        let before = self.open.lock().next;
        loop {
            let ended = self.ended.notified();
            tokio::pin!(ended);
            // Registered before the check, so that an end in between is not missed.
            ended.as_mut().enable();
            if !self.open.lock().tenants.range(..before).any(|(_, of)| of == tenant) {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        self.starts.open.lock().tenants.remove(&self.number);
        self.starts.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn only_earlier_starts_of_the_same_tenant_are_waited_for() {
        let starts = Starts::default();
        let (a, b) = (TenantId::new("a"), TenantId::new("b"));
        let frozen = starts.begin(&b);
        let mine = starts.begin(&a);
        let mut waits = Box::pin(starts.queued(&a));
        assert!(waits.as_mut().now_or_never().is_none());
        let later = starts.begin(&a);
        drop(mine);
        assert!(waits.as_mut().now_or_never().is_some(), "neither a later one nor another tenant's counts");
        drop((frozen, later));
        assert!(starts.queued(&b).now_or_never().is_some());
    }
}
