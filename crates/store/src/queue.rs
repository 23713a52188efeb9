//! What waits for the writer: in turns between tenants, and how much of it there is.
//!
//! Commits of one tenant keep their order. Those of several take turns, so that one that writes much keeps nobody else
//! waiting for longer than its turn takes. What belongs to no tenant keeps its place: everything queued before it comes
//! first, and everything queued after it comes later.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_model::TenantId;
use tokio::sync::Notify;

/// How many bytes of one tenant are taken before it is the next one's turn: as much as a disk takes in a millisecond or
/// two, and more than a hundred ordinary commits have.
const TURN_BYTES: usize = 256 * 1024;

/// What a commit counts at least, however little it has: many small ones are not one turn.
const LEAST_BYTES: usize = 4 * 1024;

/// What waits, in turns.
#[derive(Debug)]
pub struct FairQueue<T> {
    sections: VecDeque<Section<T>>,
    waiting: usize,
}

/// What was queued between two that belong to no tenant.
#[derive(Debug)]
struct Section<T> {
    tenants: HashMap<TenantId, VecDeque<(usize, T)>>,
    /// Whose turn it is, and then whose.
    turns: VecDeque<TenantId>,
    /// What comes after all of them.
    last: Option<Last<T>>,
}

#[derive(Debug)]
struct Last<T> {
    bytes: usize,
    /// Nothing else is taken with it.
    alone: bool,
    item: T,
}

impl<T> Default for Section<T> {
    fn default() -> Self {
        Self { tenants: HashMap::new(), turns: VecDeque::new(), last: None }
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { sections: VecDeque::new(), waiting: 0 }
    }
}

impl<T> FairQueue<T> {
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    pub fn len(&self) -> usize {
        self.waiting
    }

    /// `None` for what must keep its place among all others.
    pub fn push(&mut self, tenant: Option<&TenantId>, bytes: usize, item: T) {
        let Some(tenant) = tenant else { return self.push_last(Last { bytes, alone: false, item }) };
        let section = self.section();
        match section.tenants.get_mut(tenant) {
            Some(queue) => queue.push_back((bytes, item)),
            None => {
                section.tenants.insert(tenant.clone(), VecDeque::from([(bytes, item)]));
                section.turns.push_back(tenant.clone());
            }
        }
    }

    /// What keeps its place among all others, and is taken by itself.
    pub fn push_alone(&mut self, item: T) {
        self.push_last(Last { bytes: 0, alone: true, item });
    }

    fn push_last(&mut self, last: Last<T>) {
        self.section().last = Some(last);
    }

    /// The one that takes in more.
    fn section(&mut self) -> &mut Section<T> {
        self.waiting += 1;
        if self.sections.back().is_none_or(|section| section.last.is_some()) {
            self.sections.push_back(Section::default());
        }
        let newest = self.sections.len() - 1;
        &mut self.sections[newest]
    }

    /// Takes everything, in the order in which it would have been taken.
    pub fn take_all(&mut self) -> Vec<T> {
        let mut all = Vec::new();
        while !self.is_empty() {
            all.extend(self.take(usize::MAX, usize::MAX));
        }
        all
    }

    /// Takes what comes next: at most so many, and so many bytes unless the first alone has more.
    pub fn take(&mut self, most: usize, most_bytes: usize) -> Vec<T> {
        let mut batch = Batch { items: Vec::new(), bytes: 0, most, most_bytes };
        while let Some(section) = self.sections.front_mut() {
            if !section.take_turns(&mut batch) {
                break;
            }
            match section.last.take() {
                Some(last) if last.alone && !batch.items.is_empty() || !batch.has_room(last.bytes) => {
                    section.last = Some(last);
                    break;
                }
                Some(last) => {
                    batch.add(last.bytes, last.item);
                    self.sections.pop_front();
                    if last.alone {
                        break;
                    }
                }
                None => drop(self.sections.pop_front()),
            }
        }
        self.waiting -= batch.items.len();
        batch.items
    }
}

/// What is being taken.
struct Batch<T> {
    items: Vec<T>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl<T> Batch<T> {
    fn has_room(&self, bytes: usize) -> bool {
        self.items.is_empty() || (self.items.len() < self.most && self.bytes.saturating_add(bytes) <= self.most_bytes)
    }

    fn add(&mut self, bytes: usize, item: T) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.push(item);
    }
}

impl<T> Section<T> {
    /// Takes from each tenant in turn. False if there was more than there is room for.
    fn take_turns(&mut self, batch: &mut Batch<T>) -> bool {
        'turns: while let Some(tenant) = self.turns.pop_front() {
            let Some(queue) = self.tenants.get_mut(&tenant) else { continue };
            let mut turn = 0;
            while let Some((bytes, item)) = queue.pop_front() {
                let counts = bytes.max(LEAST_BYTES);
                let over = turn > 0 && turn + counts > TURN_BYTES;
                if over || !batch.has_room(bytes) {
                    queue.push_front((bytes, item));
                    if over {
                        self.turns.push_back(tenant);
                        continue 'turns;
                    }
                    // It is the first to go on.
                    self.turns.push_front(tenant);
                    return false;
                }
                turn += counts;
                batch.add(bytes, item);
            }
            self.tenants.remove(&tenant);
        }
        true
    }
}

