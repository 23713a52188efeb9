//! Whose turn it is to be stepped. There are as many places as step threads. One tenant gets only some of them, so that
//! another tenant's step finds a free thread at once, and tenants that wait take turns.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::{RunId, TenantId};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::StepNotes;
use super::usage::Usage;

thread_local! {
    /// Whether a place that was given back on this thread went to another tenant, and nobody was let pass since.
    static WOKE_ANOTHER: Cell<bool> = const { Cell::new(false) };
}

/// Whether somebody else should be let pass before this thread steps again: tokio keeps whoever was woken last for the
/// thread that did it, and a step may never end.
pub(crate) fn should_pass() -> bool {
    WOKE_ANOTHER.replace(false)
}

/// Places to be stepped in. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Turns {
    shared: Arc<Mutex<TurnSlots>>,
    /// Where it is noted who is being stepped in which place. A note is taken away before its place is free; whoever gets
    /// the place at once writes over it.
    notes: Option<Arc<PlaceNotes>>,
}

/// Where it is noted what is being stepped, and in which places a note stands.
struct PlaceNotes {
    notes: Arc<StepNotes>,
    standing: Box<[AtomicBool]>,
}

impl PlaceNotes {
    fn write(&self, place: usize, root: &RunId, run: &RunId, durable: u64) {
        if let Some(standing) = self.standing.get(place) {
            standing.store(true, Ordering::Release);
            self.notes.begin(place, root, run, durable);
        }
    }

    fn take_away(&self, place: usize) {
        if self.standing.get(place).is_some_and(|standing| standing.swap(false, Ordering::AcqRel)) {
            self.notes.end(place);
        }
    }
}

/// Leave to step one run, in one place. Given back when dropped.
pub(crate) struct Turn {
    turns: Turns,
    tenant: TenantId,
    place: usize,
    /// Its tenant computes much while others work; see [`super::pace`].
    gives_way: bool,
    since: Instant,
}

/// A place, and whether whoever got it is to give way.
#[derive(Clone, Copy)]
struct Seat {
    place: usize,
    gives_way: bool,
}

struct TurnSlots {
    free: Vec<usize>,
    /// Places whose step does not end, and whose it is. They no longer count among those that their tenants use.
    lost: BTreeMap<usize, TenantId>,
    most_per_tenant: usize,
    /// The places of those who give way, and how many they may have: they hold theirs for longer, and there may be many of
    /// them. Not those that are lost.
    giving_way: BTreeSet<usize>,
    most_giving_way: usize,
    usage: Usage,
    tenants: BTreeMap<TenantId, Tenant>,
    /// Tenants with somebody waiting, who was served last comes last.
    order: VecDeque<TenantId>,
}

#[derive(Default)]
struct Tenant {
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

impl Turns {
    pub(crate) fn new(places: usize, most_per_tenant: usize, notes: Option<Arc<StepNotes>>) -> Self {
        let places = places.max(1);
        // The last place first: `pop` then gives the lowest.
        let free = (0..places).rev().collect();
        let most_per_tenant = most_per_tenant.clamp(1, places);
        let all = TurnSlots {
            free,
            lost: BTreeMap::new(),
            most_per_tenant,
            giving_way: BTreeSet::new(),
            most_giving_way: most_per_tenant,
            usage: Usage::default(),
            tenants: BTreeMap::new(),
            order: VecDeque::new(),
        };
        let standing = || (0..places).map(|_| AtomicBool::new(false)).collect();
        let notes = notes.map(|notes| Arc::new(PlaceNotes { notes, standing: standing() }));
        Self { shared: Arc::new(Mutex::new(all)), notes }
    }

    /// Waits for this tenant's turn.
    pub(crate) async fn take(&self, tenant: &TenantId) -> Turn {
        let waits = {
            let mut places = self.shared.lock();
            match places.seat(tenant) {
                Some(seat) => return self.turn(tenant.clone(), seat),
                None => places.wait(tenant),
            }
        };
        match waits.await {
            Ok(turn) => turn,
            // The sender lives in the places, and they live as long as this does.
            Err(_) => std::future::pending().await,
        }
    }

    fn turn(&self, tenant: TenantId, Seat { place, gives_way }: Seat) -> Turn {
        Turn { turns: self.clone(), tenant, place, gives_way, since: Instant::now() }
    }

    /// A step does not end. Whoever else of its tenant waits does not wait for it.
    pub(crate) fn write_off(&self, tenant: &TenantId, place: usize) {
        let sent = {
            let mut places = self.shared.lock();
            if places.lost.insert(place, tenant.clone()).is_none() {
                places.one_less(tenant);
                places.giving_way.remove(&place);
            }
            self.seat_waiting(&mut places)
        };
        send(sent);
    }

    /// Turns for those who waited and may have a place now. They are sent once the lock is released: one that nobody takes
    /// any more comes straight back.
    fn seat_waiting(&self, places: &mut TurnSlots) -> Vec<(oneshot::Sender<Turn>, Turn)> {
        let next = || places.next().map(|(tenant, seat, waits)| (waits, self.turn(tenant, seat)));
        std::iter::from_fn(next).collect()
    }

