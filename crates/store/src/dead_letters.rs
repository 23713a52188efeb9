//! Dead letters: events that a subscriber did not take, kept until somebody sends them again, lets them go, or they are
//! too old. A letter names its event and holds nothing of it: what is sent is read from the run's log, so a letter is
//! small whatever the event is, and a log that was pruned leaves nothing behind here.

use baton_model::{RunId, Timestamp, WebhookId};

/// Why nobody tries any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeathReason {
    /// Every attempt failed.
    RetriesExhausted,
    /// Its subscriber was given up before this one had its attempts.
    SubscriptionFailed,
    /// Too much was waiting for its subscriber.
    BacklogFull,
    /// Its event is not in the log any more, or does not read back.
    EventGone,
}

impl DeathReason {
    pub const ALL: [Self; 4] = [Self::RetriesExhausted, Self::SubscriptionFailed, Self::BacklogFull, Self::EventGone];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RetriesExhausted => "retries_exhausted",
            Self::SubscriptionFailed => "subscription_failed",
            Self::BacklogFull => "backlog_full",
            Self::EventGone => "event_gone",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// One event that one subscriber did not get.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    pub webhook: WebhookId,
    pub run: RunId,
    pub seq: u64,
    /// The event's type; empty if its log was gone by then.
    pub kind: String,
    /// How often it was tried since it was last queued.
    pub attempts: u32,
    pub reason: DeathReason,
    /// What the subscriber answered last, if it did.
    pub status: Option<u16>,
    pub at: Timestamp,
}

impl DeadLetter {
    pub fn place(&self) -> DeadLetterPlace {
        DeadLetterPlace { at: self.at, run: self.run.clone(), seq: self.seq }
    }
}

/// Where a letter stands among those of its subscriber: by age, and by event among those of one instant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetterPlace {
    pub at: Timestamp,
    pub run: RunId,
    pub seq: u64,
}

/// Which letters of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Letters {
    All,
    One { run: RunId, seq: u64 },
}

impl Letters {
    pub fn includes(&self, run: &RunId, seq: u64) -> bool {
        match self {
            Self::All => true,
            Self::One { run: wanted, seq: at } => wanted == run && *at == seq,
        }
    }
}

/// What becomes of dead letters. None of it brings a subscription back that was deleted.
#[derive(Clone, Debug, PartialEq)]
pub enum DeadLetterWrite {
    /// Replaces a letter about the same event.
    Put(DeadLetter),
    /// Of what waits for a subscriber only this much goes on waiting; the rest, earliest first, becomes letters. On a
    /// shared store only what waits of runs that this session owns counts, and goes.
    Bury {
        webhook: WebhookId,
        keep: u64,
        reason: DeathReason,
        at: Timestamp,
    },
    /// Queues letters again, as if they had never been tried. One whose event is queued already is only taken away;
    /// one whose log was pruned stays, for there is nothing to send.
    Redeliver {
        webhook: WebhookId,
        which: Letters,
        due_at: Timestamp,
    },
    Forget {
        webhook: WebhookId,
        which: Letters,
    },
    /// Keeps only this many, the newest, and counts the others in [`crate::Webhook::letters_dropped`].
    Trim {
        webhook: WebhookId,
        keep: u64,
    },
    /// Forgets letters of everybody from before this instant, at most so many.
    Expire {
        before: Timestamp,
        limit: u64,
    },
}

impl DeadLetterWrite {
    pub fn webhook(&self) -> Option<&WebhookId> {
        match self {
            Self::Put(letter) => Some(&letter.webhook),
            Self::Bury { webhook, .. }
            | Self::Redeliver { webhook, .. }
            | Self::Forget { webhook, .. }
            | Self::Trim { webhook, .. } => Some(webhook),
            Self::Expire { .. } => None,
        }
    }
}

/// What the owner of a subscription changed about it, in its row as it is by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookChange {
    /// It is called again, at once: nothing is held against it, and what waits for it is due.
    Resumed { at: Timestamp },
    /// Whatever is sent from now on is signed with this.
    Secret(String),
}

/// How much there is of a subscriber. On a shared store, of all hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookLoad {
    pub webhook: WebhookId,
    pub letters: u64,
    pub waiting: u64,
}
