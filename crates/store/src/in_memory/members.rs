//! What the disk knows of those who share it.

use std::collections::BTreeMap;

use baton_model::{RunId, Timestamp};

use crate::{ForwardedCommand, KEEP_ANSWERS, Recipient};

#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// Never forgotten, so no number comes twice.
    pub(super) sessions: BTreeMap<u64, Seat>,
    pub(super) claims: BTreeMap<String, u64>,
    /// In the order they were sent.
    pub(super) forwarded_commands: Vec<Sent>,
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
    pub(super) forwarded: ForwardedCommand,
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

    pub(super) fn has_died(&self, epoch: u64) -> bool {
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
        self.forwarded_commands.iter().find(|sent| sent.forwarded.id == id)
    }

    /// Whether a forwarded command to this run is unanswered.
    pub(super) fn has_letter_to(&self, run: &RunId) -> bool {
        let to_it = |sent: &&Sent| matches!(&sent.forwarded.to, Recipient::Run(to) if to == run);
        self.forwarded_commands.iter().filter(to_it).any(|sent| sent.answer.is_none())
    }

    pub(super) fn answer(&mut self, id: &str, body: String, now: Timestamp) {
        if let Some(sent) = self.forwarded_commands.iter_mut().find(|sent| sent.forwarded.id == id) {
            sent.answer = Some((body, now));
        }
    }

    /// Forgets what is of no use to anybody any more.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        let sessions = &self.sessions;
        self.claims.retain(|_, holder| sessions.get(holder).is_some_and(|seat| !seat.ended));
        let kept_ms = KEEP_ANSWERS.as_millis() as u64;
        let mut forwarded_commands = std::mem::take(&mut self.forwarded_commands);
        forwarded_commands.retain(|sent| {
            let lost = matches!(sent.forwarded.to, Recipient::Session(epoch) if self.has_ended(epoch));
            let old = sent.answer.as_ref().is_some_and(|(_, at)| at.plus_millis(kept_ms) < now);
            !lost && !old
        });
        self.forwarded_commands = forwarded_commands;
    }
}
