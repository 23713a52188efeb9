//! One transaction: commits in, statements out.
//!
//! However many commits share a transaction, a table is written by one or two statements, with a list of values per
//! column. Where a later write replaces an earlier one, only the later one is sent. Rows are in the order of their keys,
//! so that two hosts that write the same ones wait for each other and do not deadlock.

mod annotations;
mod between_hosts;
mod checkpoints;
mod dead_letters;
mod left;
mod parts;
mod quarantine;
mod runners;
mod runs;
mod webhooks;

use std::collections::BTreeMap;

use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, Versions, WorkflowId};
use baton_store::codec::{NewRun, integer};
use baton_store::{
    AnnotationRow, Checkpoint, CheckpointChunk, DeadLetterWrite, InterruptRow, Pruned, Quarantine, Reply, RunRow,
    SpendingRow, StoredRecord, WorkflowVersion, Write,
};

use self::left::Left;
use self::runners::Runners;
use self::webhooks::{Step, Subscribers};
use crate::known::Known;
use crate::session::SESSION;
use crate::statement::Statement;
use crate::versioned::VersionedStores;

#[derive(Default)]
pub(crate) struct Plan<'a> {
    me: u64,
    created: BTreeMap<&'a RunId, NewRun<'a>>,
    /// In the order of creation, which positions follow.
    order: Vec<&'a RunId>,
    moved: BTreeMap<&'a RunId, Moved<'a>>,
    records: BTreeMap<&'a RunId, Vec<&'a StoredRecord>>,
    pruned: BTreeMap<&'a RunId, Pruned>,
    dropped_logs: Vec<&'a RunId>,
    /// What the first records know of runs that were there without one.
    first: BTreeMap<&'a RunId, Versions>,
    interrupts: Left<(&'a RunId, &'a NodeId), &'a InterruptRow>,
    blobs: BTreeMap<&'a Digest, &'a [u8]>,
    workflows: BTreeMap<(&'a TenantId, &'a WorkflowId, u32), &'a WorkflowVersion>,
    replies: Left<&'a Digest, &'a Reply>,
    replies_before: Option<Timestamp>,
    quarantine: Left<&'a RunId, &'a Quarantine>,
    annotations: BTreeMap<(&'a RunId, &'a str), &'a AnnotationRow>,
    checkpoints: Left<(&'a RunId, u64), &'a Checkpoint>,
    chunks: Left<(&'a RunId, &'a str), &'a CheckpointChunk>,
    spending: BTreeMap<&'a RunId, &'a SpendingRow>,
    subscribers: Subscribers<'a>,
    ledgers: VersionedStores<'a>,
    given: BTreeMap<&'a RunId, u64>,
    released: Vec<&'a str>,
    runners: Runners<'a>,
    answers: BTreeMap<&'a str, &'a str>,
    probe: Option<u64>,
}

