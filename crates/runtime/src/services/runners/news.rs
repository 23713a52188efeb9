//! What other hosts changed about runners, until somebody looks.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::names::RunnerOwner;

/// How many changed steps are remembered. With more, everything is looked at.
const MOST_STEPS: usize = 10_000;

#[derive(Default)]
pub(crate) struct RunnerNews {
    heard: Mutex<Heard>,
    pub(crate) woken: Notify,
}

#[derive(Default)]
pub(crate) struct Heard {
    /// Tokens or runners changed.
    pub(crate) runners: bool,
    /// Everything may have changed.
    pub(crate) all: bool,
    /// Owners whose runners have places free while steps wait on other hosts.
    pub(crate) owners: BTreeSet<RunnerOwner>,
    /// Steps that changed, and whose they are.
    pub(crate) steps: BTreeMap<String, String>,
}

impl RunnerNews {
    pub(crate) fn runners(&self) {
        self.heard.lock().runners = true;
        self.woken.notify_one();
    }

    pub(crate) fn step(&self, key: &str, owner: &str) {
        let mut heard = self.heard.lock();
        if heard.steps.len() >= MOST_STEPS {
            heard.all = true;
        } else {
            heard.steps.insert(key.to_owned(), owner.to_owned());
        }
        drop(heard);
        self.woken.notify_one();
    }

    pub(crate) fn places(&self, owner: &RunnerOwner) {
        self.heard.lock().owners.insert(owner.clone());
        self.woken.notify_one();
    }

    pub(crate) fn look_at_all(&self) {
        let mut heard = self.heard.lock();
        (heard.runners, heard.all) = (true, true);
        drop(heard);
        self.woken.notify_one();
    }

    pub(crate) fn take(&self) -> Heard {
        std::mem::take(&mut *self.heard.lock())
    }
}
