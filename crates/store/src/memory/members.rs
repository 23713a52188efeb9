//! What the disk knows of those who share it.

use std::collections::BTreeMap;

use baton_model::{RunId, Timestamp};

use super::disk::{Disk, Log};
use crate::{Address, Commit, CommitError, KEEP_ANSWERS, Letter, Write};

#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// Never forgotten, so no number comes twice.
    pub(super) sessions: BTreeMap<u64, Seat>,
    pub(super) claims: BTreeMap<String, u64>,
    /// In the order they were sent.
    pub(super) letters: Vec<Sent>,
    pub(super) suspects: BTreeMap<RunId, Held>,
}

/// What is held against a tree; see [`crate::Suspect`].
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub(super) takeovers: u64,
    pub(super) deaths: u64,
    pub(super) marked_by: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) host: String,
    pub(super) load: u64,
    pub(super) lease_until: Timestamp,
    pub(super) ended: bool,
    /// Somebody else had to end it.
    pub(super) died: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) letter: Letter,
    pub(super) answer: Option<(String, Timestamp)>,
}

impl Members {
    pub(super) fn open(&mut self, host: &str, lease_until: Timestamp) -> u64 {
        let epoch = self.sessions.last_key_value().map_or(1, |(last, _)| last + 1);
        self.sessions.insert(epoch, Seat { host: host.to_owned(), load: 0, lease_until, ended: false, died: false });
        epoch
    }

    pub(super) fn has_ended(&self, epoch: u64) -> bool {
        self.sessions.get(&epoch).is_none_or(|seat| seat.ended)
    }

    /// True if this is what ended it.
    pub(super) fn end(&mut self, epoch: u64) -> bool {
        self.sessions.get_mut(&epoch).is_some_and(|seat| !std::mem::replace(&mut seat.ended, true))
    }

    /// The same for a session whose lease is over, by somebody else.
    pub(super) fn bury(&mut self, epoch: u64) -> bool {
        let ends = self.end(epoch);
        if let Some(seat) = self.sessions.get_mut(&epoch).filter(|_| ends) {
            seat.died = true;
        }
        ends
    }

    fn has_died(&self, epoch: u64) -> bool {
        self.sessions.get(&epoch).is_some_and(|seat| seat.died)
    }

    /// One more death is one too many.
    pub(super) fn release_suspect(&mut self, root: &RunId) {
        if let Some(held) = self.suspects.get_mut(root) {
            *held = Held { takeovers: held.takeovers.min(1), deaths: held.deaths.min(1), marked_by: None };
        }
    }

    pub(super) fn has_lapsed(&self, epoch: u64, now: Timestamp) -> bool {
        self.sessions.get(&epoch).is_none_or(|seat| seat.lease_until < now)
    }

    pub(super) fn release(&mut self, name: &str, me: u64) {
        if self.claims.get(name) == Some(&me) {
            self.claims.remove(name);
        }
    }

    pub(super) fn sent(&self, id: &str) -> Option<&Sent> {
        self.letters.iter().find(|sent| sent.letter.id == id)
    }

    /// Whether a letter to this run is unanswered.
    fn has_letter_to(&self, run: &RunId) -> bool {
        let to_it = |sent: &&Sent| matches!(&sent.letter.to, Address::Run(to) if to == run);
        self.letters.iter().filter(to_it).any(|sent| sent.answer.is_none())
    }

    pub(super) fn answer(&mut self, id: &str, body: String, now: Timestamp) {
        if let Some(sent) = self.letters.iter_mut().find(|sent| sent.letter.id == id) {
            sent.answer = Some((body, now));
        }
    }

    /// Forgets what is of no use to anybody any more.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        let sessions = &self.sessions;
        self.claims.retain(|_, holder| sessions.get(holder).is_some_and(|seat| !seat.ended));
        let kept_ms = KEEP_ANSWERS.as_millis() as u64;
        let mut letters = std::mem::take(&mut self.letters);
        letters.retain(|sent| {
            let lost = matches!(sent.letter.to, Address::Session(epoch) if self.has_ended(epoch));
            let old = sent.answer.as_ref().is_some_and(|(_, at)| at.plus_millis(kept_ms) < now);
            !lost && !old
        });
        self.letters = letters;
    }
}

