//! Names that one host at a time may use. Within a host, whoever shares a name has a lock of their own.

use std::sync::Arc;

use baton_store::{Claim, ForwardedCommand, Recipient, Store, VersionedStoreId, Write};
use dashmap::Entry;

use crate::clock::{Clock, Ids};
use crate::cluster::messages::PeerRequest;
use crate::cluster::state::ClusterState;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::tasks::Tasks;
use crate::{Error, Options};

impl ClusterState {
    fn released(&self, name: &str) {
        if let Entry::Occupied(mut releasing) = self.releasing.entry(name.to_owned()) {
            *releasing.get_mut() -= 1;
            if *releasing.get() == 0 {
                releasing.remove();
            }
        }
        self.waiters.ring(name);
    }
}

/// Takes and releases names that one host at a time may use.
pub(crate) struct Claims {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Claims {
    /// Does `work`, whose writes go into this lane, while no other host does anything under this name. To be seen through: a claim is let go at the end.
    pub(crate) async fn alone<T>(
        self: &Arc<Self>,
        name: &str,
        lane: Lane<'_>,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.take_claim(name).await?;
        let outcome = work.await;
        self.release_claim(name, lane);
        outcome
    }

    /// Waits for a claim, for as long as a caller may wait.
    pub(crate) async fn take_claim(&self, name: &str) -> Result<(), Error> {
        self.take_claim_from(name, None).await
    }

    /// The same. Whoever has the claim of a versioned store is asked for it; somebody else may get it first, and is asked then.
    pub(crate) async fn take_claim_from(&self, name: &str, ledger: Option<&VersionedStoreId>) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        let deadline = self.clock.now().plus_millis(self.options.sharing.timeout_ms);
        loop {
            let bell = self.cluster.waiters.hang(name);
            let rung = bell.notify.notified();
            tokio::pin!(rung);
            rung.as_mut().enable();
            let me = shared.epoch();
            let claimed = match self.cluster.releasing.contains_key(name) {
                true => None,
                false => Some(shared.claim(name).await?),
            };
            match claimed {
                Some(Claim::Mine) => {
                    // That of a versioned store is kept with the versioned store.
                    if ledger.is_none() {
                        self.cluster.held.insert(name.to_owned(), me);
                    }
                    return Ok(());
                }
                Some(Claim::Held(by)) => {
                    if let Some(ledger) = ledger {
                        self.ask_for(ledger, by).await?;
                    }
                }
                None => {}
            }
            let now = self.clock.now();
            if now >= deadline {
                return Err(Error::unavailable("Another host is busy with this. Try again."));
            }
            tokio::select! {
                biased;
                () = rung => {}
                () = self.clock.until(now.plus_millis(self.options.sharing.poll_ms).min(deadline)) => {}
                () = self.tasks.stop.cancelled() => return Err(Error::unavailable("The host is shutting down.")),
            }
        }
    }

    /// Whether a claim is still good for what is about to be committed in the generation that was looked at before this. A
    /// claim ends with the session that took it, and somebody else may have done the work by now; what is committed in
    /// the next session would be done twice. A world whose session is older than the current one commits nothing.
    pub(crate) fn still_holds(&self, name: &str) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        match self.cluster.held.get(name).map(|epoch| *epoch) {
            Some(epoch) if epoch != shared.epoch() => {
                Err(Error::unavailable("This host lost its session meanwhile. Try again."))
            }
            _ => Ok(()),
        }
    }

    /// Lets a claim go, after everything in its lane that is queued. If that is lost, so is the session, and the claim with it.
    /// Nobody waits for it but whoever wants the same claim next.
    pub(crate) fn release_claim(self: &Arc<Self>, name: &str, lane: Lane<'_>) {
        if self.storage.shared().is_some() {
            self.cluster.held.remove(name);
            *self.cluster.releasing.entry(name.to_owned()).or_default() += 1;
            let live = self.storage.current();
            live.outbox.flush(self.store.as_ref(), live.generation);
            let release = vec![Write::ReleaseClaim { name: name.to_owned() }];
            let released = self.storage.write(live.generation, lane, release);
            let name = name.to_owned();
            self.tasks.spawn(self, |room| async move {
                // Lost or not, it takes nothing away any more.
                drop(released.await);
                room.cluster.released(&name);
            });
        }
    }
}

impl Claims {
    /// Asks a session to let a versioned store go.
    pub(crate) async fn ask_for(&self, ledger: &VersionedStoreId, by: u64) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        let request = PeerRequest::LetGo {
            tenant: ledger.tenant.to_string(),
            kind: ledger.kind.as_str().to_owned(),
            scope: ledger.scope.clone(),
        };
        let forwarded = ForwardedCommand {
            id: format!("let-go:{}:{}", shared.epoch(), self.ids.secret(16)),
            to: Recipient::Session(by),
            body: serde_json::to_string(&request).unwrap_or_default(),
        };
        Ok(shared.send(forwarded).await?)
    }
}
