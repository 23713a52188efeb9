//! Whose call of a server, or of a model provider, comes next. One tenant's slow calls leave room for another tenant's: a tenant has no more calls
//! open than there are places left free, and no more waiting than there is room left to wait. So one tenant alone has half
//! of everything, a second one a quarter at once, and with time all of them the same share.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use baton_model::TenantId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The calls of one server or provider.
pub struct CallQueue {
    shared: Arc<Mutex<Calls>>,
}

/// Leave to make one call. Given back when dropped.
pub struct CallTurn {
    shared: Arc<Mutex<Calls>>,
    tenant: TenantId,
}

struct Calls {
    /// How many may be open at the same time, and how many may wait.
    most_open: usize,
    most_waiting: usize,
    open: usize,
    waiting: usize,
    tenants: BTreeMap<TenantId, Tenant>,
    /// Tenants with somebody waiting, who was served last comes last.
    order: VecDeque<TenantId>,
    tickets: u64,
}

#[derive(Default)]
struct Tenant {
    open: usize,
    waiting: VecDeque<(u64, oneshot::Sender<CallTurn>)>,
}

/// Somebody who waits. Takes no room any more when dropped.
struct Waiter<'a> {
    lane: &'a CallQueue,
    tenant: &'a TenantId,
    ticket: u64,
}

impl CallQueue {
    /// With places for so many open calls, and room for so many that wait. Both are at least one.
    pub fn new(most_open: usize, most_waiting: usize) -> Self {
        let calls = Calls {
            most_open: most_open.max(1),
            most_waiting: most_waiting.max(1),
            open: 0,
            waiting: 0,
            tenants: BTreeMap::new(),
            order: VecDeque::new(),
            tickets: 0,
        };
        Self { shared: Arc::new(Mutex::new(calls)) }
    }

    /// How many calls are open, and how many wait.
    pub fn counts(&self) -> (usize, usize) {
        let calls = self.shared.lock();
        (calls.open, calls.waiting)
    }

    /// A turn, when it comes. None if too many wait already.
    pub async fn turn(&self, tenant: &TenantId) -> Option<CallTurn> {
        let (ticket, turn) = {
            let mut calls = self.shared.lock();
            if calls.take(tenant) {
                return Some(CallTurn { shared: Arc::clone(&self.shared), tenant: tenant.clone() });
            }
            calls.wait(tenant)?
        };
        let _waiter = Waiter { lane: self, tenant, ticket };
        turn.await.ok()
    }
}

impl Calls {
    /// Takes a place, if there is one for this tenant and nobody of it waits already.
    fn take(&mut self, tenant: &TenantId) -> bool {
        let known = self.tenants.get(tenant);
        let free = known.is_none_or(|known| known.waiting.is_empty()) && self.may(known);
        if free {
            self.open += 1;
            self.tenants.entry(tenant.clone()).or_default().open += 1;
        }
        free
    }

    /// Whether a tenant may have one more call open.
    fn may(&self, tenant: Option<&Tenant>) -> bool {
        tenant.map_or(0, |tenant| tenant.open) < self.most_open - self.open
    }

