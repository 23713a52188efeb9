//! Who is called next: tenants take turns, and so do the subscribers of each. Whatever happens to one subscriber costs
//! the same, give or take a logarithm, however many there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use baton_model::{TenantId, Timestamp, WebhookId};
use tokio::task::Id;

/// How many subscribers are called at the same time: bounds sockets, not the throughput of a healthy one.
pub(super) const LANES: usize = 64;
/// How many of them one tenant may have, so that its dead subscribers are not waited for by others.
pub(super) const LANES_PER_TENANT: usize = LANES / 2;
/// How many lanes those may have, in all, whose last call failed or took long: each holds its lane until it answers, or
/// until time is up.
pub(super) const LANES_FOR_TROUBLED: usize = LANES / 2;

/// Who is being called.
#[derive(Default)]
pub(super) struct Calling {
    tasks: BTreeMap<Id, Call>,
    of_webhook: BTreeMap<WebhookId, Id>,
    of_tenant: BTreeMap<TenantId, usize>,
    troubled: usize,
}

pub(super) struct Call {
    pub(super) webhook: WebhookId,
    tenant: TenantId,
    troubled: bool,
    /// There was news while it was being called.
    pub(super) again: bool,
}

impl Calling {
    pub(super) fn is_full(&self) -> bool {
        self.tasks.len() >= LANES
    }

    fn has_room_for(&self, tenant: &TenantId) -> bool {
        self.of_tenant.get(tenant).copied().unwrap_or(0) < LANES_PER_TENANT
    }

    fn has_room_for_troubled(&self) -> bool {
        self.troubled < LANES_FOR_TROUBLED
    }

    pub(super) fn begin(&mut self, task: Id, next: Next) {
        let Next { tenant, webhook, troubled } = next;
        *self.of_tenant.entry(tenant.clone()).or_default() += 1;
        self.troubled += usize::from(troubled);
        self.of_webhook.insert(webhook.clone(), task);
        self.tasks.insert(task, Call { webhook, tenant, troubled, again: false });
    }

    pub(super) fn end(&mut self, task: Id) -> Option<Call> {
        let call = self.tasks.remove(&task)?;
        self.of_webhook.remove(&call.webhook);
        self.troubled -= usize::from(call.troubled);
        if let Some(count) = self.of_tenant.get_mut(&call.tenant) {
            *count -= 1;
            if *count == 0 {
                self.of_tenant.remove(&call.tenant);
            }
        }
        Some(call)
    }

    /// Notes that there is more for somebody who is being called. Says whether it is.
    pub(super) fn call_again(&mut self, webhook: &WebhookId) -> bool {
        let call = self.of_webhook.get(webhook).and_then(|task| self.tasks.get_mut(task));
        call.map(|call| call.again = true).is_some()
    }
}

/// When subscribers have something due again.
#[derive(Default)]
pub(super) struct Later {
    at: BTreeMap<WebhookId, Timestamp>,
    order: BTreeSet<(Timestamp, WebhookId)>,
}

impl Later {
    pub(super) fn set(&mut self, webhook: WebhookId, at: Timestamp) {
        self.remove(&webhook);
        self.at.insert(webhook.clone(), at);
        self.order.insert((at, webhook));
    }

    pub(super) fn remove(&mut self, webhook: &WebhookId) {
        if let Some((webhook, at)) = self.at.remove_entry(webhook) {
            self.order.remove(&(at, webhook));
        }
    }

    pub(super) fn first(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }

    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<WebhookId> {
        let mut due = Vec::new();
        while self.first().is_some_and(|at| at <= now)
            && let Some((_, webhook)) = self.order.pop_first()
        {
            self.at.remove(&webhook);
            due.push(webhook);
        }
        due
    }
}