struct Moved<'a> {
    expected: u64,
    row: &'a RunRow,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(me: u64) -> Self {
        Self { me, ..Self::default() }
    }

    /// Adds writes that were judged to be in order.
    pub(crate) fn add(&mut self, writes: &'a [Write], known: &Known<'_>) {
        for write in writes {
            match write {
                Write::CreateRun(row) => {
                    let next_seq = row.origin.as_ref().map_or(0, |origin| origin.seq);
                    self.created.insert(&row.id, NewRun { row, latest: row, next_seq, pruned: None, first: None });
                    self.order.push(&row.id);
                }
                Write::Append { row, expected, records } => self.append(row, *expected, records),
                Write::Prune { run, pruned } => self.prune(run, *pruned),
                Write::OpenInterrupt(row) => {
                    self.interrupts.insert((&row.run, &row.node), Some(row));
                }
                Write::CloseInterrupt { run, node } => {
                    self.interrupts.insert((run, node), None);
                }
                Write::PutBlob { digest, bytes } => {
                    self.blobs.entry(digest).or_insert(bytes);
                }
                Write::PutWorkflow(row) => {
                    self.workflows.insert((&row.tenant, &row.id, row.version), row);
                }
                Write::Probe { number } => self.probe = Some(*number),
                Write::Annotate(row) => {
                    self.annotations.insert((&row.run, &row.id), row);
                }
                Write::Checkpoint(write) => self.checkpoint(write),
                Write::PutSpending(row) => {
                    self.spending.insert(&row.run, row);
                }
                Write::Quarantine(row) => {
                    self.quarantine.insert(&row.root, Some(row));
                }
                Write::EndQuarantine { root } => {
                    self.quarantine.insert(root, None);
                }
                Write::PutReply(reply) => {
                    self.replies.insert(&reply.key, Some(reply));
                }
                Write::PruneReplies { before } => {
                    let expired = |reply: &&mut Option<&Reply>| reply.is_some_and(|reply| reply.expires_at < *before);
                    self.replies.values_mut().filter(expired).for_each(|reply| *reply = None);
                    self.replies_before = self.replies_before.max(Some(*before));
                }
                Write::PutWebhook(row) => {
                    self.subscribers.next.rows.insert(&row.id, Some(row));
                }
                Write::NoteAttempt { webhook, attempt } => self.subscribers.step(webhook, Step::Note(attempt)),
                Write::ChangeWebhook { webhook, change } => self.subscribers.step(webhook, Step::Change(change)),
                Write::DeadLetters(DeadLetterWrite::Put(row)) => {
                    self.subscribers.next.letters.insert((&row.webhook, &row.run, row.seq), Some(row));
                }
                Write::DeadLetters(DeadLetterWrite::Expire { before, limit }) => {
                    self.subscribers.expired.push((*before, *limit));
                }
                Write::DeadLetters(write) => {
                    if let Some(webhook) = write.webhook() {
                        self.subscribers.step(webhook, Step::Letters(write));
                    }
                }
                Write::DeleteWebhook(id) => self.subscribers.next.delete(id),
                Write::PutDelivery(row) => {
                    self.subscribers.next.deliveries.insert((&row.webhook, &row.run, row.seq), Some(row));
                }
                Write::DeleteDelivery { webhook, run, seq } => {
                    self.subscribers.next.deliveries.insert((webhook, run, *seq), None);
                }
                Write::Change { .. }
                | Write::ForkVersionedStore { .. }
                | Write::ForgetHistory { .. }
                | Write::DropVersionedStore(_) => {
                    self.ledgers.add(write, known);
                }
                Write::Runners(write) => self.runners.add(write),
                Write::HandOver { root, to } => {
                    self.given.insert(root, *to);
                }
                Write::ReleaseClaim { name } => self.released.push(name),
                Write::AnswerForwarded { id, body } => {
                    if known.has_letter(id) {
                        self.answers.insert(id, body);
                    }
                }
            }
        }
    }

    fn append(&mut self, row: &'a RunRow, expected: u64, records: &'a [StoredRecord]) {
        self.records.entry(&row.id).or_default().extend(records);
        let begins = row.origin.as_ref().map_or(0, |origin| origin.seq);
        let first = records.first().filter(|_| expected == begins).map(|record| record.versions);
        if let Some(created) = self.created.get_mut(&row.id) {
            (created.latest, created.next_seq) = (row, row.next_seq);
            created.first = created.first.or(first);
        } else {
            self.moved.entry(&row.id).or_insert(Moved { expected, row }).row = row;
            self.first.extend(first.map(|first| (&row.id, first)));
        }
    }

    fn prune(&mut self, run: &'a RunId, pruned: Pruned) {
        let log = pruned.log || self.pruned.get(run).is_some_and(|before| before.log);
        self.pruned.insert(run, Pruned { log, ..pruned });
        self.quarantine.insert(run, None);
        if pruned.log {
            self.records.remove(run);
            self.annotations.retain(|(of, _), _| *of != run);
            self.checkpoints.retain(|(of, _), _| *of != run);
            self.chunks.retain(|(of, _), _| *of != run);
            self.spending.remove(run);
            self.dropped_logs.push(run);
        }
    }

    /// All of it, in the order in which it must happen.
    pub(crate) fn statements(mut self) -> Vec<Statement<'a>> {
        let mut all = Vec::new();
        if self.me != 0 {
            all.push(Statement::new(SESSION).value(integer(self.me)).touching(1));
        }
        self.runs(&mut all);
        self.parts(&mut all);
        self.quarantines(&mut all);
        self.annotations(&mut all);
        self.checkpoints(&mut all);
        self.runners.statements(&mut all);
        std::mem::take(&mut self.subscribers).statements(self.me, &mut all);
        all.extend(std::mem::take(&mut self.ledgers).statements());
        self.between_hosts(&mut all);
        all
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_store::Journal as _;
    use baton_testkit::postgres::Database;

    use super::{annotations, between_hosts, checkpoints, dead_letters, parts, quarantine, runners, runs, webhooks};
    use crate::session::SESSION;
    use crate::{PostgresStore, Settings};

    /// The writer plans each statement once, perhaps while the tables are empty: that plan must do for full ones.
    #[tokio::test]
    async fn every_statement_finds_its_rows_by_an_index() {
        let Some(database) = Database::fresh().await else { return };
        PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap().close().await;
        let (client, connection) = tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(crate::connect::PLAN_ONCE).await.unwrap();
        let all = [
            SESSION,
            runs::FOREIGN_ROOTS,
            runs::HOLD_SOURCES,
            runs::GONE_SOURCES,
            runs::NEEDED_LOGS,
            runs::DROP_LOGS,
            runs::MARK_PRUNED,
            runs::MOVE_RUNS,
            runs::FIRST_VERSIONS,
            crate::insert::TAGS,
            crate::restore::FIRST_VERSIONS,
            parts::CLOSE,
            parts::PRUNE_REPLIES,
            parts::DELETE_REPLIES,
            annotations::DROP,
            checkpoints::DROP_STATES,
            checkpoints::DROP_CHUNKS,
            checkpoints::DROP_LOST_STATES,
            checkpoints::DROP_LOST_CHUNKS,
            checkpoints::DROP_LOST_SPENDING,
            checkpoints::FORGET_STATES,
            checkpoints::FORGET_CHUNKS,
            checkpoints::FORGET_SPENDING,
            runners::DELETE_TOKENS,
            runners::DELETE_RUNNERS,
            runners::DELETE_STEPS,
            runners::FORGET_STEPS,
            quarantine::END,
            quarantine::RELEASE,
            webhooks::DROP_DELIVERIES,
            webhooks::DELETE_WEBHOOKS,
            webhooks::NOTE_SUCCESS,
            webhooks::NOTE_FAILURE,
            webhooks::RESUME,
            webhooks::SECRET,
            webhooks::HASTEN,
            dead_letters::LOCK,
            dead_letters::DROP,
            dead_letters::BURY,
            dead_letters::BURY_MINE,
            dead_letters::REDELIVER,
            dead_letters::REDELIVER_ONE,
            dead_letters::FORGET_ONE,
            dead_letters::TRIM,
            dead_letters::EXPIRE,
            webhooks::DELETE_DELIVERIES,
            between_hosts::GIVE_ROOT,
            between_hosts::GIVE_TREE,
            between_hosts::RELEASE,
            between_hosts::ANSWER,
        ];
        for (number, sql) in all.into_iter().enumerate() {
            let values = (1..).take_while(|n| sql.contains(&format!("${n}"))).count();
            client.batch_execute(&format!("PREPARE s{number} AS {sql}")).await.unwrap();
            let explain = format!("EXPLAIN EXECUTE s{number} ({})", vec!["NULL"; values].join(", "));
            let plan: Vec<String> = client.query(&explain, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
            assert!(!plan.iter().any(|step| step.contains("Seq Scan")), "{sql}\n{}", plan.join("\n"));
        }
        drop(client);
        connection.await.unwrap().unwrap();
    }
}