/// How many bytes wait, and a bell for whoever waits for room.
#[derive(Debug, Default)]
pub struct QueueGauge {
    bytes: AtomicUsize,
    freed: Notify,
}

/// Bytes that wait until this is dropped.
#[derive(Debug)]
pub struct QueuedBytes {
    gauge: Arc<QueueGauge>,
    bytes: usize,
}

impl QueueGauge {
    pub fn add(self: &Arc<Self>, bytes: usize) -> QueuedBytes {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        QueuedBytes { gauge: Arc::clone(self), bytes }
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Waits until less than this waits.
    pub async fn below(&self, most: usize) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the look, so that what is freed in between is not missed.
            freed.as_mut().enable();
            if self.bytes() < most {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for QueuedBytes {
    fn drop(&mut self) {
        self.gauge.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.gauge.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[(Option<&str>, usize, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::default();
        for (tenant, bytes, item) in items {
            queue.push(tenant.map(TenantId::new).as_ref(), *bytes, *item);
        }
        queue
    }

    fn all(queue: &mut FairQueue<u32>, most: usize, most_bytes: usize) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        while !queue.is_empty() {
            all.push(queue.take(most, most_bytes));
        }
        assert!(queue.take(most, most_bytes).is_empty());
        all
    }

    #[test]
    fn one_that_writes_much_waits_for_those_that_write_little() {
        let much: Vec<_> = (0..8).map(|item| (Some("much"), TURN_BYTES, item)).collect();
        let items =
            [much, vec![(Some("little"), 10, 100), (Some("other"), 10, 200), (Some("little"), 10, 101)]].concat();
        let taken = all(&mut queue(&items), 100, 2 * TURN_BYTES);
        assert_eq!(taken[0], [0, 100, 101, 200], "everybody's first turn");
        assert_eq!(taken[1], [1, 2]);
        assert_eq!(
            taken.concat().iter().filter(|item| **item < 100).copied().collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
    }

    #[test]
    fn any_number_of_commits_without_bytes_leaves_others_their_turn() {
        let mut waiting = FairQueue::default();
        for item in 0..10_000 {
            waiting.push(Some(&TenantId::new("many")), 0, item);
        }
        waiting.push(Some(&TenantId::new("one")), 10, 10_000);
        let first = waiting.take(256, usize::MAX);
        assert_eq!(first.iter().position(|item| *item == 10_000), Some(TURN_BYTES / LEAST_BYTES));
        assert_eq!((first.len(), waiting.len()), (256, 10_001 - 256));
    }

    #[test]
    fn what_belongs_to_nobody_keeps_its_place() {
        let items = [(Some("a"), 1, 1), (Some("b"), 1, 2), (None, 1, 3), (Some("a"), 1, 4), (None, 1, 5), (None, 1, 6)];
        assert_eq!(all(&mut queue(&items), 9, 99), [vec![1, 2, 3, 4, 5, 6]]);
        assert_eq!(all(&mut queue(&items), 2, 99), [vec![1, 2], vec![3, 4], vec![5, 6]]);
        let mut waiting = queue(&items[..3]);
        waiting.push_alone(7);
        waiting.push(None, 1, 8);
        assert_eq!(all(&mut waiting, 9, 99), [vec![1, 2, 3], vec![7], vec![8]], "some are taken by themselves");
    }

    #[test]
    fn a_batch_has_its_bounds_and_always_something() {
        let items: Vec<_> = (0..5).map(|item| (Some("a"), 10, item)).collect();
        assert_eq!(all(&mut queue(&items), 2, 1000), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(all(&mut queue(&items), 100, 25), [vec![0, 1], vec![2, 3], vec![4]]);
        assert_eq!(
            all(&mut queue(&items), 100, 1),
            [vec![0], vec![1], vec![2], vec![3], vec![4]],
            "one that is too large"
        );
    }

    #[test]
    fn a_thousand_tenants_all_have_a_turn_before_anybody_has_two() {
        let mut waiting = FairQueue::default();
        for round in 0..3 {
            for tenant in 0..1000 {
                waiting.push(Some(&TenantId::new(format!("t{tenant}"))), TURN_BYTES, (tenant, round));
            }
        }
        let mut taken = Vec::new();
        while !waiting.is_empty() {
            taken.extend(waiting.take(7, usize::MAX));
        }
        let rounds: Vec<_> = taken.iter().map(|(_, round)| *round).collect();
        assert!(rounds.is_sorted(), "nobody is served twice before all are served once");
        assert_eq!(taken.len(), 3000);
    }

    #[tokio::test]
    async fn whoever_waits_for_room_gets_it_when_something_goes() {
        let gauge = Arc::new(QueueGauge::default());
        let (first, second) = (gauge.add(60), gauge.add(60));
        let waiting = tokio::spawn({
            let gauge = Arc::clone(&gauge);
            async move { gauge.below(100).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        assert!(waiting.await.is_ok(), "woken");
        drop(second);
        assert_eq!(gauge.bytes(), 0);
    }
}