impl Log {
    pub(super) fn tree(&self) -> &RunId {
        self.row.root.as_ref().unwrap_or(&self.row.id)
    }
}

impl Disk {
    /// Whether the session may write this. Needs no write, like [`Commit::check`].
    pub(super) fn check_owner(&self, commit: &Commit, me: u64) -> Result<(), CommitError> {
        if self.members.has_ended(me) {
            return Err(CommitError::Fenced);
        }
        let mut given: Vec<&RunId> = Vec::new();
        let mut answered: Vec<&str> = Vec::new();
        for write in &commit.writes {
            match write {
                Write::CreateRun(row) | Write::Append { row, .. } => {
                    let tree = row.root.as_ref().unwrap_or(&row.id);
                    let elsewhere = |run: &RunId| self.log(run).is_some_and(|log| log.owner != me);
                    if elsewhere(&row.id) || elsewhere(tree) || given.contains(&tree) {
                        return Err(CommitError::Foreign { run: row.id.clone() });
                    }
                }
                Write::HandOver { root, .. } => {
                    if given.contains(&root) || self.log(root).is_none_or(|log| log.owner != me) {
                        return Err(CommitError::Foreign { run: root.clone() });
                    }
                    given.push(root);
                }
                Write::AnswerLetter { id, .. } => {
                    let known = self.members.sent(id).is_some_and(|sent| sent.answer.is_some());
                    if known || answered.contains(&id.as_str()) {
                        return Err(CommitError::Answered { id: id.clone() });
                    }
                    answered.push(id);
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn move_tree(&mut self, root: &RunId, from: u64, to: u64) {
        for log in self.runs.iter_mut().filter(|log| log.tree() == root && log.owner == from) {
            log.owner = to;
        }
    }

    /// Gives a tree whose owner has ended to another one, and counts that if the owner may have died of it.
    pub(super) fn take_tree(&mut self, root: &RunId, to: u64, now: Timestamp) {
        let from = self.log(root).map_or(0, |log| log.owner);
        let marked = self.members.suspects.get(root).is_some_and(|held| held.marked_by == Some(from));
        let busy = self.runs.iter().filter(|log| log.tree() == root && log.owner == from).any(|log| {
            log.row.busy || log.row.wake_at.is_some_and(|at| at <= now) || self.members.has_letter_to(&log.row.id)
        });
        if self.members.has_died(from) && (marked || busy) && !self.quarantine.contains_key(root) {
            let held = self.members.suspects.entry(root.clone()).or_default();
            held.takeovers += 1;
            held.deaths += u64::from(marked);
        }
        if let Some(held) = self.members.suspects.get_mut(root) {
            held.marked_by = None;
        }
        self.move_tree(root, from, to);
    }

    /// What has ended needs no watching.
    pub(super) fn forget_suspects(&mut self) {
        let mut suspects = std::mem::take(&mut self.members.suspects);
        suspects.retain(|root, _| self.log(root).is_some_and(|log| !log.row.status.is_terminal()));
        self.members.suspects = suspects;
    }

    /// Trees of the dead in which something is to be done by then.
    pub(super) fn orphans(&self, until: Timestamp, limit: usize) -> Vec<RunId> {
        let mut found: Vec<RunId> = Vec::new();
        for log in self.runs.iter().filter(|log| self.members.has_ended(log.owner)) {
            let id = &log.row.id;
            let wanted = log.row.busy
                || log.row.wake_at.is_some_and(|at| at <= until)
                || self.deliveries.keys().any(|(_, run, _)| run == id)
                || self.members.has_letter_to(id);
            if found.len() == limit {
                break;
            }
            if wanted && !found.contains(log.tree()) {
                found.push(log.tree().clone());
            }
        }
        found
    }
}
