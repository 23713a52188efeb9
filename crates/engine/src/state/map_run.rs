//! A map under way: its list, the items that are being worked on, and what came of the others. Every item costs the same:
//! nothing here is copied or searched through for one of them but the few that are under way.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::tool::FoundTool;
use baton_model::{Fault, MapProgress, Timestamp, ToolOutcome, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chunked::ChunkedList;
use crate::invocation::Call;

/// Its two lists are written apart from the rest ([`crate::checkpoint`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MapRun {
    /// The list as it was when the map began.
    #[serde(skip)]
    pub(crate) items: Arc<ChunkedList<Value>>,
    pub(crate) tool: Option<Arc<FoundTool>>,
    /// The first item that has not begun.
    pub(crate) next: u32,
    /// Items that have begun and not ended, those included that wait for another attempt.
    pub(crate) under_way: BTreeMap<u32, ItemRun>,
    /// What came of items, as far as any has ended.
    #[serde(skip)]
    pub(crate) ends: ChunkedList<Option<ItemEnd>>,
    pub(crate) completed: u32,
    pub(crate) failed: u32,
    /// About how large the results and errors are together.
    pub(crate) bytes: u64,
    /// No further item begins, because of this.
    pub(crate) stopping: Option<Fault>,
}

/// One attempt at an item.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ItemRun {
    pub(crate) attempt: u32,
    pub(crate) work: ItemWork,
    /// When the next attempt begins.
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) deadline: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ItemWork {
    Call(Box<Call>),
    /// Its place in [`super::RunState::children`].
    Child(usize),
    /// For its next attempt.
    Waits,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ItemEnd {
    Done(Value),
    Failed(ItemError),
}

/// What is told of an item that failed; the rest is on the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ItemError {
    pub(crate) code: String,
    pub(crate) message: String,
}

/// How much of an item's message is kept: a list may have ten thousand of them.
const MESSAGE_CHARS: usize = 200;

impl ItemError {
    pub(crate) fn of(fault: &Fault) -> Self {
        let message = match fault.message.char_indices().nth(MESSAGE_CHARS) {
            None => fault.message.clone(),
            Some((end, _)) => format!("{}…", &fault.message[..end]),
        };
        Self { code: fault.code.clone(), message }
    }

    /// About how large it is among the errors.
    pub(crate) fn size(&self) -> u64 {
        const BESIDES: usize = 48;
        (self.code.len() + self.message.len() + BESIDES) as u64
    }
}

impl ItemEnd {
    fn size(&self) -> u64 {
        match self {
            Self::Done(value) => json::size(value).saturating_add(1),
            // Null stands in its place among the results.
            Self::Failed(error) => error.size() + 5,
        }
    }
}

impl ItemRun {
    pub(crate) fn call(&self) -> Option<&Call> {
        match &self.work {
            ItemWork::Call(call) => Some(call),
            ItemWork::Child(_) | ItemWork::Waits => None,
        }
    }

    pub(crate) fn call_mut(&mut self) -> Option<&mut Call> {
        match &mut self.work {
            ItemWork::Call(call) => Some(call),
            ItemWork::Child(_) | ItemWork::Waits => None,
        }
    }

    pub(crate) fn child(&self) -> Option<usize> {
        match self.work {
            ItemWork::Child(child) => Some(child),
            ItemWork::Call(_) | ItemWork::Waits => None,
        }
    }

    fn is_at_work(&self) -> bool {
        !matches!(self.work, ItemWork::Waits)
    }
}

impl MapRun {
    pub(crate) fn new(items: Vec<Value>, tool: Option<FoundTool>) -> Self {
        Self {
            ends: items.iter().map(|_| None).collect(),
            items: Arc::new(items.into_iter().collect()),
            tool: tool.map(Arc::new),
            next: 0,
            under_way: BTreeMap::new(),
            completed: 0,
            failed: 0,
            bytes: 0,
            stopping: None,
        }
    }

