use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};

use super::checkpoints::Checkpoints;
use super::members::Members;
use super::versioned::VersionedStore;
use crate::{
    AnnotationRow, Change, CommitError, CommitPart, Committed, DeadLetter, Delivery, InterruptRow, Pruned, Quarantine,
    Reply, RunRow, RunnerRow, StepRow, StoredRecord, TokenRow, VersionedStoreCommitted, VersionedStoreId, Webhook,
    WebhookChange, WorkflowVersion, Write,
};

/// What would be on disk. Cloning one and opening it again is a restart.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// In creation order; a run's position, counted from 1, is its cursor.
    pub(super) runs: Vec<Log>,
    pub(super) places: HashMap<RunId, usize>,
    pub(super) ledgers: BTreeMap<VersionedStoreId, VersionedStore>,
    pub(super) interrupts: BTreeMap<(RunId, NodeId), InterruptRow>,
    pub(super) blobs: HashMap<Digest, Vec<u8>>,
    pub(super) workflows: BTreeMap<(TenantId, WorkflowId, u32), WorkflowVersion>,
    pub(super) replies: HashMap<Digest, Reply>,
    pub(super) webhooks: BTreeMap<WebhookId, Webhook>,
    pub(super) deliveries: BTreeMap<(WebhookId, RunId, u64), Delivery>,
    pub(super) dead_letters: BTreeMap<(WebhookId, RunId, u64), DeadLetter>,
    pub(super) quarantine: BTreeMap<RunId, Quarantine>,
    pub(super) annotations: BTreeMap<RunId, BTreeMap<String, AnnotationRow>>,
    pub(super) checkpoints: Checkpoints,
    pub(super) tokens: BTreeMap<String, TokenRow>,
    pub(super) runners: BTreeMap<String, RunnerRow>,
    pub(super) steps: BTreeMap<String, StepRow>,
    /// The last number of each session.
    pub(super) probes: BTreeMap<u64, u64>,
    /// Runs of which nothing is taken; see [`super::MemoryStore::refuse_run`].
    pub(super) refused: BTreeSet<RunId>,
    pub(super) refused_workflows: BTreeSet<WorkflowId>,
    pub(super) members: Members,
}

#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) row: RunRow,
    pub(super) records: Vec<StoredRecord>,
    /// The session that drives it; 0 where there are no sessions.
    pub(super) owner: u64,
    /// Who wrote each of the records.
    pub(super) epochs: Vec<u64>,
}

impl Disk {
    pub(super) fn log(&self, run: &RunId) -> Option<&Log> {
        self.places.get(run).and_then(|place| self.runs.get(*place))
    }

    pub(super) fn changes(&self, ledger: &VersionedStoreId) -> &[Change] {
        self.ledgers.get(ledger).map_or(&[], |ledger| &ledger.changes)
    }

    pub(super) fn log_mut(&mut self, run: &RunId) -> Option<&mut Log> {
        self.places.get(run).and_then(|place| self.runs.get_mut(*place))
    }

    pub(super) fn check(
        &self,
        part: CommitPart<'_>,
    ) -> Result<(Vec<Committed>, Vec<VersionedStoreCommitted>), CommitError> {
        let runs = part.check(|run| Ok::<_, CommitError>(self.log(run).map(|log| log.row.next_seq)))?;
        let version = |ledger: &VersionedStoreId| self.ledgers.get(ledger).map_or(0, |ledger| ledger.version);
        let ledgers = part.check_versioned_stores(|ledger| Ok::<_, CommitError>(version(ledger)))?;
        let kept = |log: &Log| !log.row.pruned.is_some_and(|pruned| pruned.log);
        let forks = |run: &RunId| {
            let of = |log: &&Log| log.row.origin.as_ref().is_some_and(|origin| origin.source == *run) && kept(log);
            self.runs.iter().filter(of).map(|log| log.row.id.clone()).collect()
        };
        part.check_forks(
            |run| Ok::<_, CommitError>(self.log(run).is_some_and(|log| !kept(log))),
            |run| Ok(forks(run)),
        )?;
        let forbidden = |row: &RunRow| self.refused.contains(&row.id) || self.refused_workflows.contains(&row.workflow);
        let culprit =
            |write: &&Write| matches!(write, Write::CreateRun(row) | Write::Append { row, .. } if forbidden(row));
        if let Some(write) = part.writes.iter().find(culprit) {
            return Err(part.refused(Some(write), &"a simulated rule forbids it"));
        }
        Ok((runs, ledgers))
    }