/// Subscribers with something due.
#[derive(Default)]
pub(super) struct Ready {
    of: BTreeMap<TenantId, Waiting>,
    /// Tenants by their turn: those of whom somebody waits who is well, and who is in trouble.
    well: BTreeSet<(u64, TenantId)>,
    troubled: BTreeSet<(u64, TenantId)>,
    there: BTreeSet<WebhookId>,
    /// Numbers turns and arrivals.
    last: u64,
}

/// The subscribers of a tenant, who came first, first.
#[derive(Default)]
struct Waiting {
    turn: u64,
    well: VecDeque<(u64, WebhookId)>,
    troubled: VecDeque<(u64, WebhookId)>,
}

#[derive(Debug)]
pub(super) struct Next {
    pub(super) tenant: TenantId,
    pub(super) webhook: WebhookId,
    troubled: bool,
}

impl Ready {
    pub(super) fn add(&mut self, tenant: &TenantId, webhook: WebhookId, troubled: bool) {
        if !self.there.insert(webhook.clone()) {
            return;
        }
        self.last += 1;
        let number = self.last;
        let waiting = self.of.entry(tenant.clone()).or_insert_with(|| Waiting { turn: number, ..Waiting::default() });
        let (queue, order) = match troubled {
            true => (&mut waiting.troubled, &mut self.troubled),
            false => (&mut waiting.well, &mut self.well),
        };
        queue.push_back((number, webhook));
        order.insert((waiting.turn, tenant.clone()));
    }

