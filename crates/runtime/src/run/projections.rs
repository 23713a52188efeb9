//! What a run's new records mean for everything that is not its log: the row lists and schedulers read, the open
//! questions, the deliveries to subscribers. All of it is pushed together with the records, so it can never be ahead of
//! them or behind.

use baton_engine::RunState;
use baton_model::{Event, Record, Timestamp};
use baton_store::{Chains, Change, InterruptRow, VersionedStoreId, Write};

use crate::journal::generation::Generation;
use crate::run::batch::Batch;
use crate::run::live::LiveRun;
use crate::run::stepper::RunStepper;

impl RunStepper {
    /// Queues the records of a step that are not queued yet.
    pub(crate) fn push_records(&self, live: &Generation, head: &mut LiveRun, batch: &mut Batch, at: Timestamp) {
        self.queue(live, head, batch, None, Vec::new(), at);
    }

    /// The same, together with the changes of a versioned store that they tell of.
    pub(crate) fn push(
        &self,
        live: &Generation,
        head: &mut LiveRun,
        batch: &mut Batch,
        ledger: &VersionedStoreId,
        changes: &[Change],
        at: Timestamp,
    ) {
        let change = |change: &Change| Write::Change { ledger: ledger.clone(), change: change.clone() };
        self.queue(live, head, batch, Some(ledger), changes.iter().map(change).collect(), at);
    }

    fn queue(
        &self,
        live: &Generation,
        head: &mut LiveRun,
        batch: &mut Batch,
        changed: Option<&VersionedStoreId>,
        changes: Vec<Write>,
        at: Timestamp,
    ) {
        self.note_intents(head, batch);
        let asked = batch.asked;
        let (expected, records, mut stored) = batch.take();
        let records = records.as_slice();
        self.update_row(head, at);
        self.update_summary(head, records);
        head.row.seal(&mut stored);
        let row = &head.row;
        let mut writes = Vec::with_capacity(2);
        if expected == 0 {
            writes.push(Write::CreateRun(row.clone()));
        }
        writes.push(Write::Append { row: row.clone(), expected, records: stored });
        writes.extend(changes);
        self.project_interrupts(head, records, &mut writes);
        self.webhooks.enqueue(&head.row, records, at, &mut writes);
        if head.row.root.is_none() && head.row.status.is_terminal() && self.quarantined.of(&head.row.id).is_some() {
            // Cancelled: it is over with its log.
            writes.push(Write::EndQuarantine { root: head.row.id.clone() });
            self.quarantine.quarantine_ended(&head.row.id);
        }
        if head.account.is_some() {
            records.iter().for_each(|record| head.spending.total.read(&record.event));
            writes.extend(head.spending.note(&head.row).map(Write::PutSpending));
        }
        if let Some(attached) = head.attached.take() {
            writes.push(attached(head.row.status, at));
        }
        count_metrics(records);
        for _ in records.iter().filter(|record| matches!(record.event, Event::EffectUnknown(_))) {
            self.health_state.unknown_call();
        }
        let chains = Chains { asked, ..head.chains(changed) };
        let (waiting, bytes) = live.outbox.push(&head.row.tenant, writes, chains);
        head.queued = head.row.next_seq;
        let offered = self.checkpoint_queue.stepped(live, &head.state, &head.row, head.checkpointed);
        head.checkpointed = offered.unwrap_or(head.checkpointed);
        head.ahead.add(bytes, head.queued, self.options.bytes_ahead);
        if waiting.writes >= self.options.records_ahead || waiting.bytes >= self.options.bytes_ahead {
            self.storage.flush(live);
        }
    }

    /// The row as the run stands.
    pub(crate) fn update_row(&self, head: &mut LiveRun, at: Timestamp) {
        let state = &head.state;
        let row = &mut head.row;
        row.status = state.status();
        row.updated_at = at;
        row.next_seq = state.next_seq();
        row.wake_at = state.wake_at();
        row.busy = is_busy(state);
        row.current_node = state.current_node().cloned();
        row.error_code = state.error().map(|error| error.code.clone());
    }

    fn project_interrupts(&self, head: &LiveRun, records: &[Record], writes: &mut Vec<Write>) {
        let row = &head.row;
        for record in records {
            match &record.event {
                Event::InterruptRequested(event) => writes.push(Write::OpenInterrupt(InterruptRow {
                    run: row.id.clone(),
                    tenant: row.tenant.clone(),
                    workflow: row.workflow.clone(),
                    node: event.private.node_id.clone(),
                    interrupt_id: event.private.interrupt_id.clone(),
                    key: event.key.clone(),
                    kind: event.kind.clone(),
                    data: event.data.clone(),
                    requested_at: record.at,
                    expires_at: event.private.expires_at,
                })),
                Event::InterruptResolved(event) => {
                    writes.push(Write::CloseInterrupt { run: row.id.clone(), node: event.node_id.clone() });
                }
                Event::NodeCancelled(event) => {
                    writes.push(Write::CloseInterrupt { run: row.id.clone(), node: event.node_id.clone() });
                }
                _ => {}
            }
        }
    }
}

/// Work that neither a timer nor a human will bring back: only a restart that looks can.
fn is_busy(state: &RunState) -> bool {
    !state.status().is_terminal() && (state.has_ready_work() || state.awaits_the_world())
}

fn count_metrics(records: &[Record]) {
    metrics::counter!("baton_events_total").increment(records.len() as u64);
    for record in records {
        match &record.event {
            Event::RunStarted(_) => metrics::counter!("baton_runs_started_total").increment(1),
            Event::RunCompleted(_) => metrics::counter!("baton_runs_ended_total", "status" => "completed").increment(1),
            Event::RunFailed(_) => metrics::counter!("baton_runs_ended_total", "status" => "failed").increment(1),
            Event::RunCancelled(_) => metrics::counter!("baton_runs_ended_total", "status" => "cancelled").increment(1),
            Event::InterruptRequested(_) => metrics::counter!("baton_interrupts_requested_total").increment(1),
            _ => {}
        }
    }
}
