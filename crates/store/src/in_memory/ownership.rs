//! Which session drives which tree, and who may write what.

use baton_model::{RunId, Timestamp};

use super::disk::{Disk, Log};
use crate::{CommitError, CommitPart, Write};

impl Log {
    pub(super) fn tree(&self) -> &RunId {
        self.row.root.as_ref().unwrap_or(&self.row.id)
    }
}

impl Disk {
    /// Whether the session may write this. Needs no write, like [`CommitPart::check`].
    pub(super) fn check_owner(&self, part: CommitPart<'_>, me: u64) -> Result<(), CommitError> {
        let mut given: Vec<&RunId> = Vec::new();
        let mut answered: Vec<&str> = Vec::new();
        for write in part.writes {
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
                Write::AnswerForwarded { id, .. } => {
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
