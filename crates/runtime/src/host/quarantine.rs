//! Trees in quarantine, as people see them and act on them.

use std::sync::Arc;

use baton_engine::Command;
use baton_model::event::RunCancelled;
use baton_model::{Event, Part, Principal, Record, RunId, RunStatus, TenantId, code};
use baton_store::{Commit, InterruptFilter, Quarantine, RunRow, StoredRecord, Write};

use crate::history::fork::is_replay;
use crate::inner::Inner;
use crate::quarantine::{may_be_loaded, root_of};
use crate::run::world::Generation;
use crate::{Error, Host, Kind};

impl Host {
    /// Trees of this tenant that are left alone, by their top; those after `after`.
    pub async fn quarantined(
        &self,
        tenant: &TenantId,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        Ok(self.inner.store.quarantined(Some(tenant), after, limit).await?)
    }

    /// How many trees of all tenants are left alone.
    pub async fn count_quarantined(&self) -> Result<u64, Error> {
        Ok(self.inner.store.count_quarantined().await?)
    }

    /// How many this process knows of, without asking the store.
    pub fn quarantined_here(&self) -> usize {
        self.inner.quarantines.count()
    }

    /// Why the tree of a run is left alone, if it is.
    pub async fn quarantine(&self, tenant: &TenantId, run: &RunId) -> Result<Option<Quarantine>, Error> {
        let row = self.inner.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        Ok(self.inner.quarantine_of(root_of(&row)).await?.map(|held| held.as_ref().clone()))
    }

    /// Lets the tree of a run go on from where it was.
    pub async fn release(&self, who: &Principal, run: &RunId) -> Result<Quarantine, Error> {
        let Some(held) = self.quarantine(&who.tenant, run).await? else {
            let message = "This run is not in quarantine, so there is nothing to release.";
            return Err(Error::new(Kind::Conflict, code::RUN_CONFLICT, message));
        };
        self.inner.release(&held.root).await?;
        Ok(held)
    }
}

impl Inner {
    /// The top of a tree in quarantine was to be cancelled on the host that drives it, and could not be loaded or must not
    /// be: then all of it ends by hand. Says whether it did.
    pub(crate) async fn cancelled_by_hand(
        &self,
        run: &RunId,
        command: &Command,
        failed: &Error,
    ) -> Result<bool, Error> {
        let from_outside = matches!(command, Command::Cancel { parent: None, .. });
        if !from_outside || matches!(failed.kind, Kind::Unavailable | Kind::NotFound) {
            return Ok(false);
        }
        let Some(row) = self.store.run(run).await?.filter(|row| row.root.is_none()) else { return Ok(false) };
        let Some(held) = self.quarantine_of(&row.id).await? else { return Ok(false) };
        // A replay takes no commands.
        let by_hand = failed.kind == Kind::Internal || !may_be_loaded(&held) || is_replay(&row);
        if by_hand {
            self.end_tree_by_hand(run, command).await?;
        }
        Ok(by_hand)
    }

    /// Somebody cancelled a tree in quarantine, and a run of it broke while it was ending.
    pub(crate) async fn end_broken_tree(&self, root: &RunId, detail: &str) {
        let reason = Some("It broke while it was being cancelled.".to_owned());
        let command = Command::Cancel { reason, by: None, parent: None };
        tracing::warn!(%root, detail, "a tree in quarantine breaks while it is cancelled; ending it by hand");
        if let Err(error) = self.end_tree_by_hand(root, &command).await {
            tracing::warn!(%root, %error, "a tree in quarantine could not be ended");
        }
    }

    /// A child of a tree in quarantine that is to be cancelled and cannot be loaded ends without its engine. Says whether
    /// that was done.
    pub(crate) async fn ended_by_hand(
        &self,
        world: &Generation,
        run: &RunId,
        command: &Command,
        failed: &Error,
    ) -> Result<bool, Error> {
        let Command::Cancel { reason, by, parent } = command else { return Ok(false) };
        if failed.kind != Kind::Internal {
            return Ok(false);
        }
        let Some(row) = self.store.run(run).await?.filter(|row| !row.status.is_terminal()) else { return Ok(false) };
        if self.quarantine_of(root_of(&row)).await?.is_none() {
            return Ok(false);
        }
        let (cancelled_by, parent_run_id) = (by.clone(), parent.clone());
        let cancelled = RunCancelled { reason: reason.clone(), cancelled_by, parent_run_id };
        self.end_by_hand(world, row, cancelled).await?;
        Ok(true)
    }

