//! A store that several hosts share: who is alive, who drives which run, and how hosts speak to each other.
//!
//! A **session** is one life of one host on the store. Its number, the **epoch**, rises and is never used again. It is
//! good while it renews its **lease**, which only the store's own clock judges. A session whose lease is over may be
//! *ended* by anybody, once and for ever: from then on none of its commits is taken ([`CommitError::Fenced`]).
//!
//! ```text
//!  live ── lease over ──► lapsed ── somebody ends it ──► ended
//!    ▲                      │
//!    └────── renews ────────┘     only what is ended may be taken over
//! ```
//!
//! A tree of runs (a top-level run and everything below it) has one **owner**, an epoch: the session that created it,
//! until another one takes it over or is handed it. Ending a session and taking over a tree are ordered before or after
//! every commit of that session, never inside.

use std::time::Duration;

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};
use tokio::sync::broadcast;

#[expect(unused_imports, reason = "named in the documentation")]
use crate::CommitError;
use crate::Error;

/// One host's view of a shared store. All of it is about the session this store object holds now.
///
/// Once that session has ended, whatever would change something fails with [`Error::Unavailable`]; the way on is
/// [`crate::Journal::recover`], which ends the old session if nobody has, and opens the next one. `recover` does so
/// after every failed commit: a commit whose outcome is unknown can then no longer arrive late.
#[async_trait]
pub trait Shared: Send + Sync {
    /// The number of this session.
    fn epoch(&self) -> u64;

    /// How long a lease is good after it was renewed.
    fn lease(&self) -> Duration;

    /// Renews the lease and says how busy this host is. False once the session has ended.
    async fn renew(&self, load: u64) -> Result<bool, Error>;

    /// The sessions that have not ended, oldest first.
    async fn sessions(&self) -> Result<Vec<Session>, Error>;

    /// Ends every session whose lease is over, and says which it ended. Also forgets forwarded commands to sessions that have
    /// ended, their claims, and forwarded commands answered longer than [`KEEP_ANSWERS`] ago.
    async fn end_lapsed(&self) -> Result<Vec<u64>, Error>;

    /// Takes over at most `limit` trees of sessions that have ended, and says which: those in which a run is busy, or
    /// wakes by `until`, or has an unanswered forwarded command or a delivery outstanding. Trees that only wait stay with the dead
    /// until somebody wants something of them ([`Self::adopt_tree`]). Several hosts that ask at once get different ones.
    async fn adopt(&self, until: Timestamp, limit: usize) -> Result<Vec<RunId>, Error>;

    /// Takes over the tree that a run belongs to, if its owner has ended (or has lapsed, and is ended by this). Says who
    /// owns it then; `None` if there is no such run.
    async fn adopt_tree(&self, run: &RunId) -> Result<Option<Owner>, Error>;

    /// Trees of this session that were taken over from the dead and have made no progress since; by root.
    async fn suspects(&self) -> Result<Vec<Suspect>, Error>;

    /// This session is about to step this tree, which it owns. Durable before it returns: should the session die now, the
    /// next owner counts a death.
    async fn mark_suspect(&self, root: &RunId) -> Result<(), Error>;

    /// This session has stepped the tree and lives; it stays a suspect.
    async fn unmark_suspect(&self, root: &RunId) -> Result<(), Error>;

    /// The tree, which this session owns, has made progress: nothing is held against it any more. One that is marked is
    /// being stepped again, and is left as it is.
    async fn clear_suspect(&self, root: &RunId) -> Result<(), Error>;

    /// Who owns a run, dead or alive. `None` if there is no such run.
    async fn owner(&self, run: &RunId) -> Result<Option<u64>, Error>;

    /// Takes a named claim, or says who has it. A claim is good until it is let go ([`crate::Write::ReleaseClaim`]) or its
    /// session ends; taking one twice is taking it once.
    async fn claim(&self, name: &str) -> Result<Claim, Error>;

    /// Writes a forwarded command down. One that bears the id of another is not written again: the answer to the first is its
    /// answer.
    async fn send(&self, forwarded: ForwardedCommand) -> Result<(), Error>;

    /// Unanswered forwarded commands to this session, or to a run it owns, oldest first.
    async fn forwarded_commands(&self, limit: usize) -> Result<Vec<ForwardedCommand>, Error>;

    /// A forwarded command, and the answer if there is one yet. `None` if nobody sent such a forwarded command, or it has been forgotten.
    async fn forwarded(&self, id: &str) -> Result<Option<(ForwardedCommand, Option<String>)>, Error>;

    /// Forgets a forwarded command that was answered like this, so that another one may bear its id. One that is unanswered, was
    /// answered otherwise or is not there is left as it is.
    async fn forget_forwarded(&self, id: &str, answer: &str) -> Result<(), Error>;

    /// What other hosts did, from now on. Only hints: some may be missing, late, twice, or about oneself. Whoever lags
    /// behind, or hears [`News::Missed`], looks at everything.
    fn news(&self) -> broadcast::Receiver<ClusterEvent>;

    /// Which session wrote each record of a run, from `from` on: `(sequence, epoch)`. Never leaves the process; for
    /// checks.
    async fn epochs(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<(u64, u64)>, Error>;
}

/// How long an answer is kept: as long as the reply to an idempotent request.
pub const KEEP_ANSWERS: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub epoch: u64,
    /// What the host calls itself.
    pub host: String,
    /// As it last said.
    pub load: u64,
    /// Its lease is over; it goes on only if it renews before somebody ends it.
    pub lapsed: bool,
}

/// A tree that may be what its owners died of.
///
/// Counted when a tree is taken over from a session that somebody else had to end, and only if there was something to be
/// done in it: a run that is busy, whose time has come, or that has a forwarded command to answer. A tree that merely waits is none,
/// and neither is one in quarantine, for nobody stepped it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    pub root: RunId,
    /// How often it was taken over from the dead.
    pub takeovers: u64,
    /// How many of those died while they had it marked ([`Shared::mark_suspect`]). Once it is released from a quarantine,
    /// one of them still counts.
    pub deaths: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This session.
    Me,
    /// This session, which has just taken it over.
    Taken,
    /// Another one, which has not ended.
    Other(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Mine,
    /// Held by another session, which has not ended.
    Held(u64),
}

/// Something one host wants of another. Carried out once: its answer is stored with what it changed
/// ([`crate::Write::AnswerLetter`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedCommand {
    /// Chosen by the sender, unique for good.
    pub id: String,
    pub to: Recipient,
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// Whoever owns this run by the time the forwarded command is read.
    Run(RunId),
    /// One session and nobody after it.
    Session(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// A run's log has grown, up to this sequence.
    Grew { run: RunId, next_seq: u64 },
    /// There are forwarded commands, for somebody.
    ForwardedCommand,
    /// A forwarded command was answered.
    Answered { id: String },
    /// A claim was let go.
    Released { name: String },
    /// Trees were handed to this session.
    HandedOver { to: u64 },
    /// A session has ended, so there may be trees and claims to be had.
    Ended { epoch: u64 },
    /// Somebody remarked on a run.
    Annotated { run: RunId, id: String },
    /// Webhook subscriptions were changed.
    Webhooks,
    /// Runners came, went or changed, or who may be one.
    Runners,
    /// Something became of a step of a runner, by its key.
    RunnerStep { key: String, owner: String },
    /// Something was lost on the way: look at everything.
    Missed,
}
