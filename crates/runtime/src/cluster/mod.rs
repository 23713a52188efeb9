//! Several hosts on one store. What is in here sleeps where the store has a single owner
//! ([`baton_store::Journal::shared`] is `None`).
//!
//! ```text
//!  session   renews the lease; beside that, ends who fell silent  ── fenced? the generation ends, heal() starts over
//!  adopt     takes over what the dead were at, tree by tree       ── adds no record: the usual recovery goes on
//!  ask       a command for a run another host drives: a letter out, the committed answer back
//!  letters   letters in, carried out once: the answer is in the commit of the effect
//!  claims    a name that one host at a time may use: keys, scopes, registrations, retention
//!  ledgers   memory and workspaces: everybody reads, whoever has the claim writes, and lets go when asked
//!  subscriptions  a webhook that was registered or deleted binds every host before anybody is told so
//!  moving    giving trees that are at rest to somebody who has less to do
//!  news      what the others did: wakes streams and whoever waits; lost news only delay
//! ```

mod balance;
mod claims;
mod elsewhere;
mod events;
mod forward;
mod inbox;
mod membership;
mod messages;
mod notify_map;
mod takeover;
mod webhook_sync;
mod write_rights;

pub(crate) use forward::Kept;
pub use messages::{key_of_letter, letter_matters};
pub(crate) use write_rights::Hold;

use std::sync::atomic::AtomicI64;

use baton_model::RunId;
use baton_store::Shared;
use dashmap::{DashMap, DashSet};
use parking_lot::Mutex;
use tokio::sync::{Notify, RwLock};

use self::inbox::Carrying;
use self::notify_map::NotifyMap;
use crate::inner::Inner;

/// How hosts that share a store live together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// How often a host looks for itself, in case it was not told.
    pub poll_ms: u64,
    /// How long a caller waits for a host that drives a run, or holds a claim, before being told to try again.
    pub patience_ms: u64,
    /// How many trees of runs are taken over at a time: several hosts share what a dead one leaves.
    pub adopt_at_once: usize,
    /// Whether an idle host asks a busy one for work.
    pub steal: bool,
}

impl Default for Sharing {
    fn default() -> Self {
        Self { poll_ms: 1000, patience_ms: 30_000, adopt_at_once: 32, steal: true }
    }
}

/// What a host knows of the others.
#[derive(Default)]
pub(crate) struct ClusterState {
    /// Who waits for an answer, or for a claim.
    bells: NotifyMap,
    /// There may be letters.
    letters: Notify,
    /// There may be trees to be taken over.
    orphans: Notify,
    /// Webhook subscriptions may have changed.
    webhooks: Notify,
    carrying: Carrying,
    /// When the lease was last renewed, by this host's clock.
    renewed_at: AtomicI64,
    /// Why the lease could not be renewed when it was last tried.
    unheard: Mutex<Option<String>>,
    /// Held while a run is loaded; giving a tree away waits for those that are.
    loads: RwLock<()>,
    /// Trees on their way to another host. Nobody loads a run of theirs.
    leaving: DashSet<RunId>,
    /// Claims that are held for one piece of work, and the session that took them.
    held: DashMap<String, u64>,
    /// Claims that are being let go, and how often. Until that is on disk it would take away whatever is claimed anew
    /// under the same name.
    releasing: DashMap<String, usize>,
}

impl Inner {
    pub(crate) fn shared(&self) -> Option<&dyn Shared> {
        self.store.shared()
    }

    /// What must be under way before the host does anything: without a lease it could do nothing for long.
    pub(crate) fn join_company(&self) {
        let Some(shared) = self.shared() else { return };
        self.renewed_now();
        let news = shared.news();
        self.keep("lease", |inner| async move { inner.keep_lease().await });
        self.keep("session", |inner| async move { inner.keep_session().await });
        self.keep("claims", |inner| async move { inner.keep_claims().await });
        self.keep_once("news", |inner| async move { inner.keep_news(news).await });
        self.keep("looking", |inner| async move { inner.keep_looking().await });
        self.keep("subscriptions", |inner| async move { inner.keep_webhooks().await });
    }

    /// What begins once the host is open.
    pub(crate) fn work_in_company(&self) {
        if self.shared().is_some() {
            self.keep("letters", |inner| async move { inner.keep_letters().await });
            self.keep("adopting", |inner| async move { inner.keep_adopting().await });
            self.keep("quarantines", |inner| async move { inner.keep_up_with_quarantines().await });
        }
    }
}