    fn give_back(&self, tenant: &TenantId, place: usize, since: Instant) {
        let sent = {
            let now = Instant::now();
            let mut places = self.shared.lock();
            places.usage.add(tenant, now.duration_since(since), now);
            places.leave(tenant, place);
            let sent = self.seat_waiting(&mut places);
            if let Some(notes) = &self.notes
                && sent.iter().all(|(_, turn)| turn.place != place)
            {
                // Before anybody else can be given the place.
                notes.take_away(place);
            }
            sent
        };
        if sent.iter().any(|(_, turn)| turn.tenant != *tenant) {
            // It waits on this very thread until somebody looks.
            WOKE_ANOTHER.set(true);
        }
        send(sent);
    }

    #[cfg(test)]
    fn idle(&self) -> bool {
        let places = self.shared.lock();
        places.tenants.is_empty() && places.order.is_empty()
    }
}

fn send(turns: Vec<(oneshot::Sender<Turn>, Turn)>) {
    for (waits, turn) in turns {
        // Whoever waited is gone: the turn is dropped, which gives its place to the next.
        drop(waits.send(turn));
    }
}

impl TurnSlots {
    /// A place, if there is one for this tenant and nobody of it waits already.
    fn seat(&mut self, tenant: &TenantId) -> Option<Seat> {
        let known = self.tenants.get(tenant);
        if known.is_some_and(|known| !known.waiting.is_empty()) || !self.may(tenant) {
            return None;
        }
        let seat = self.take(tenant)?;
        self.tenants.entry(tenant.clone()).or_default().running += 1;
        Some(seat)
    }

    /// Whether a tenant may have one more place, if there is one.
    fn may(&self, tenant: &TenantId) -> bool {
        self.tenants.get(tenant).is_none_or(|known| known.running < self.most_per_tenant)
            && (self.giving_way.len() < self.most_giving_way || !self.usage.is_much(tenant))
    }

    fn take(&mut self, tenant: &TenantId) -> Option<Seat> {
        let seat = Seat { place: self.free.pop()?, gives_way: self.usage.is_much(tenant) };
        if seat.gives_way {
            self.giving_way.insert(seat.place);
        }
        Some(seat)
    }

    fn wait(&mut self, tenant: &TenantId) -> oneshot::Receiver<Turn> {
        let (sender, receiver) = oneshot::channel();
        let known = self.tenants.entry(tenant.clone()).or_default();
        if known.waiting.is_empty() {
            self.order.push_back(tenant.clone());
        }
        known.waiting.push_back(sender);
        receiver
    }

    fn leave(&mut self, tenant: &TenantId, place: usize) {
        self.free.push(place);
        self.giving_way.remove(&place);
        // It may have ended at the very moment it was given up, and somebody else had the place since.
        if self.lost.remove(&place).as_ref() != Some(tenant) {
            self.one_less(tenant);
        }
    }

    fn one_less(&mut self, tenant: &TenantId) {
        if let Some(known) = self.tenants.get_mut(tenant) {
            known.running = known.running.saturating_sub(1);
            if known.running == 0 && known.waiting.is_empty() {
                self.tenants.remove(tenant);
            }
        }
    }

    /// Who gets the next free place: the tenant that has waited longest and may have one more.
    fn next(&mut self) -> Option<(TenantId, Seat, oneshot::Sender<Turn>)> {
        if self.free.is_empty() {
            return None;
        }
        let position = self.order.iter().position(|tenant| self.may(tenant))?;
        let tenant = self.order.remove(position)?;
        let known = self.tenants.get_mut(&tenant)?;
        let waits = known.waiting.pop_front()?;
        known.running += 1;
        if !known.waiting.is_empty() {
            self.order.push_back(tenant.clone());
        }
        let seat = self.take(&tenant)?;
        Some((tenant, seat, waits))
    }
}

impl Turn {
    pub(crate) fn place(&self) -> usize {
        self.place
    }

    pub(super) fn gives_way(&self) -> bool {
        self.gives_way
    }

    /// Notes what is being stepped here, for whoever starts after this process has died of it.
    pub(super) fn note(&self, root: &RunId, run: &RunId, durable: u64) {
        if let Some(notes) = &self.turns.notes {
            notes.write(self.place, root, run, durable);
        }
    }

    /// What comes now is nobody's step.
    pub(super) fn unnote(&self) {
        if let Some(notes) = &self.turns.notes {
            notes.take_away(self.place);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.give_back(&self.tenant, self.place, self.since);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name)
    }

    fn waiter(turns: &Turns, name: &str) -> BoxFuture<'static, Turn> {
        let (turns, tenant) = (turns.clone(), tenant(name));
        let mut waits = async move { turns.take(&tenant).await }.boxed();
        assert!(waits.as_mut().now_or_never().is_none(), "{name} should wait");
        waits
    }

    #[test]
    fn one_tenant_leaves_half_of_the_places_to_others() {
        let turns = Turns::new(4, 2, None);
        let greedy: Vec<Turn> = (0..2).filter_map(|_| turns.take(&tenant("a")).now_or_never()).collect();
        assert_eq!(greedy.len(), 2);
        let _waits = waiter(&turns, "a");
        let other = turns.take(&tenant("b")).now_or_never();
        assert!(other.is_some(), "another tenant finds a place though somebody waits");
    }

