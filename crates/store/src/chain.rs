//! Writes that build on each other, and what is lost with one of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use baton_model::RunId;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::CommitError;

/// Writes that build on each other: those of one tree of runs, or of one versioned store, as one process has them in
/// memory. Once one of them is lost the chain is broken for good: nothing that belongs to it or builds on it is written,
/// and whoever goes on reads what is durable and begins a new chain.
#[derive(Debug)]
pub struct WriteChain {
    /// The tree, unless this is a versioned store's.
    root: Option<RunId>,
    broken: OnceLock<CommitError>,
    /// Whether those who wait may know that it is broken: by then they know how much of it was written.
    told: AtomicBool,
    /// Rung when they may. It is here, and not with what somebody has in a map: by then another may stand in its place.
    bell: Notify,
}

impl WriteChain {
    /// For a tree of runs.
    pub fn of_tree(root: RunId) -> Self {
        Self { root: Some(root), ..Self::of_store() }
    }

    /// For a versioned store.
    pub fn of_store() -> Self {
        Self { root: None, broken: OnceLock::new(), told: AtomicBool::new(false), bell: Notify::new() }
    }

    pub fn root(&self) -> Option<&RunId> {
        self.root.as_ref()
    }

    /// Nothing more of it is written, and whoever waits for that is woken. What it broke for first stays.
    pub fn break_off(&self, error: &CommitError) {
        self.break_untold(error);
        self.tell();
    }

    /// The same before those who wait may know: something of it may have been written that they have yet to hear of.
    pub fn break_untold(&self, error: &CommitError) {
        let _ = self.broken.set(error.clone());
    }

    /// Wakes whoever waits, if it is broken: by now they know what was written.
    pub fn tell(&self) {
        if self.is_broken() && !self.told.swap(true, Ordering::AcqRel) {
            self.bell.notify_waiters();
        }
    }

    /// Ends once those who wait may know that it is broken, if that is after this was first polled or enabled.
    pub fn breaks(&self) -> Notified<'_> {
        self.bell.notified()
    }

    /// Why it is broken, for those who wait for something of it. None as long as they may not know.
    pub fn lost_for(&self) -> Option<&CommitError> {
        self.broken.get().filter(|_| self.told.load(Ordering::Acquire))
    }

    pub fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Why it is broken.
    pub fn broken_by(&self) -> Option<&CommitError> {
        self.broken.get()
    }
}

/// Which chains a part of a commit belongs to.
#[derive(Clone, Debug, Default)]
pub struct Chains {
    /// Those that it is a link of. They break with it.
    pub links: Vec<Arc<WriteChain>>,
    /// Those that it builds on. It is lost with them; they are none the worse for it.
    pub builds_on: Vec<Arc<WriteChain>>,
    /// Somebody outside asked for it, who is told what comes of it: without them nothing of it would be written again.
    pub asked: bool,
}

impl Chains {
    /// A link of one chain, and nothing else.
    pub fn link(chain: Arc<WriteChain>) -> Self {
        Self { links: vec![chain], ..Self::default() }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<WriteChain>> {
        self.links.iter().chain(&self.builds_on)
    }
}

/// A part of a commit that was not written, while the rest was.
#[derive(Clone, Debug)]
pub struct LostPart {
    /// The chains that broke with it.
    pub chains: Vec<Arc<WriteChain>>,
    /// The run whose write it was, where that is sure.
    pub run: Option<RunId>,
    /// [`CommitError::Stale`] if it was lost with something that it builds on.
    pub error: CommitError,
    /// See [`Chains::asked`].
    pub asked: bool,
}

impl LostPart {
    /// Wakes whoever waits for one of these. To be called after everybody was told what was written beside them, which
    /// may be links of the same chains, and before [`crate::Observer::lost`].
    pub fn tell(parts: &[Self]) {
        parts.iter().flat_map(|part| &part.chains).for_each(|chain| chain.tell());
    }
}

/// The chains that one transaction will break, should it come about.
#[derive(Debug, Default)]
pub struct Breaks(Vec<LostPart>);

impl Breaks {
    /// Whether everything is there that a part builds on.
    pub fn is_whole(&self, chains: &Chains) -> bool {
        chains.all().all(|chain| {
            let here = || self.0.iter().any(|lost| lost.chains.iter().any(|broken| Arc::ptr_eq(broken, chain)));
            !chain.is_broken() && !here()
        })
    }

    /// A part will not be written.
    pub fn lose(&mut self, chains: &Chains, run: Option<RunId>, error: CommitError) {
        self.0.push(LostPart { chains: chains.links.clone(), run, error, asked: chains.asked });
    }

    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// It is so: the chains are broken from here on. Whoever waits is told by [`LostPart::tell`].
    pub fn settle(self) -> Vec<LostPart> {
        for lost in &self.0 {
            lost.chains.iter().for_each(|chain| chain.break_untold(&lost.error));
        }
        self.0
    }
}