    /// Applies a part of a session that has passed [`Self::check`] and [`Self::check_owner`].
    pub(super) fn apply(&mut self, part: CommitPart<'_>, me: u64, now: Timestamp) {
        for write in part.writes.iter().cloned() {
            match write {
                Write::CreateRun(row) => {
                    self.places.insert(row.id.clone(), self.runs.len());
                    let next_seq = row.origin.as_ref().map_or(0, |origin| origin.seq);
                    let row = RunRow { next_seq, pruned: None, ..row };
                    self.runs.push(Log { row, records: Vec::new(), owner: me, epochs: Vec::new() });
                }
                Write::Append { row, records, .. } => {
                    if let Some(log) = self.log_mut(&row.id) {
                        log.append(row, records, me);
                    }
                }
                Write::Change { ledger, change } => self.ledgers.entry(ledger).or_default().append(change),
                Write::ForkVersionedStore { ledger, base, version } => {
                    let base = Some((base, version));
                    self.ledgers.insert(ledger, VersionedStore { version, base, ..VersionedStore::default() });
                }
                Write::ForgetHistory { ledger, below } => {
                    if let Some(ledger) = self.ledgers.get_mut(&ledger) {
                        ledger.forget(below);
                    }
                }
                Write::DropVersionedStore(ledger) => {
                    if let Some(ledger) = self.ledgers.get_mut(&ledger) {
                        ledger.changes.clear();
                        ledger.base = None;
                    }
                }
                Write::Prune { run, pruned } => {
                    self.quarantine.remove(&run);
                    if pruned.log {
                        self.annotations.remove(&run);
                        self.checkpoints.forget(&run);
                    }
                    if let Some(log) = self.log_mut(&run) {
                        log.prune(pruned);
                    }
                }
                Write::Probe { number } => {
                    self.probes.insert(me, number);
                }
                Write::Annotate(row) => {
                    self.annotations.entry(row.run.clone()).or_default().insert(row.id.clone(), row);
                }
                Write::Checkpoint(write) => self.write_checkpoint(write),
                Write::PutSpending(row) => self.write_spending(row),
                Write::Quarantine(row) => {
                    self.quarantine.insert(row.root.clone(), row);
                }
                Write::EndQuarantine { root } => {
                    self.quarantine.remove(&root);
                    self.members.release_suspect(&root);
                }
                Write::OpenInterrupt(row) => {
                    self.interrupts.insert((row.run.clone(), row.node.clone()), row);
                }
                Write::CloseInterrupt { run, node } => {
                    self.interrupts.remove(&(run, node));
                }
                Write::PutBlob { digest, bytes } => {
                    self.blobs.insert(digest, bytes);
                }
                Write::PutWorkflow(version) => {
                    self.workflows.insert((version.tenant.clone(), version.id.clone(), version.version), version);
                }
                Write::PutReply(reply) => {
                    self.replies.insert(reply.key.clone(), reply);
                }
                Write::PruneReplies { before } => self.replies.retain(|_, reply| reply.expires_at >= before),
                Write::PutWebhook(webhook) => {
                    self.webhooks.insert(webhook.id.clone(), webhook);
                }
                Write::NoteAttempt { webhook: id, attempt } => {
                    if let Some(webhook) = self.webhooks.get_mut(&id) {
                        webhook.note(&attempt);
                    }
                }
                Write::ChangeWebhook { webhook: id, change } => {
                    if let Some(webhook) = self.webhooks.get_mut(&id) {
                        webhook.change(&change);
                    }
                    if let WebhookChange::Resumed { at } = change {
                        let of = self.deliveries.values_mut().filter(|delivery| delivery.webhook == id);
                        of.for_each(|delivery| delivery.due_at = delivery.due_at.min(at));
                    }
                }
                Write::DeleteWebhook(id) => {
                    self.webhooks.remove(&id);
                    self.deliveries.retain(|(webhook, ..), _| *webhook != id);
                    self.dead_letters.retain(|(webhook, ..), _| *webhook != id);
                }
                Write::PutDelivery(delivery) => {
                    let key = (delivery.webhook.clone(), delivery.run.clone(), delivery.seq);
                    self.deliveries.insert(key, delivery);
                }
                Write::DeleteDelivery { webhook, run, seq } => {
                    self.deliveries.remove(&(webhook, run, seq));
                }
                Write::DeadLetters(write) => self.apply_letters(write, me),
                Write::Runners(write) => self.apply_runners(write),
                Write::HandOver { root, to } => self.move_tree(&root, me, to),
                Write::ReleaseClaim { name } => self.members.release(&name, me),
                Write::AnswerForwarded { id, body } => self.members.answer(&id, body, now),
            }
        }
    }
}

impl Log {
    fn append(&mut self, row: RunRow, mut records: Vec<StoredRecord>, me: u64) {
        self.epochs.extend(records.iter().map(|_| me));
        self.records.append(&mut records);
        self.row.status = row.status;
        self.row.updated_at = row.updated_at;
        self.row.next_seq = row.next_seq;
        self.row.wake_at = row.wake_at;
        self.row.busy = row.busy;
        self.row.current_node = row.current_node;
        self.row.error_code = row.error_code;
        self.row.summary = row.summary;
        self.row.chain.head = row.chain.head;
    }
    fn prune(&mut self, pruned: Pruned) {
        let log = pruned.log || self.row.pruned.is_some_and(|before| before.log);
        self.row.pruned = Some(Pruned { log, ..pruned });
        if log {
            self.records.clear();
            self.epochs.clear();
        }
    }
}

impl Disk {
    /// Makes one record say what no build understands, as a newer one might have written it: its log no longer reads back.
    /// For tests.
    pub fn spoil(&mut self, run: &RunId, seq: u64) {
        let Some(log) = self.log_mut(run) else { return };
        for record in log.records.iter_mut().filter(|record| record.seq == seq) {
            record.body = "{}".into();
            record.kind = "no.such.event".into();
        }
        let chained = log.row.chain.head.is_some();
        if chained {
            log.row.chain.head = log.row.chain.base;
            log.row.seal(&mut log.records);
        }
    }

    /// Damages a blob. For tests.
    pub fn damage_blob(&mut self, digest: &Digest) {
        if let Some(bytes) = self.blobs.get_mut(digest) {
            bytes.push(b' ');
        }
    }

    /// Damages one record, as a failing disk would: it reads back, and is not what was written. For tests.
    pub fn damage(&mut self, run: &RunId, seq: u64) {
        let records = self.log_mut(run).map(|log| log.records.iter_mut());
        for record in records.into_iter().flatten().filter(|record| record.seq == seq) {
            record.at = record.at.plus_millis(1);
        }
    }
}