    /// How many items there are; a list has no more than fits.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.items.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.completed + self.failed == self.count()
    }

    pub(crate) fn progress(&self) -> MapProgress {
        MapProgress {
            total: self.count(),
            completed: self.completed,
            failed: self.failed,
            under_way: u32::try_from(self.under_way.len()).unwrap_or(u32::MAX),
        }
    }

    /// Somebody is at work on an item.
    pub(crate) fn is_busy(&self) -> bool {
        self.under_way.values().any(ItemRun::is_at_work)
    }

    /// Whether another item may begin next to those under way.
    pub(crate) fn has_room(&self, concurrency: u32) -> bool {
        self.stopping.is_none() && self.next < self.count() && self.under_way.len() < concurrency as usize
    }

    /// An item whose call has come back, with the attempt and what came of it.
    pub(crate) fn returned(&self) -> Option<(u32, &ItemRun, &ToolOutcome)> {
        self.under_way.iter().find_map(|(&index, item)| Some((index, item, item.call()?.outcome.as_ref()?)))
    }

    /// The item that this child works on.
    pub(crate) fn item_of(&self, child: usize) -> Option<(u32, &ItemRun)> {
        let own = |item: &ItemRun| item.child() == Some(child);
        self.under_way.iter().find(|(_, item)| own(item)).map(|(&index, item)| (index, item))
    }

    pub(crate) fn call_mut(&mut self, id: &str) -> Option<&mut ItemRun> {
        self.under_way.values_mut().find(|item| item.call().is_some_and(|call| call.id == id))
    }

    /// The item whose next attempt is due. None begins any more once the map stops.
    pub(crate) fn due(&self, at: Timestamp) -> Option<(u32, u32)> {
        if self.stopping.is_some() {
            return None;
        }
        let due = |item: &&ItemRun| !item.is_at_work() && item.wake_at.is_some_and(|wake_at| wake_at <= at);
        self.under_way.iter().find(|(_, item)| due(item)).map(|(&index, item)| (index, item.attempt))
    }

    /// When something of it is due by itself; while the run drains, no attempt is.
    pub(crate) fn instants(&self, draining: bool) -> impl Iterator<Item = Timestamp> {
        let attempts = !draining && self.stopping.is_none();
        self.under_way
            .values()
            .flat_map(move |item| [item.wake_at.filter(|_| attempts), item.deadline].into_iter().flatten())
    }

    /// Something can be done right now, without the world or a clock saying anything.
    pub(crate) fn can_go_on(&self, concurrency: u32) -> bool {
        self.returned().is_some()
            || self.is_over()
            || self.has_room(concurrency)
            || (self.stopping.is_some() && !self.is_busy())
    }

    /// When the time of the item is up that this call is for.
    pub(crate) fn deadline_of(&self, call: &str) -> Option<Timestamp> {
        let mut items = self.under_way.values();
        items.find(|item| item.call().is_some_and(|made| made.id == call)).and_then(|item| item.deadline)
    }

    /// What it would hold if the item came to this, too.
    pub(crate) fn size_with(&self, end: &ItemEnd) -> u64 {
        self.bytes.saturating_add(end.size())
    }

    /// An item begins: the next one, or one that waits for another attempt.
    pub(crate) fn begin(&mut self, index: u32, work: ItemWork, deadline: Option<Timestamp>) -> Result<(), String> {
        let attempt = match self.under_way.get(&index) {
            Some(item) if item.is_at_work() => return Err("the item is already being worked on".to_owned()),
            Some(item) => item.attempt,
            None => {
                self.take_next(index)?;
                0
            }
        };
        self.under_way.insert(index, ItemRun { attempt, work, wake_at: None, deadline });
        Ok(())
    }

    /// An item has ended, perhaps without ever having begun. Returns its last attempt.
    pub(crate) fn end(&mut self, index: u32, end: ItemEnd) -> Result<Option<ItemRun>, String> {
        let run = self.under_way.remove(&index);
        if run.is_none() {
            self.take_next(index)?;
        }
        match &end {
            ItemEnd::Done(_) => self.completed += 1,
            ItemEnd::Failed(_) => self.failed += 1,
        }
        self.bytes = self.size_with(&end);
        *self.ends.get_mut(index as usize).ok_or("there is no such item")? = Some(end);
        Ok(run)
    }

    fn take_next(&mut self, index: u32) -> Result<(), String> {
        if index != self.next || index >= self.count() {
            return Err(format!("item {index} is not the next"));
        }
        self.next += 1;
        Ok(())
    }

    /// Moves what is due by this much: the run was paused meanwhile.
    pub(crate) fn shift(&mut self, later: impl Fn(Timestamp) -> Timestamp) {
        for item in self.under_way.values_mut() {
            item.wake_at = item.wake_at.map(&later);
            item.deadline = item.deadline.map(&later);
        }
    }
}