    fn wait(&mut self, tenant: &TenantId) -> Option<(u64, oneshot::Receiver<CallTurn>)> {
        let waiting = self.tenants.get(tenant).map_or(0, |known| known.waiting.len());
        if waiting >= self.most_waiting - self.waiting {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        self.tickets += 1;
        self.waiting += 1;
        if waiting == 0 {
            self.order.push_back(tenant.clone());
        }
        self.tenants.entry(tenant.clone()).or_default().waiting.push_back((self.tickets, sender));
        Some((self.tickets, receiver))
    }

    /// The next who gets a place: of the tenant that has waited longest and may have one more.
    fn next(&mut self) -> Option<(TenantId, oneshot::Sender<CallTurn>)> {
        let position = self.order.iter().position(|tenant| self.may(self.tenants.get(tenant)))?;
        let tenant = self.order.remove(position)?;
        let known = self.tenants.get_mut(&tenant)?;
        let (_, sender) = known.waiting.pop_front()?;
        known.open += 1;
        if !known.waiting.is_empty() {
            self.order.push_back(tenant.clone());
        }
        self.open += 1;
        self.waiting -= 1;
        Some((tenant, sender))
    }

    fn leave(&mut self, tenant: &TenantId) {
        self.open -= 1;
        if let Some(known) = self.tenants.get_mut(tenant) {
            known.open -= 1;
        }
        self.forget(tenant);
    }

    /// Somebody waits no longer, whether or not its turn came.
    fn gone(&mut self, tenant: &TenantId, ticket: u64) {
        let Some(known) = self.tenants.get_mut(tenant) else { return };
        // The numbers ascend.
        let Ok(position) = known.waiting.binary_search_by_key(&ticket, |(number, _)| *number) else { return };
        known.waiting.remove(position);
        self.waiting -= 1;
        if known.waiting.is_empty() {
            self.order.retain(|other| other != tenant);
        }
        self.forget(tenant);
    }

    fn forget(&mut self, tenant: &TenantId) {
        if self.tenants.get(tenant).is_some_and(|known| known.open == 0 && known.waiting.is_empty()) {
            self.tenants.remove(tenant);
        }
    }
}

impl Drop for CallTurn {
    fn drop(&mut self) {
        // Sent after the lock is released: a turn that nobody takes any more comes straight back here.
        let mut sent = Vec::new();
        {
            let mut calls = self.shared.lock();
            calls.leave(&self.tenant);
            while let Some((tenant, sender)) = calls.next() {
                sent.push((sender, CallTurn { shared: Arc::clone(&self.shared), tenant }));
            }
        }
        for (sender, turn) in sent {
            drop(sender.send(turn));
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.lane.shared.lock().gone(self.tenant, self.ticket);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;

    const OPEN_CALLS: usize = 128;
    const WAITING_CALLS: usize = 1024;

    fn queue() -> Arc<CallQueue> {
        Arc::new(CallQueue::new(OPEN_CALLS, WAITING_CALLS))
    }

    type Coming = BoxFuture<'static, Option<CallTurn>>;

    /// Asks for a turn: it is there, refused, or waited for.
    fn ask(lane: &Arc<CallQueue>, tenant: &str) -> Result<Option<CallTurn>, Coming> {
        let (lane, tenant) = (Arc::clone(lane), TenantId::new(tenant));
        let mut coming = async move { lane.turn(&tenant).await }.boxed();
        match coming.as_mut().now_or_never() {
            Some(answer) => Ok(answer),
            None => Err(coming),
        }
    }

    /// Asks until somebody is refused.
    fn crowd(lane: &Arc<CallQueue>, tenant: &str) -> (Vec<CallTurn>, VecDeque<Coming>) {
        let (mut open, mut waiting) = (Vec::new(), VecDeque::new());
        loop {
            match ask(lane, tenant) {
                Ok(Some(turn)) => open.push(turn),
                Ok(None) => return (open, waiting),
                Err(coming) => waiting.push_back(coming),
            }
        }
    }

    fn is_idle(lane: &CallQueue) -> bool {
        let calls = lane.shared.lock();
        (calls.open, calls.waiting) == (0, 0) && calls.tenants.is_empty() && calls.order.is_empty()
    }

    #[test]
    fn however_much_some_ask_for_there_is_room_for_another() {
        let lane = queue();
        let a = crowd(&lane, "a");
        assert_eq!((a.0.len(), a.1.len()), (OPEN_CALLS / 2, WAITING_CALLS / 2));
        let b = crowd(&lane, "b");
        assert_eq!((b.0.len(), b.1.len()), (OPEN_CALLS / 4, WAITING_CALLS / 4));
        let c = crowd(&lane, "c");
        assert_eq!((c.0.len(), c.1.len()), (OPEN_CALLS / 8, WAITING_CALLS / 8));
        assert!(matches!(ask(&lane, "d"), Ok(Some(_))));
        drop((a, b, c));
        assert!(is_idle(&lane));
    }

    #[test]
    fn a_turn_that_is_over_is_the_next_ones() {
        let lane = queue();
        let (mut a, mut waiting) = crowd(&lane, "a");
        for _ in 0..WAITING_CALLS / 2 {
            a.remove(0);
            a.push(waiting.pop_front().unwrap().now_or_never().unwrap().unwrap());
        }
        assert!(waiting.is_empty());
        drop(a);
        assert!(is_idle(&lane));
    }

    #[test]
    fn with_time_all_have_the_same_share() {
        let lane = queue();
        let mut crowds = [crowd(&lane, "a"), crowd(&lane, "b"), crowd(&lane, "c")];
        for round in 0..300 {
            // The oldest call of all ends, and whoever may begins.
            crowds[round % 3].0.remove(0);
            for (open, waiting) in &mut crowds {
                while let Some(Some(turn)) = waiting.front_mut().and_then(|first| first.now_or_never()) {
                    waiting.pop_front();
                    open.push(turn);
                }
            }
        }
        let shares = crowds.each_ref().map(|(open, _)| open.len());
        assert!(shares.iter().all(|share| (30..=34).contains(share)), "{shares:?}");
    }

    #[test]
    fn who_stops_waiting_takes_no_room() {
        let lane = queue();
        let (open, waiting) = crowd(&lane, "a");
        drop(waiting);
        let again: Vec<_> = (0..WAITING_CALLS / 2).map(|_| ask(&lane, "a")).collect();
        assert!(again.iter().all(Result::is_err), "as many can wait again");
        // One whose turn came, and who left before it took it, holds nothing.
        drop(open);
        drop(again);
        assert!(is_idle(&lane));
    }
}
