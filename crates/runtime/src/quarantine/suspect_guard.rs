//! Steps suspects singly, and clears those that make progress.

use std::sync::Arc;

use baton_model::RunId;
use baton_store::Store;

use crate::journal::generation::Generation;
use crate::journal::storage::Storage;
use crate::quarantine::suspects::Singly;
use crate::quarantine::trees::QuarantinedTrees;
use crate::run::live::RunHandle;
use crate::run::tree::root_of;
use crate::tasks::Tasks;
use crate::{Error, Options};

/// Lets one suspect be stepped at a time.
pub(crate) struct SuspectGuard {
    pub(crate) options: Arc<Options>,
    pub(crate) quarantined: Arc<QuarantinedTrees>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl SuspectGuard {
    /// Waits until no other suspect is being stepped or loaded, if this run belongs to one.
    pub(crate) async fn singly(&self, live: &Generation, run: &RunId) -> Result<Option<Singly<'_>>, Error> {
        if !self.quarantined.suspects.any() {
            return Ok(None);
        }
        let in_memory = live.run(run).map(|handle| handle.root.clone());
        let root = match in_memory {
            Some(root) => root,
            None => match self.store.run(run).await? {
                Some(row) => root_of(&row).clone(),
                None => return Ok(None),
            },
        };
        self.singly_of(&root).await
    }

    /// The same, by the top of the tree.
    pub(crate) async fn singly_of(&self, root: &RunId) -> Result<Option<Singly<'_>>, Error> {
        let known = &self.quarantined.suspects;
        if !known.contains(root) {
            return Ok(None);
        }
        let alone = known.singly.lock().await;
        if !known.contains(root) {
            return Ok(None);
        }
        if known.noted.contains(root) {
            // Whoever kills processes one after the other kills it before this, and makes nobody look guilty.
            tokio::time::sleep_until(known.trials_at).await;
        }
        if known.marked.contains(root)
            && let Some(shared) = self.storage.shared()
        {
            // Durable before the step: whoever takes over from a host that died then knows what it died of.
            if let Err(error) = shared.mark_suspect(root).await {
                if shared.owner(root).await? == Some(shared.epoch()) {
                    return Err(error.into());
                }
                // Another host drives it, and has its own mark. Whoever only reads it here is alone all the same.
                known.unmark(root);
            }
        }
        Ok(Some(Singly { _alone: alone }))
    }

    /// A suspect was stepped, and the process lives. What it has queued clears it once that is durable; if it made nothing,
    /// it stays a suspect and is only no longer the one being stepped.
    pub(crate) async fn stepped_singly(self: &Arc<Self>, run: &RunId, handle: &Arc<RunHandle>, queued: u64) {
        let shared = self.storage.shared().filter(|_| self.quarantined.suspects.marked.contains(&handle.root));
        if let Some(shared) = shared
            && let Err(error) = shared.unmark_suspect(&handle.root).await
        {
            tracing::warn!(root = %handle.root, %error, "could not say that a suspect is no longer being stepped");
        }
        if queued <= handle.committed() {
            self.progressed(&handle.root, run, queued);
            return;
        }
        let (live, handle, run) = (self.storage.current(), Arc::clone(handle), run.clone());
        if !live.runs.get(&run).is_some_and(|known| Arc::ptr_eq(&known, &handle)) {
            // It went with its generation, and so did what it made.
            return;
        }
        self.tasks.spawn(self, |room| async move {
            live.outbox.flush(room.store.as_ref(), live.generation);
            let durable = tokio::select! {
                biased;
                durable = handle.durable(&live.ending, queued) => durable,
                // A session that ends in good order is no death: nothing more is held against the tree.
                () = room.tasks.stop.cancelled() => return,
            };
            if durable.is_ok() {
                room.progressed(&handle.root, &run, queued);
                room.clear_mark(&handle.root).await;
            }
        });
    }

    /// A replay that is a suspect went a page further, and the process lives. Its records are durable.
    pub(crate) async fn replayed_singly(
        &self,
        singly: Singly<'_>,
        root: &RunId,
        run: &RunId,
        durable: u64,
        wrote: bool,
    ) {
        let shared = self.storage.shared().filter(|_| self.quarantined.suspects.marked.contains(root));
        if let Some(shared) = shared
            && let Err(error) = shared.unmark_suspect(root).await
        {
            tracing::warn!(%root, %error, "could not say that a suspect is no longer being stepped");
        }
        drop(singly);
        self.progressed(root, run, durable);
        if wrote {
            self.clear_mark(root).await;
        }
    }

    /// So many records of a suspect are durable. If they are more than when the process died, it is cleared.
    fn progressed(&self, root: &RunId, run: &RunId, durable: u64) {
        if let Some(notes) = &self.options.step_notes
            && self.quarantined.suspects.noted.contains(root)
            && !notes.progressed(root, run, durable)
        {
            self.quarantined.suspects.acquit(root);
        }
    }

    /// The same on a store that is shared.
    async fn clear_mark(&self, root: &RunId) {
        let Some(shared) = self.storage.shared() else { return };
        // While no suspect is being stepped, so that nobody's mark is lost.
        let _nobody = self.quarantined.suspects.singly.lock().await;
        match shared.clear_suspect(root).await {
            Ok(()) => self.quarantined.suspects.unmark(root),
            Err(error) => tracing::warn!(%root, %error, "could not clear a tree of suspicion"),
        }
    }
}
