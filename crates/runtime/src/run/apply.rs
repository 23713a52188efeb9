//! Drafts become records: numbered, folded into the live run, and gathered until they are queued together.

use std::sync::Arc;

use baton_engine::apply;
use baton_model::{Event, Part, Record, Timestamp, code};
use baton_store::StoredRecord;

use crate::quarantine::trees::Cause;
use crate::run::batch::Batch;
use crate::run::live::LiveRun;
use crate::run::stepper::RunStepper;
use crate::{Error, ErrorKind};

impl RunStepper {
    pub(crate) fn fold_drafts(
        &self,
        head: &mut LiveRun,
        drafts: Vec<baton_model::Draft>,
        at: Timestamp,
        batch: &mut Batch,
        outside: bool,
    ) -> Result<(), Error> {
        if drafts.is_empty() {
            return Ok(());
        }
        self.pay_and_fold(head, drafts, at, batch, outside)
    }

    /// Folds what costs nothing, or has been paid for.
    pub(crate) fn fold_paid(
        &self,
        head: &mut LiveRun,
        drafts: Vec<baton_model::Draft>,
        at: Timestamp,
        batch: &mut Batch,
        outside: bool,
    ) -> Result<(), Error> {
        let mut versions = head.ledgers.versions();
        // Folded in place; a reader that holds a clone of the state keeps its own.
        match apply(Arc::make_mut(&mut head.state), drafts, at) {
            Ok(new) => {
                batch.made += new.len();
                let mut bytes = 0;
                for (place, record) in new.into_iter().enumerate() {
                    // A write counts from its own record on, not from the ones before it in the same step.
                    match &record.event {
                        // What the run sees from its start, though others may have written since it was asked:
                        // retention keeps what first records look back to.
                        Event::RunStarted(event) => versions = event.private.versions,
                        Event::MemoryWritten(event) => versions.memory = event.private.version,
                        Event::MemoryDeleted(event) => versions.memory = event.private.version,
                        Event::WorkspaceUpdated(event) => versions.workspace = event.private.version,
                        Event::AgentToolCalled(event) => drop(batch.intents.insert(event.call_id.clone())),
                        Event::EffectRetried(event) => drop(batch.intents.insert(event.call_id.clone())),
                        _ => {}
                    }
                    let part = Some(Part { outside, first: place == 0 });
                    let record = Record { versions, part, ..record };
                    let stored = StoredRecord::encode(&head.row.id, &record);
                    bytes += stored.bytes();
                    if bytes > self.options.max_step_bytes {
                        return Err(self.refuse_step(head));
                    }
                    batch.records.push(record);
                    batch.stored.push(stored);
                }
                batch.bytes += bytes;
                Ok(())
            }
            Err(illegal) => {
                // A defect of ours: nothing was pushed, so dropping the live run loses nothing that anybody has seen.
                head.gone = true;
                tracing::error!(run = %head.row.id, %illegal, "the engine drafted an illegal record");
                Err(Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The run could not go on.").because(illegal))
            }
        }
    }

    /// A step has more to write than a commit may have. Nothing of it was pushed, so dropping the live run loses nothing that
    /// anybody has seen. It would be as large the next time: a run that exists is left alone with its tree.
    fn refuse_step(&self, head: &mut LiveRun) -> Error {
        head.gone = true;
        let most = self.options.max_step_bytes;
        let message = format!("A step of this run would write more than {most} bytes at once.");
        if head.row.next_seq > 0 {
            self.quarantine.quarantine(&head.row, Cause::CommitRefused, &message);
        }
        Error::new(ErrorKind::TooLarge, code::PAYLOAD_TOO_LARGE, message).with("limitBytes", most)
    }

    /// Notes which calls this process is going to make. Before their intents are queued: from then on somebody else may
    /// find them on disk, and must be able to tell.
    pub(crate) fn note_intents(&self, head: &LiveRun, batch: &mut Batch) {
        let intents = std::mem::take(&mut batch.intents);
        if intents.is_empty() {
            return;
        }
        for call in head.state.wanted_tool_calls().iter().filter(|call| intents.contains(&call.call_id)) {
            self.calls.intend(&head.row.id, &head.chain, call);
        }
    }
}
