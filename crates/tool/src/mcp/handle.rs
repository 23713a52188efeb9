//! What a call of a tool needs of its server, and nothing of how the connection is kept.

use std::sync::Arc;

use arc_swap::ArcSwap;
use baton_model::Secret;
use rmcp::{Peer, RoleClient};
use tokio::sync::watch;

use super::progress::Follows;
use super::settings::McpSettings;
use super::status::Link;
use crate::call_queue::CallQueue;
use crate::secrets::Secrets;

/// Calls of one server that are open at the same time. A server that answers none of them costs this many, no more.
pub(super) const OPEN_CALLS: usize = 128;
/// Calls that wait for their turn, each for half of its time: a call whose turn comes needs the rest to be answered.
const WAITING_CALLS: usize = 1024;

pub(super) struct ServerHandle {
    pub(super) name: String,
    pub(super) settings: McpSettings,
    pub(super) link: watch::Sender<Link>,
    pub(super) queue: CallQueue,
    pub(super) follows: Arc<Follows>,
    pub(super) source: Arc<dyn Secrets>,
    /// Secrets that the present connection was made with.
    pub(super) used: ArcSwap<Vec<Secret>>,
}

impl ServerHandle {
    pub(super) fn new(name: &str, settings: McpSettings, source: Arc<dyn Secrets>) -> Self {
        Self {
            name: name.to_owned(),
            settings,
            link: watch::Sender::new(Link::Connecting),
            queue: CallQueue::new(OPEN_CALLS, WAITING_CALLS),
            follows: Arc::default(),
            source,
            used: ArcSwap::default(),
        }
    }

    /// Everything that must not show in a result.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.source.known();
        secrets.extend(self.used.load().iter().cloned());
        secrets
    }

    /// A connection to call over. Waits for one that is being made, not for one that will be tried later.
    pub(super) async fn up(&self) -> Result<(Peer<RoleClient>, u64), String> {
        let mut link = self.link.subscribe();
        loop {
            match &*link.borrow_and_update() {
                Link::Up { peer, generation, .. } if !peer.is_transport_closed() => {
                    return Ok((peer.clone(), *generation));
                }
                Link::Down { reason } => return Err(reason.clone()),
                // One that was lost is about to be noticed.
                Link::Up { .. } | Link::Connecting => {}
            }
            if link.changed().await.is_err() {
                return Err("it was taken out of use".to_owned());
            }
        }
    }

    /// Says that a connection does not work, unless there is a new one by now.
    pub(super) fn lost(&self, generation: u64) {
        self.link.send_if_modified(|link| {
            let ours = link.is_generation(generation);
            if ours {
                *link = Link::Connecting;
            }
            ours
        });
    }
}
