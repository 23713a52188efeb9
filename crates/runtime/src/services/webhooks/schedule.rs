//! Who is called next: tenants take turns, and so do the subscribers of each. Whatever happens to one subscriber costs
//! the same, give or take a logarithm, however many there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use baton_model::{TenantId, Timestamp, WebhookId};
use tokio::task::Id;

/// How many subscribers are called at the same time: bounds sockets, not the throughput of a healthy one.
pub(super) const LANES: usize = 64;
/// How many of them one tenant may have, so that its dead subscribers are not waited for by others.
pub(super) const LANES_PER_TENANT: usize = LANES / 2;

/// What is known of a subscriber. One that does not answer holds its lane until time is up, so those of whom less good is
/// known have fewer lanes: whoever answers at once always finds one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// Its last call was answered at once.
    Prompt,
    /// It has not been called yet.
    Unknown,
    /// Its last call failed or took long.
    Troubled,
}

const STANDINGS: [Standing; 3] = [Standing::Prompt, Standing::Unknown, Standing::Troubled];

impl Standing {
    /// How many lanes those of this standing and below may have, in all and of one tenant.
    const fn lanes(self) -> (usize, usize) {
        match self {
            Self::Prompt => (LANES, LANES_PER_TENANT),
            Self::Unknown => (LANES * 3 / 4, LANES_PER_TENANT * 3 / 4),
            Self::Troubled => (LANES / 2, LANES_PER_TENANT / 2),
        }
    }
}

/// Calls by standing.
#[derive(Clone, Copy, Default)]
struct Count([usize; 3]);

impl Count {
    /// Calls of those of this standing and below.
    fn from(self, standing: Standing) -> usize {
        self.0[standing as usize..].iter().sum()
    }

    /// Whether one more of this standing stays within what is allowed.
    fn has_room(self, standing: Standing, most: impl Fn(Standing) -> usize) -> bool {
        STANDINGS.iter().filter(|other| **other <= standing).all(|other| self.from(*other) < most(*other))
    }
}

/// Who is being called.
#[derive(Default)]
pub(super) struct Calling {
    tasks: BTreeMap<Id, Call>,
    of_webhook: BTreeMap<WebhookId, Id>,
    of_tenant: BTreeMap<TenantId, Count>,
    all: Count,
}

pub(super) struct Call {
    pub(super) webhook: WebhookId,
    tenant: TenantId,
    standing: Standing,
    /// There was news while it was being called.
    pub(super) again: bool,
}

impl Calling {
    pub(super) fn is_full(&self) -> bool {
        self.tasks.len() >= LANES
    }

    fn has_room_for(&self, tenant: &TenantId, standing: Standing) -> bool {
        let count = self.of_tenant.get(tenant).copied().unwrap_or_default();
        count.has_room(standing, |standing| standing.lanes().1)
    }

    fn has_room(&self, standing: Standing) -> bool {
        self.all.has_room(standing, |standing| standing.lanes().0)
    }

    pub(super) fn begin(&mut self, task: Id, next: Next) {
        let Next { tenant, webhook, standing } = next;
        self.of_tenant.entry(tenant.clone()).or_default().0[standing as usize] += 1;
        self.all.0[standing as usize] += 1;
        self.of_webhook.insert(webhook.clone(), task);
        self.tasks.insert(task, Call { webhook, tenant, standing, again: false });
    }