    /// The next one that may be called. Few tenants are passed over: all lanes are taken by then.
    pub(super) fn next(&mut self, calling: &Calling) -> Option<Next> {
        let first =
            |order: &BTreeSet<(u64, TenantId)>| order.iter().find(|(_, tenant)| calling.has_room_for(tenant)).cloned();
        let well = first(&self.well);
        let troubled = if calling.has_room_for_troubled() { first(&self.troubled) } else { None };
        let (turn, tenant) = well.iter().chain(&troubled).min()?.clone();
        let turns = (turn, tenant);
        let (is_well, is_troubled) = (well.as_ref() == Some(&turns), troubled.as_ref() == Some(&turns));
        let waiting = self.of.get_mut(&turns.1)?;
        // Whoever came first, if both may be called.
        let came =
            |queue: &VecDeque<(u64, WebhookId)>, may: bool| queue.front().filter(|_| may).map(|(number, _)| *number);
        let troubled = match (came(&waiting.well, is_well), came(&waiting.troubled, is_troubled)) {
            (Some(well), Some(troubled)) => troubled < well,
            (None, Some(_)) => true,
            _ => false,
        };
        let queue = if troubled { &mut waiting.troubled } else { &mut waiting.well };
        let (_, webhook) = queue.pop_front()?;
        self.there.remove(&webhook);
        self.well.remove(&turns);
        self.troubled.remove(&turns);
        // Its next turn is after everybody's who waits.
        self.last += 1;
        waiting.turn = self.last;
        let tenant = turns.1;
        for (queue, order) in [(&waiting.well, &mut self.well), (&waiting.troubled, &mut self.troubled)] {
            if !queue.is_empty() {
                order.insert((waiting.turn, tenant.clone()));
            }
        }
        if waiting.well.is_empty() && waiting.troubled.is_empty() {
            self.of.remove(&tenant);
        }
        Some(Next { tenant, webhook, troubled })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn add(ready: &mut Ready, tenant: &str, webhook: &str, troubled: bool) {
        ready.add(&TenantId::new(tenant), WebhookId::new(webhook), troubled);
    }

    /// Sets everybody to work who may be, and says in which order.
    async fn start(ready: &mut Ready, calling: &mut Calling) -> Vec<String> {
        let mut order = Vec::new();
        while !calling.is_full()
            && let Some(next) = ready.next(calling)
        {
            order.push(next.webhook.to_string());
            // Only its name is needed.
            let task = tokio::spawn(async {});
            calling.begin(task.id(), next);
        }
        order
    }

    fn end(calling: &mut Calling, webhook: &str) {
        let task = calling.of_webhook[&WebhookId::new(webhook)];
        assert_eq!(calling.end(task).unwrap().webhook.as_str(), webhook);
    }

    #[tokio::test]
    async fn tenants_take_turns_and_nobody_is_there_twice() {
        let (mut ready, mut calling) = (Ready::default(), Calling::default());
        for name in ["a1", "a2", "a1", "a3"] {
            add(&mut ready, "a", name, false);
        }
        add(&mut ready, "b", "b1", false);
        assert_eq!(start(&mut ready, &mut calling).await, ["a1", "b1", "a2", "a3"]);
    }

    #[tokio::test]
    async fn who_is_in_trouble_takes_turns_with_who_is_well() {
        let (mut ready, mut calling) = (Ready::default(), Calling::default());
        add(&mut ready, "a", "a-dead", true);
        add(&mut ready, "a", "a-well", false);
        add(&mut ready, "b", "b-well", false);
        add(&mut ready, "b", "b-slow", true);
        assert_eq!(start(&mut ready, &mut calling).await, ["a-dead", "b-well", "a-well", "b-slow"]);
    }

    #[tokio::test]
    async fn half_of_the_lanes_are_for_those_who_are_well() {
        let (mut ready, mut calling) = (Ready::default(), Calling::default());
        for tenant in ["a", "b", "c"] {
            for number in 0..LANES {
                add(&mut ready, tenant, &format!("{tenant}-slow-{number}"), true);
            }
        }
        assert_eq!(start(&mut ready, &mut calling).await.len(), LANES_FOR_TROUBLED);
        for number in 0..LANES {
            add(&mut ready, "d", &format!("d-well-{number}"), false);
        }
        let order = start(&mut ready, &mut calling).await;
        assert_eq!(order.len(), LANES - LANES_FOR_TROUBLED);
        assert!(order.iter().all(|name| name.starts_with("d-well")), "{order:?}");
        end(&mut calling, "a-slow-0");
        assert_eq!(start(&mut ready, &mut calling).await.len(), 1, "one lane was let go");
    }

    #[tokio::test]
    async fn no_tenant_has_more_than_its_share() {
        let (mut ready, mut calling) = (Ready::default(), Calling::default());
        for number in 0..LANES {
            add(&mut ready, "a", &format!("a{number}"), false);
        }
        assert_eq!(start(&mut ready, &mut calling).await.len(), LANES_PER_TENANT);
        add(&mut ready, "b", "b", false);
        assert_eq!(start(&mut ready, &mut calling).await, ["b"]);
        end(&mut calling, "a0");
        assert_eq!(start(&mut ready, &mut calling).await, [format!("a{LANES_PER_TENANT}")]);
        assert!(calling.call_again(&WebhookId::new("b")) && !calling.call_again(&WebhookId::new("a0")));
    }

    /// With a look at everybody for each, this would not end.
    #[tokio::test]
    async fn a_crowd_is_gone_through_one_by_one() {
        const CROWD: usize = 100_000;
        let (mut ready, calling, mut later) = (Ready::default(), Calling::default(), Later::default());
        for number in 0..CROWD {
            add(&mut ready, "a", &format!("{number}"), number % 2 == 0);
        }
        let mut count = 0;
        while let Some(next) = ready.next(&calling) {
            later.set(next.webhook, Timestamp::from_millis(count % 10));
            count += 1;
        }
        assert_eq!(count, CROWD as i64);
        assert!(ready.of.is_empty() && ready.there.is_empty() && ready.well.is_empty() && ready.troubled.is_empty());
        for at in 0..10 {
            assert_eq!(later.first(), Some(Timestamp::from_millis(at)));
            assert_eq!(later.take_due(Timestamp::from_millis(at)).len(), CROWD / 10);
        }
        assert_eq!((later.first(), later.at.len()), (None, 0));
    }
}