    #[test]
    fn tenants_take_turns_however_many_wait_of_one() {
        let turns = Turns::new(1, 1, None);
        let first = turns.take(&tenant("a")).now_or_never().unwrap();
        let mut crowd: Vec<_> = (0..64).map(|_| waiter(&turns, "a")).collect();
        let mut other = waiter(&turns, "b");
        drop(first);
        let second = crowd.remove(0).now_or_never().unwrap();
        drop(second);
        assert!(other.as_mut().now_or_never().is_some(), "after one of the crowd, the other tenant");
    }

    #[test]
    fn who_stops_waiting_holds_nothing_back() {
        let turns = Turns::new(1, 1, None);
        let first = turns.take(&tenant("a")).now_or_never().unwrap();
        let gone: Vec<_> = (0..8).map(|_| waiter(&turns, "a")).collect();
        let mut left = waiter(&turns, "b");
        drop(gone);
        drop(first);
        drop(left.as_mut().now_or_never().unwrap());
        assert!(turns.idle());
        assert!(turns.take(&tenant("c")).now_or_never().is_some());
    }

    #[test]
    fn a_place_that_is_lost_is_not_held_against_its_tenant() {
        let turns = Turns::new(3, 1, None);
        let frozen = turns.take(&tenant("a")).now_or_never().unwrap();
        let waits = waiter(&turns, "a");
        for _ in 0..2 {
            turns.write_off(&tenant("a"), frozen.place());
        }
        let second = waits.now_or_never().unwrap();
        assert_ne!(second.place(), frozen.place());
        let third = waiter(&turns, "a");
        drop(frozen);
        assert_eq!(turns.shared.lock().free.len(), 2, "it came back");
        drop(second);
        drop(third.now_or_never().unwrap());
        assert!(turns.idle());
    }

    #[test]
    fn however_many_give_way_others_find_a_place() {
        let turns = Turns::new(6, 2, None);
        let now = Instant::now();
        for name in ["a", "b", "c"] {
            turns.shared.lock().usage.add(&tenant(name), std::time::Duration::from_secs(1), now);
        }
        let first = turns.take(&tenant("a")).now_or_never().unwrap();
        let second = turns.take(&tenant("b")).now_or_never().unwrap();
        assert!(first.gives_way() && second.gives_way());
        let third = waiter(&turns, "c");
        let quiet: Vec<_> = (0..2).filter_map(|_| turns.take(&tenant("quiet")).now_or_never()).collect();
        assert_eq!(quiet.iter().map(Turn::gives_way).collect::<Vec<_>>(), [false, false]);
        drop(second);
        let third = third.now_or_never().unwrap();
        assert!(third.gives_way(), "one after the other");
        let fourth = waiter(&turns, "b");
        turns.write_off(&tenant("a"), first.place());
        let fourth = fourth.now_or_never().unwrap();
        drop((first, third, fourth, quiet));
        assert!(turns.idle());
        assert!(turns.shared.lock().giving_way.is_empty());
    }

    #[test]
    fn every_place_is_used_once_at_a_time() {
        let turns = Turns::new(6, 3, None);
        let held: Vec<Turn> = ["a", "b", "c"]
            .iter()
            .flat_map(|name| [*name; 2])
            .filter_map(|name| turns.take(&tenant(name)).now_or_never())
            .collect();
        let mut places: Vec<usize> = held.iter().map(Turn::place).collect();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3, 4, 5]);
        drop(held);
        assert!(turns.idle());
    }

    #[test]
    fn a_note_stands_for_as_long_as_its_step_has_the_place() {
        let dir = tempfile::tempdir().unwrap();
        let notes = Arc::new(StepNotes::open(dir.path()).unwrap());
        let turns = Turns::new(1, 1, Some(notes));
        // What a process that died now would leave; a copy, because reading it begins anew.
        let left = || {
            let copy = tempfile::tempdir().unwrap();
            std::fs::copy(dir.path().join("baton.steps"), copy.path().join("baton.steps")).unwrap();
            StepNotes::open(copy.path())
                .unwrap()
                .suspects()
                .into_keys()
                .map(|root| root.to_string())
                .collect::<Vec<_>>()
        };
        let run = |name: &str| RunId::new(name);
        let first = turns.take(&tenant("a")).now_or_never().unwrap();
        first.note(&run("one"), &run("one"), 3);
        assert_eq!(left(), ["one"]);
        let (second, third) = (waiter(&turns, "b"), waiter(&turns, "c"));
        drop(first);
        let second = second.now_or_never().unwrap();
        second.note(&run("another"), &run("another"), 3);
        assert_eq!(left(), ["another"], "written over by whoever was given the place");
        drop(second);
        let third = third.now_or_never().unwrap();
        third.unnote();
        assert!(left().is_empty(), "what is no step is nobody's");
        third.note(&run("last"), &run("last"), 3);
        drop(third);
        assert!(left().is_empty(), "a free place has no note");
    }
}
