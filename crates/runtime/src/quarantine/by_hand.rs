//! Ending a tree in quarantine without stepping it: its log is closed by hand.

use baton_engine::Command;
use baton_model::event::RunCancelled;
use baton_model::{Event, Part, Record, RunId, RunStatus};
use baton_store::{InterruptFilter, RunRow, StoredRecord, Write};

use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::quarantine::service::Quarantines;
use crate::run::tree::root_of;
use crate::{Error, ErrorKind};

impl Quarantines {
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
        live: &Generation,
        run: &RunId,
        command: &Command,
        failed: &Error,
    ) -> Result<bool, Error> {
        let Command::Cancel { reason, by, parent } = command else { return Ok(false) };
        if failed.kind != ErrorKind::Internal && !failed.is_damage() {
            return Ok(false);
        }
        let Some(row) = self.store.run(run).await?.filter(|row| !row.status.is_terminal()) else { return Ok(false) };
        if self.quarantine_of(root_of(&row)).await?.is_none() {
            return Ok(false);
        }
        let (cancelled_by, parent_run_id) = (by.clone(), parent.clone());
        let cancelled = RunCancelled { reason: reason.clone(), cancelled_by, parent_run_id };
        self.end_by_hand(live, row, cancelled).await?;
        Ok(true)
    }

    /// Ends every run of a tree in quarantine without its engine, its top last: each log ends with the record that says so.
    /// After a crash in between, cancelling it again ends the rest.
    pub(crate) async fn end_tree_by_hand(&self, root: &RunId, command: &Command) -> Result<(), Error> {
        let Command::Cancel { reason, by, .. } = command else { return Err(Error::stepping()) };
        let live = self.storage.live()?;
        self.let_go_of_tree(&live, root).await?;
        for row in self.storage.runs_of_tree(root).await?.into_iter().filter(|row| !row.status.is_terminal()) {
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
            self.end_by_hand(&live, row, cancelled).await?;
        }
        Ok(())
    }

    /// Makes sure that nobody has a run of the tree in memory, and that everything of it is on disk.
    async fn let_go_of_tree(&self, live: &Generation, root: &RunId) -> Result<(), Error> {
        live.outbox.flush(self.store.as_ref(), live.generation);
        for run in self.abandon(live, root) {
            let Some(handle) = live.run(&run) else { continue };
            // What a step that does not end would still write must not come after the end.
            let queued = handle.head_now().ok_or_else(Error::stepping)?.queued;
            handle.durable(&live.ending, queued).await?;
            live.drop_run(&run, &handle);
        }
        Ok(())
    }

    async fn end_by_hand(&self, live: &Generation, row: RunRow, cancelled: RunCancelled) -> Result<(), Error> {
        let last = match self.store.records(&row.id, row.next_seq.saturating_sub(1), 1).await {
            Ok(mut last) => last.pop(),
            // It can be ended all the same.
            Err(error) if error.is_damage() => None,
            Err(error) => return Err(error.into()),
        };
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
        let mut row = RunRow {
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
        let (records, tenant) = (vec![record], row.tenant.clone());
        self.webhooks.enqueue(&row, &records, at, &mut writes);
        let mut stored: Vec<_> = records.iter().map(|record| StoredRecord::encode(&row.id, record)).collect();
        row.seal(&mut stored);
        let top = row.root.is_none().then(|| row.id.clone());
        writes.push(Write::Append { row, expected, records: stored });
        if let Some(root) = &top {
            writes.push(Write::EndQuarantine { root: root.clone() });
        }
        // Alone: should it come too late after all, nobody else is the worse for it.
        self.storage.write(live.generation, Lane::Of(&tenant), writes).await?;
        if let Some(root) = top {
            self.quarantine_ended(&root);
        }
        Ok(())
    }
}
