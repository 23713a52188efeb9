//! What a host knows of the others.

use std::sync::atomic::AtomicI64;

use baton_model::RunId;
use dashmap::{DashMap, DashSet};
use parking_lot::Mutex;
use tokio::sync::{Notify, RwLock};

use crate::cluster::in_progress::Carrying;
use crate::cluster::waiters::NotifyMap;

/// What a host knows of the others.
#[derive(Default)]
pub(crate) struct ClusterState {
    /// Who waits for an answer, or for a claim.
    pub(crate) waiters: NotifyMap,
    /// There may be messages.
    pub(crate) forwarded_commands: Notify,
    /// There may be trees to be taken over.
    pub(crate) orphans: Notify,
    /// Webhook subscriptions may have changed.
    pub(crate) webhooks: Notify,
    pub(crate) carrying: Carrying,
    /// When the lease was last renewed, by this host's clock.
    pub(crate) renewed_at: AtomicI64,
    /// Why the lease could not be renewed when it was last tried.
    pub(crate) unheard: Mutex<Option<String>>,
    /// Held while a run is loaded; giving a tree away waits for those that are.
    pub(crate) loads: RwLock<()>,
    /// Trees on their way to another host. Nobody loads a run of theirs.
    pub(crate) leaving: DashSet<RunId>,
    /// Claims that are held for one piece of work, and the session that took them.
    pub(crate) held: DashMap<String, u64>,
    /// Claims that are being let go, and how often. Until that is on disk it would take away whatever is claimed anew
    /// under the same name.
    pub(crate) releasing: DashMap<String, usize>,
}
