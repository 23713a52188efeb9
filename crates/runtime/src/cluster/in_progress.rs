//! The forwarded commands that are being carried out.

use std::collections::BTreeMap;

use baton_store::ForwardedCommand;
use parking_lot::Mutex;

/// The messages in hand. One that was read before its answer was durable must not be taken up again, so those that are
/// done stay here until the unanswered ones have been read once more.
#[derive(Default)]
pub(crate) struct Carrying(Mutex<BTreeMap<String, Stage>>);

impl Carrying {
    pub(crate) fn done(&self) -> Vec<String> {
        let all = self.0.lock();
        all.iter().filter(|(_, stage)| **stage == Stage::Done).map(|(id, _)| id.clone()).collect()
    }

    /// Those to be taken up, of the ones that were unanswered after `done` were. What bears the name of one of these is
    /// another message.
    pub(crate) fn take(&self, unanswered: Vec<ForwardedCommand>, done: &[String]) -> Vec<ForwardedCommand> {
        let mut all = self.0.lock();
        all.retain(|id, stage| *stage == Stage::InHand || !done.contains(id));
        let new = unanswered.into_iter().filter(|forwarded| !all.contains_key(&forwarded.id)).collect::<Vec<_>>();
        all.extend(new.iter().map(|forwarded| (forwarded.id.clone(), Stage::InHand)));
        new
    }

    pub(crate) fn settle(&self, id: &str, answered: bool) {
        let mut all = self.0.lock();
        match all.get_mut(id) {
            Some(stage) if answered => *stage = Stage::Done,
            // Somebody looks again: this host, or another.
            _ => drop(all.remove(id)),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    InHand,
    Done,
}