    pub(super) fn end(&mut self, task: Id) -> Option<Call> {
        let call = self.tasks.remove(&task)?;
        self.of_webhook.remove(&call.webhook);
        self.all.0[call.standing as usize] -= 1;
        if let Some(count) = self.of_tenant.get_mut(&call.tenant) {
            count.0[call.standing as usize] -= 1;
            if count.from(Standing::Prompt) == 0 {
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
    /// Tenants by their turn, for each standing: those of whom somebody of that standing waits.
    turns: [BTreeSet<(u64, TenantId)>; 3],
    there: BTreeSet<WebhookId>,
    /// Numbers turns and arrivals.
    last: u64,
}

/// The subscribers of a tenant by standing, who came first, first.
#[derive(Default)]
struct Waiting {
    turn: u64,
    queues: [VecDeque<(u64, WebhookId)>; 3],
}

#[derive(Debug)]
pub(super) struct Next {
    pub(super) tenant: TenantId,
    pub(super) webhook: WebhookId,
    standing: Standing,
}

impl Ready {
    pub(super) fn add(&mut self, tenant: &TenantId, webhook: WebhookId, standing: Standing) {
        if !self.there.insert(webhook.clone()) {
            return;
        }
        self.last += 1;
        let number = self.last;
        let waiting = self.of.entry(tenant.clone()).or_insert_with(|| Waiting { turn: number, ..Waiting::default() });
        waiting.queues[standing as usize].push_back((number, webhook));
        self.turns[standing as usize].insert((waiting.turn, tenant.clone()));
    }

    /// The next one that may be called. Few tenants are passed over: all lanes are taken by then.
    pub(super) fn next(&mut self, calling: &Calling) -> Option<Next> {
        let first = |standing: Standing| {
            let mut turns = self.turns[standing as usize].iter();
            let may = calling.has_room(standing);
            may.then(|| turns.find(|(_, tenant)| calling.has_room_for(tenant, standing))).flatten()
        };
        let (turn, tenant) = STANDINGS.into_iter().filter_map(first).min()?.clone();
        let waiting = self.of.get_mut(&tenant)?;
        // Whoever came first of those who may be called.
        let may = |standing: &Standing| calling.has_room(*standing) && calling.has_room_for(&tenant, *standing);
        let came = |standing: &Standing| waiting.queues[*standing as usize].front().map(|(number, _)| *number);
        let standing =
            STANDINGS.into_iter().filter(may).filter(|standing| came(standing).is_some()).min_by_key(came)?;
        let (_, webhook) = waiting.queues[standing as usize].pop_front()?;
        self.there.remove(&webhook);
        // Its next turn is after everybody's who waits.
        self.last += 1;
        waiting.turn = self.last;
        for (queue, turns) in waiting.queues.iter().zip(&mut self.turns) {
            turns.remove(&(turn, tenant.clone()));
            if !queue.is_empty() {
                turns.insert((waiting.turn, tenant.clone()));
            }
        }
        if waiting.queues.iter().all(VecDeque::is_empty) {
            self.of.remove(&tenant);
        }
        Some(Next { tenant, webhook, standing })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LANES_FOR_TROUBLED: usize = Standing::Troubled.lanes().0;

    fn add(ready: &mut Ready, tenant: &str, webhook: &str, troubled: bool) {
        let standing = if troubled { Standing::Troubled } else { Standing::Prompt };
        ready.add(&TenantId::new(tenant), WebhookId::new(webhook), standing);
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

    /// Of the same tenant, too: a thousand that never answer leave lanes to the one that does.
    #[tokio::test]
    async fn whoever_answers_at_once_finds_a_lane_beside_any_number_who_do_not() {
        for standings in [&[Standing::Unknown][..], &[Standing::Troubled], &[Standing::Unknown, Standing::Troubled]] {
            let (mut ready, mut calling) = (Ready::default(), Calling::default());
            for number in 0..1000 {
                let standing = standings[number % standings.len()];
                ready.add(&TenantId::new("a"), WebhookId::new(format!("a-mute-{number}")), standing);
            }
            let mute = start(&mut ready, &mut calling).await.len();
            assert!(mute < LANES_PER_TENANT, "{mute}");
            add(&mut ready, "a", "a-well", false);
            add(&mut ready, "b", "b-well", false);
            let mut called = start(&mut ready, &mut calling).await;
            called.sort();
            assert_eq!(called, ["a-well", "b-well"]);
        }
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
        assert!(ready.of.is_empty() && ready.there.is_empty() && ready.turns.iter().all(BTreeSet::is_empty));
        for at in 0..10 {
            assert_eq!(later.first(), Some(Timestamp::from_millis(at)));
            assert_eq!(later.take_due(Timestamp::from_millis(at)).len(), CROWD / 10);
        }
        assert_eq!((later.first(), later.at.len()), (None, 0));
    }
}
