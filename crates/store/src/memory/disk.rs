use std::collections::{BTreeMap, HashMap};

use baton_model::{Digest, NodeId, RunId, TenantId, WebhookId, WorkflowId};

use super::ledger::Ledger;
use crate::{
    Change, Commit, CommitError, Committed, Delivery, InterruptRow, LedgerCommitted, LedgerId, Pruned, Reply, RunRow,
    StoredRecord, Webhook, WorkflowVersion, Write,
};

/// What would be on disk. Cloning one and opening it again is a restart.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// In creation order; a run's position, counted from 1, is its cursor.
    pub(super) runs: Vec<Log>,
    pub(super) places: HashMap<RunId, usize>,
    pub(super) ledgers: BTreeMap<LedgerId, Ledger>,
    pub(super) interrupts: BTreeMap<(RunId, NodeId), InterruptRow>,
    pub(super) blobs: HashMap<Digest, Vec<u8>>,
    pub(super) workflows: BTreeMap<(TenantId, WorkflowId, u32), WorkflowVersion>,
    pub(super) replies: HashMap<Digest, Reply>,
    pub(super) webhooks: BTreeMap<WebhookId, Webhook>,
    pub(super) deliveries: BTreeMap<(WebhookId, RunId, u64), Delivery>,
}

#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) row: RunRow,
    pub(super) records: Vec<StoredRecord>,
}

impl Disk {
    pub(super) fn log(&self, run: &RunId) -> Option<&Log> {
        self.places.get(run).and_then(|place| self.runs.get(*place))
    }

    pub(super) fn changes(&self, ledger: &LedgerId) -> &[Change] {
        self.ledgers.get(ledger).map_or(&[], |ledger| &ledger.changes)
    }

    fn log_mut(&mut self, run: &RunId) -> Option<&mut Log> {
        self.places.get(run).and_then(|place| self.runs.get_mut(*place))
    }

    pub(super) fn check(&self, commit: &Commit) -> Result<(Vec<Committed>, Vec<LedgerCommitted>), CommitError> {
        let runs = commit.check(|run| Ok::<_, CommitError>(self.log(run).map(|log| log.row.next_seq)))?;
        let version = |ledger: &LedgerId| self.ledgers.get(ledger).map_or(0, |ledger| ledger.version);
        let ledgers = commit.check_ledgers(|ledger| Ok::<_, CommitError>(version(ledger)))?;
        Ok((runs, ledgers))
    }

    /// Applies a commit that has passed [`Self::check`].
    pub(super) fn apply(&mut self, commit: Commit) {
        for write in commit.writes {
            match write {
                Write::CreateRun(row) => {
                    self.places.insert(row.id.clone(), self.runs.len());
                    let next_seq = row.origin.as_ref().map_or(0, |origin| origin.seq);
                    self.runs.push(Log { row: RunRow { next_seq, pruned: None, ..row }, records: Vec::new() });
                }
                Write::Append { row, records, .. } => {
                    if let Some(log) = self.log_mut(&row.id) {
                        log.append(row, records);
                    }
                }
                Write::Change { ledger, change } => self.ledgers.entry(ledger).or_default().append(change),
                Write::ForkLedger { ledger, base, version } => {
                    let base = Some((base, version));
                    self.ledgers.insert(ledger, Ledger { version, base, ..Ledger::default() });
                }
                Write::ForgetHistory { ledger, below } => {
                    if let Some(ledger) = self.ledgers.get_mut(&ledger) {
                        ledger.forget(below);
                    }
                }
                Write::DropLedger(ledger) => {
                    if let Some(ledger) = self.ledgers.get_mut(&ledger) {
                        ledger.changes.clear();
                        ledger.base = None;
                    }
                }
                Write::Prune { run, pruned } => {
                    if let Some(log) = self.log_mut(&run) {
                        log.prune(pruned);
                    }
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
                Write::DeleteWebhook(id) => {
                    self.webhooks.remove(&id);
                    self.deliveries.retain(|(webhook, ..), _| *webhook != id);
                }
                Write::PutDelivery(delivery) => {
                    let key = (delivery.webhook.clone(), delivery.run.clone(), delivery.seq);
                    self.deliveries.insert(key, delivery);
                }
                Write::DeleteDelivery { webhook, run, seq } => {
                    self.deliveries.remove(&(webhook, run, seq));
                }
            }
        }
    }
}

impl Log {
    fn append(&mut self, row: RunRow, mut records: Vec<StoredRecord>) {
        self.records.append(&mut records);
        self.row.status = row.status;
        self.row.updated_at = row.updated_at;
        self.row.next_seq = row.next_seq;
        self.row.wake_at = row.wake_at;
        self.row.busy = row.busy;
        self.row.current_node = row.current_node;
        self.row.error_code = row.error_code;
    }
    fn prune(&mut self, pruned: Pruned) {
        let log = pruned.log || self.row.pruned.is_some_and(|before| before.log);
        self.row.pruned = Some(Pruned { log, ..pruned });
        if log {
            self.records.clear();
        }
    }
}