    /// Ends every run of a tree in quarantine without its engine, its top last: each log ends with the record that says so.
    /// After a crash in between, cancelling it again ends the rest.
    async fn end_tree_by_hand(&self, root: &RunId, command: &Command) -> Result<(), Error> {
        let Command::Cancel { reason, by, .. } = command else { return Err(Error::stepping()) };
        let world = self.world()?;
        self.let_go_of_tree(&world, root).await?;
        for row in self.runs_of_tree(root).await?.into_iter().filter(|row| !row.status.is_terminal()) {
            let _loading = self.loading.lock(&row.id).await;
            // A replay may have gone on until now.
            let now = self.store.run(&row.id).await?.filter(|row| !row.status.is_terminal());
            let Some(row) = now else { continue };
            let cancelled = if row.id == *root {
                RunCancelled { reason: reason.clone(), cancelled_by: by.clone(), parent_run_id: None }
            } else {
                let reason = Some("parent-cancelled".to_owned());
                RunCancelled { reason, cancelled_by: None, parent_run_id: Some(root.clone()) }
            };
            self.end_by_hand(&world, row, cancelled).await?;
        }
        Ok(())
    }

    /// Makes sure that nobody has a run of the tree in memory, and that everything of it is on disk.
    async fn let_go_of_tree(&self, world: &Generation, root: &RunId) -> Result<(), Error> {
        world.outbox.flush(self.store.as_ref(), world.generation);
        for run in self.abandon(world, root) {
            let Some(slot) = world.slots.get(&run).map(|slot| Arc::clone(&slot)) else { continue };
            // What a step that does not end would still write must not come after the end.
            let queued = slot.head_now().ok_or_else(Error::stepping)?.queued;
            slot.durable(world, queued).await?;
            world.slots.remove_if(&run, |_, current| Arc::ptr_eq(current, &slot));
        }
        Ok(())
    }

    async fn end_by_hand(&self, world: &Generation, row: RunRow, cancelled: RunCancelled) -> Result<(), Error> {
        let last = self.store.records(&row.id, row.next_seq.saturating_sub(1), 1).await?.pop();
        let at = self.clock.now().max(row.updated_at);
        let record = Record {
            seq: row.next_seq,
            at,
            event: Event::from(cancelled),
            causation: None,
            versions: last.map(|record| record.versions).unwrap_or_default(),
            part: Some(Part { outside: true, first: true }),
        };
        let expected = row.next_seq;
        let row = RunRow {
            status: RunStatus::Cancelled,
            updated_at: at,
            next_seq: expected + 1,
            wake_at: None,
            busy: false,
            current_node: None,
            ..row
        };
        let open = InterruptFilter { run: Some(row.id.clone()), limit: usize::MAX >> 1, ..InterruptFilter::default() };
        let mut writes: Vec<Write> = self
            .store
            .interrupts(&open)
            .await?
            .into_iter()
            .map(|question| Write::CloseInterrupt { run: question.run, node: question.node })
            .collect();
        let records = vec![record];
        self.webhooks.enqueue(&row, &records, at, &mut writes);
        let stored = records.iter().map(|record| StoredRecord::encode(&row.id, record)).collect();
        let top = row.root.is_none().then(|| row.id.clone());
        writes.push(Write::Append { row, expected, records: stored });
        if let Some(root) = &top {
            writes.push(Write::EndQuarantine { root: root.clone() });
        }
        // Alone: should it come too late after all, nobody else is the worse for it.
        self.store.submit(Commit::alone(world.generation, writes)).await?;
        if let Some(root) = top {
            self.quarantine_ended(&root);
        }
        Ok(())
    }
}
