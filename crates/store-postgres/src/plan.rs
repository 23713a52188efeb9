//! One transaction: commits in, statements out.
//!
//! However many commits share a transaction, a table is written by one or two statements, with a list of values per
//! column. Where a later write replaces an earlier one, only the later one is sent. Rows are in the order of their keys,
//! so that two hosts that write the same ones wait for each other and do not deadlock.

use std::collections::BTreeMap;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::{
    Commit, Delivery, InterruptRow, Pruned, Reply, RunRow, StoredRecord, Webhook, WebhookStatus, WorkflowVersion, Write,
};

use crate::known::Known;
use crate::ledgers::Ledgers;
use crate::rows;
use crate::statement::Statement;
use crate::summary::Told;
use crate::text::written;

/// What the transaction leaves of a row: this, or nothing.
type Rows<K, V> = BTreeMap<K, Option<V>>;

#[derive(Default)]
pub(crate) struct Plan<'a> {
    me: u64,
    created: BTreeMap<&'a RunId, Created<'a>>,
    /// In the order of creation, which positions follow.
    order: Vec<&'a RunId>,
    moved: BTreeMap<&'a RunId, Moved<'a>>,
    records: BTreeMap<&'a RunId, Vec<&'a StoredRecord>>,
    pruned: BTreeMap<&'a RunId, Pruned>,
    dropped_logs: Vec<&'a RunId>,
    interrupts: Rows<(&'a RunId, &'a NodeId), &'a InterruptRow>,
    blobs: BTreeMap<&'a Digest, &'a [u8]>,
    workflows: BTreeMap<(&'a TenantId, &'a WorkflowId, u32), &'a WorkflowVersion>,
    replies: Rows<&'a Digest, &'a Reply>,
    replies_before: Option<Timestamp>,
    webhooks: Rows<&'a WebhookId, &'a Webhook>,
    /// Only if they are there.
    updated_webhooks: BTreeMap<&'a WebhookId, &'a Webhook>,
    dropped_webhooks: Vec<&'a WebhookId>,
    deliveries: Rows<(&'a WebhookId, &'a RunId, u64), &'a Delivery>,
    ledgers: Ledgers<'a>,
    given: BTreeMap<&'a RunId, u64>,
    released: Vec<&'a str>,
    answers: BTreeMap<&'a str, &'a str>,
}

struct Created<'a> {
    /// What the run is, and where it stands in the end.
    row: &'a RunRow,
    latest: &'a RunRow,
    next_seq: u64,
}

struct Moved<'a> {
    expected: u64,
    row: &'a RunRow,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(me: u64) -> Self {
        Self { me, ..Self::default() }
    }

    /// Adds a commit that was judged to be in order.
    pub(crate) fn add(&mut self, commit: &'a Commit, known: &Known<'_>) {
        for write in &commit.writes {
            match write {
                Write::CreateRun(row) => {
                    let next_seq = row.origin.as_ref().map_or(0, |origin| origin.seq);
                    self.created.insert(&row.id, Created { row, latest: row, next_seq });
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
                Write::PutReply(reply) => {
                    self.replies.insert(&reply.key, Some(reply));
                }
                Write::PruneReplies { before } => {
                    let expired = |reply: &&mut Option<&Reply>| reply.is_some_and(|reply| reply.expires_at < *before);
                    self.replies.values_mut().filter(expired).for_each(|reply| *reply = None);
                    self.replies_before = self.replies_before.max(Some(*before));
                }
                Write::PutWebhook(row) => {
                    self.webhooks.insert(&row.id, Some(row));
                }
                Write::UpdateWebhook(row) => {
                    if row.status == WebhookStatus::Failed {
                        self.drop_deliveries(&row.id);
                    }
                    match self.webhooks.get_mut(&row.id) {
                        Some(known) => *known = known.map(|_| row),
                        None => {
                            self.updated_webhooks.insert(&row.id, row);
                        }
                    }
                }
                Write::DeleteWebhook(id) => {
                    self.webhooks.insert(id, None);
                    self.drop_deliveries(id);
                }
                Write::PutDelivery(row) => {
                    self.deliveries.insert((&row.webhook, &row.run, row.seq), Some(row));
                }
                Write::DeleteDelivery { webhook, run, seq } => {
                    self.deliveries.insert((webhook, run, *seq), None);
                }
                Write::Change { .. }
                | Write::ForkLedger { .. }
                | Write::ForgetHistory { .. }
                | Write::DropLedger(_) => {
                    self.ledgers.add(write, known);
                }
                Write::HandOver { root, to } => {
                    self.given.insert(root, *to);
                }
                Write::ReleaseClaim { name } => self.released.push(name),
                Write::AnswerLetter { id, body } => {
                    if known.has_letter(id) {
                        self.answers.insert(id, body);
                    }
                }
            }
        }
    }

    fn drop_deliveries(&mut self, webhook: &'a WebhookId) {
        self.dropped_webhooks.push(webhook);
        let there = |(key, _): &(&(&WebhookId, &RunId, u64), &mut Option<&Delivery>)| key.0 == webhook;
        self.deliveries.iter_mut().filter(there).for_each(|(_, delivery)| *delivery = None);
    }

    fn append(&mut self, row: &'a RunRow, expected: u64, records: &'a [StoredRecord]) {
        self.records.entry(&row.id).or_default().extend(records);
        if let Some(created) = self.created.get_mut(&row.id) {
            (created.latest, created.next_seq) = (row, row.next_seq);
        } else {
            self.moved.entry(&row.id).or_insert(Moved { expected, row }).row = row;
        }
    }

    fn prune(&mut self, run: &'a RunId, pruned: Pruned) {
        let log = pruned.log || self.pruned.get(run).is_some_and(|before| before.log);
        self.pruned.insert(run, Pruned { log, ..pruned });
        if pruned.log {
            self.records.remove(run);
            self.dropped_logs.push(run);
        }
    }

    /// All of it, in the order in which it must happen.
    pub(crate) fn statements(mut self) -> Vec<Statement<'a>> {
        let mut all = Vec::new();
        if self.me != 0 {
            all.push(Statement::new(SESSION).value(rows::integer(self.me)).touching(1));
        }
        self.runs(&mut all);
        self.parts(&mut all);
        all.extend(std::mem::take(&mut self.ledgers).statements());
        self.between_hosts(&mut all);
        all
    }

    fn runs(&self, all: &mut Vec<Statement<'a>>) {
        let created: Vec<&Created<'a>> = self.order.iter().filter_map(|id| self.created.get(*id)).collect();
        if !created.is_empty() {
            all.push(insert_runs(&created, self.me));
            // A child belongs to whoever owns its tree.
            let roots = created.iter().filter_map(|created| created.row.root.as_ref());
            let mut roots: Vec<&str> =
                roots.filter(|root| !self.created.contains_key(root)).map(RunId::as_str).collect();
            roots.sort_unstable();
            roots.dedup();
            if self.me != 0 && !roots.is_empty() {
                all.push(Statement::new(FOREIGN_ROOTS).texts(roots).value(rows::integer(self.me)).touching(0));
            }
        }
        if !self.dropped_logs.is_empty() {
            all.push(Statement::new(DROP_LOGS).texts(self.dropped_logs.iter().map(|run| run.as_str())));
        }
        if !self.records.is_empty() {
            all.push(insert_records(&self.records, self.me));
        }
        if !self.moved.is_empty() {
            all.push(move_runs(&self.moved, self.me));
        }
        if !self.pruned.is_empty() {
            all.push(
                Statement::new(MARK_PRUNED)
                    .texts(self.pruned.keys().map(|run| run.as_str()))
                    .list(self.pruned.values().map(|pruned| pruned.at.as_micros()))
                    .list(self.pruned.values().map(|pruned| pruned.log)),
            );
        }
    }

    fn parts(&mut self, all: &mut Vec<Statement<'a>>) {
        let (gone, open) = split(&self.interrupts);
        if !gone.is_empty() {
            let runs = gone.iter().map(|(run, _)| run.as_str());
            all.push(Statement::new(CLOSE).texts(runs).texts(gone.iter().map(|(_, node)| node.as_str())));
        }
        if !open.is_empty() {
            all.push(put_interrupts(&open));
        }
        if !self.blobs.is_empty() {
            let digests = self.blobs.keys().map(|digest| digest.as_str());
            all.push(Statement::new(PUT_BLOBS).texts(digests).list(self.blobs.values().copied()));
        }
        if !self.workflows.is_empty() {
            let rows = || self.workflows.values();
            all.push(
                Statement::new(PUT_WORKFLOWS)
                    .texts(rows().map(|row| row.tenant.as_str()))
                    .texts(rows().map(|row| row.id.as_str()))
                    .list(rows().map(|row| i64::from(row.version)))
                    .texts(rows().map(|row| row.digest.as_str()))
                    .texts(rows().map(|row| row.name.as_str()))
                    .list(rows().map(|row| row.created_at.as_micros())),
            );
        }
        if let Some(before) = self.replies_before {
            all.push(Statement::new(PRUNE_REPLIES).value(before.as_micros()));
        }
        let (gone, kept) = split(&self.replies);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_REPLIES).texts(gone.iter().map(|key| key.as_str())));
        }
        if !kept.is_empty() {
            all.push(
                Statement::new(PUT_REPLIES)
                    .texts(kept.iter().map(|reply| reply.key.as_str()))
                    .texts(kept.iter().map(|reply| reply.request.as_str()))
                    .list(kept.iter().map(|reply| i32::from(reply.status)))
                    .texts(kept.iter().map(|reply| reply.body.as_str()))
                    .list(kept.iter().map(|reply| reply.expires_at.as_micros())),
            );
        }
        self.webhooks(all);
    }

    fn webhooks(&mut self, all: &mut Vec<Statement<'a>>) {
        let dropped = &self.dropped_webhooks;
        if !dropped.is_empty() {
            all.push(Statement::new(DROP_DELIVERIES).texts(dropped.iter().map(|id| id.as_str())));
        }
        if !self.updated_webhooks.is_empty() {
            let rows: Vec<&Webhook> = self.updated_webhooks.values().copied().collect();
            all.push(put_webhooks(UPDATE_WEBHOOKS, &rows));
        }
        let (gone, kept) = split(&self.webhooks);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_WEBHOOKS).texts(gone.iter().map(|id| id.as_str())));
        }
        if !kept.is_empty() {
            all.push(put_webhooks(PUT_WEBHOOKS, &kept));
        }
        let (gone, kept) = split(&self.deliveries);
        if !gone.is_empty() {
            all.push(
                Statement::new(DELETE_DELIVERIES)
                    .texts(gone.iter().map(|(webhook, ..)| webhook.as_str()))
                    .texts(gone.iter().map(|(_, run, _)| run.as_str()))
                    .list(gone.iter().map(|(.., seq)| rows::integer(*seq))),
            );
        }
        if !kept.is_empty() {
            all.push(
                Statement::new(PUT_DELIVERIES)
                    .texts(kept.iter().map(|row| row.webhook.as_str()))
                    .texts(kept.iter().map(|row| row.run.as_str()))
                    .list(kept.iter().map(|row| rows::integer(row.seq)))
                    .list(kept.iter().map(|row| i64::from(row.attempts)))
                    .list(kept.iter().map(|row| row.due_at.as_micros())),
            );
        }
    }

    fn between_hosts(&self, all: &mut Vec<Statement<'a>>) {
        let me = rows::integer(self.me);
        for (root, to) in &self.given {
            let to = rows::integer(*to);
            all.push(Statement::new(GIVE_ROOT).value(written(root.as_str())).value(me).value(to).touching(1));
            all.push(Statement::new(GIVE_TREE).value(written(root.as_str())).value(me).value(to));
        }
        if !self.released.is_empty() {
            all.push(Statement::new(RELEASE).texts(self.released.iter().copied()).value(me));
        }
        if !self.answers.is_empty() {
            let ids = self.answers.keys().copied();
            let answers = Statement::new(ANSWER).texts(ids).texts(self.answers.values().copied());
            all.push(answers.touching(self.answers.len()));
        }
    }
}

fn split<K: Copy, V: Copy>(rows: &Rows<K, V>) -> (Vec<K>, Vec<V>) {
    let gone = rows.iter().filter(|(_, row)| row.is_none()).map(|(key, _)| *key).collect();
    (gone, rows.values().filter_map(|row| *row).collect())
}

/// Shared with whoever else writes for this session; ending it must wait. See [`crate::session`].
pub(crate) const SESSION: &str = "SELECT 1 FROM sessions WHERE epoch = $1 AND NOT ended FOR KEY SHARE";

const INSERT_RUNS: &str = "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, \
        wake_at, parent, scope, tags, current_node, error_code, busy, root, memory_scope, workspace_scope, origin, \
        origin_run, origin_seq, summary, diverged, over_budget, cost_usd, owner)
    SELECT id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, parent, scope, \
        tags::TEXT[], current_node, error_code, busy, root, memory_scope, workspace_scope, origin, origin_run, \
        origin_seq, summary, diverged, over_budget, cost_usd, $26
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], \
        $9::BIGINT[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::BOOLEAN[], $16::TEXT[], \
        $17::TEXT[], $18::TEXT[], $19::TEXT[], $20::TEXT[], $21::BIGINT[], $22::TEXT[], $23::BOOLEAN[], \
        $24::BOOLEAN[], $25::DOUBLE PRECISION[]) \
        WITH ORDINALITY AS new (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, \
        parent, scope, tags, current_node, error_code, busy, root, memory_scope, workspace_scope, origin, origin_run, \
        origin_seq, summary, diverged, over_budget, cost_usd, place)
    ORDER BY place";

fn insert_runs<'a>(created: &[&Created<'a>], me: u64) -> Statement<'a> {
    let rows = || created.iter().map(|created| created.row);
    let latest = || created.iter().map(|created| created.latest);
    let own_scope = |row: &'a RunRow| {
        let named = row.memory_scope != rows::default_memory_scope(row);
        if named { row.memory_scope.as_str() } else { "" }
    };
    let own_workspace = |row: &'a RunRow| match row.workspace_scope.as_str() {
        DEFAULT_WORKSPACE => "",
        named => named,
    };
    Statement::new(INSERT_RUNS)
        .texts(rows().map(|row| row.id.as_str()))
        .texts(rows().map(|row| row.tenant.as_str()))
        .texts(rows().map(|row| row.workflow.as_str()))
        .texts(rows().map(|row| row.digest.as_str()))
        .texts(latest().map(|row| row.status.as_str()))
        .list(rows().map(|row| row.created_at.as_micros()))
        .list(latest().map(|row| row.updated_at.as_micros()))
        .list(created.iter().map(|created| rows::integer(created.next_seq)))
        .list(latest().map(|row| row.wake_at.map(Timestamp::as_micros)))
        .maybe_texts(rows().map(|row| row.parent.as_ref().map(RunId::as_str)))
        .maybe_texts(rows().map(|row| row.scope.as_deref()))
        .lists(rows().map(|row| row.tags.as_slice()))
        .maybe_texts(latest().map(|row| row.current_node.as_ref().map(NodeId::as_str)))
        .maybe_texts(latest().map(|row| row.error_code.as_deref()))
        .list(latest().map(|row| row.busy))
        .maybe_texts(rows().map(|row| row.root.as_ref().map(RunId::as_str)))
        .texts(rows().map(own_scope))
        .texts(rows().map(own_workspace))
        .list(rows().map(|row| row.origin.as_ref().and_then(|origin| serde_json::to_string(origin).ok())))
        .maybe_texts(rows().map(|row| row.origin.as_ref().map(|origin| origin.source.as_str())))
        .list(rows().map(|row| row.origin.as_ref().map_or(0, |origin| rows::integer(origin.seq))))
        .maybe_texts(latest().map(|row| row.summary.as_deref()))
        .list(latest().map(|row| Told::by(row).diverged))
        .list(latest().map(|row| Told::by(row).over_budget))
        .list(latest().map(|row| Told::by(row).cost_usd))
        .value(rows::integer(me))
        .touching(created.len())
}

/// Roots that somebody else owns.
const FOREIGN_ROOTS: &str = "SELECT 1 FROM runs WHERE id = ANY($1) AND owner <> $2";

const DROP_LOGS: &str = "DELETE FROM events WHERE run = ANY($1)";
const MARK_PRUNED: &str = "UPDATE runs SET pruned_at = new.at, pruned_log = runs.pruned_log OR new.log
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BOOLEAN[]) AS new (id, at, log) WHERE runs.id = new.id";

const INSERT_RECORDS: &str = "INSERT INTO events (run, seq, at, kind, body, private, memory, workspace, part, epoch)
    SELECT run, seq, at, kind, body, private, memory, workspace, part, $10
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::BIGINT[], \
        $8::BIGINT[], $9::SMALLINT[]) AS new (run, seq, at, kind, body, private, memory, workspace, part)";

fn insert_records<'a>(records: &BTreeMap<&'a RunId, Vec<&'a StoredRecord>>, me: u64) -> Statement<'a> {
    let all = || records.iter().flat_map(|(run, records)| records.iter().map(|record| (*run, *record)));
    Statement::new(INSERT_RECORDS)
        .texts(all().map(|(run, _)| run.as_str()))
        .list(all().map(|(_, record)| rows::integer(record.seq)))
        .list(all().map(|(_, record)| record.at.as_micros()))
        .texts(all().map(|(_, record)| record.kind.as_str()))
        .texts(all().map(|(_, record)| record.body.as_str()))
        .maybe_texts(all().map(|(_, record)| record.private.as_deref()))
        .list(all().map(|(_, record)| rows::integer(record.versions.memory)))
        .list(all().map(|(_, record)| rows::integer(record.versions.workspace)))
        .list(all().map(|(_, record)| record.part.map(rows::part)))
        .value(rows::integer(me))
}

/// Finds a run only where it is expected, and only if it is ours: the guard of every log.
const MOVE_RUNS: &str = "UPDATE runs SET next_seq = new.next_seq, updated_at = new.updated_at, status = new.status, \
        wake_at = new.wake_at, busy = new.busy, current_node = new.current_node, error_code = new.error_code, \
        summary = new.summary, diverged = new.diverged, over_budget = new.over_budget, cost_usd = new.cost_usd
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::BOOLEAN[], \
        $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::BOOLEAN[], $12::BOOLEAN[], $13::DOUBLE PRECISION[]) \
        AS new (id, expected, next_seq, updated_at, status, wake_at, busy, current_node, error_code, summary, \
        diverged, over_budget, cost_usd)
    WHERE runs.id = new.id AND runs.next_seq = new.expected AND runs.owner = $14";

fn move_runs<'a>(moved: &BTreeMap<&'a RunId, Moved<'a>>, me: u64) -> Statement<'a> {
    let rows = || moved.values().map(|moved| moved.row);
    Statement::new(MOVE_RUNS)
        .texts(rows().map(|row| row.id.as_str()))
        .list(moved.values().map(|moved| rows::integer(moved.expected)))
        .list(rows().map(|row| rows::integer(row.next_seq)))
        .list(rows().map(|row| row.updated_at.as_micros()))
        .texts(rows().map(|row| row.status.as_str()))
        .list(rows().map(|row| row.wake_at.map(Timestamp::as_micros)))
        .list(rows().map(|row| row.busy))
        .maybe_texts(rows().map(|row| row.current_node.as_ref().map(NodeId::as_str)))
        .maybe_texts(rows().map(|row| row.error_code.as_deref()))
        .maybe_texts(rows().map(|row| row.summary.as_deref()))
        .list(rows().map(|row| Told::by(row).diverged))
        .list(rows().map(|row| Told::by(row).over_budget))
        .list(rows().map(|row| Told::by(row).cost_usd))
        .value(rows::integer(me))
        .touching(moved.len())
}

const CLOSE: &str = "DELETE FROM interrupts USING unnest($1::TEXT[], $2::TEXT[]) AS gone (run, node)
    WHERE interrupts.run = gone.run AND interrupts.node = gone.node";
const OPEN: &str = "INSERT INTO interrupts (run, node, tenant, workflow, interrupt_id, key, kind, data, requested_at, \
        expires_at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], \
        $8::TEXT[], $9::BIGINT[], $10::BIGINT[])
    ON CONFLICT (run, node) DO UPDATE SET tenant = excluded.tenant, workflow = excluded.workflow, \
        interrupt_id = excluded.interrupt_id, key = excluded.key, kind = excluded.kind, data = excluded.data, \
        requested_at = excluded.requested_at, expires_at = excluded.expires_at";

fn put_interrupts<'a>(open: &[&'a InterruptRow]) -> Statement<'a> {
    let rows = || open.iter().copied();
    Statement::new(OPEN)
        .texts(rows().map(|row| row.run.as_str()))
        .texts(rows().map(|row| row.node.as_str()))
        .texts(rows().map(|row| row.tenant.as_str()))
        .texts(rows().map(|row| row.workflow.as_str()))
        .texts(rows().map(|row| row.interrupt_id.as_str()))
        .texts(rows().map(|row| row.key.as_str()))
        .texts(rows().map(|row| row.kind.as_str()))
        .list(rows().map(|row| row.data.to_string()))
        .list(rows().map(|row| row.requested_at.as_micros()))
        .list(rows().map(|row| row.expires_at.map(Timestamp::as_micros)))
}

const PUT_BLOBS: &str = "INSERT INTO blobs (digest, bytes) SELECT * FROM unnest($1::TEXT[], $2::BYTEA[])
    ON CONFLICT (digest) DO NOTHING";
const PUT_WORKFLOWS: &str = "INSERT INTO workflows (tenant, id, version, digest, name, created_at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[])
    ON CONFLICT (tenant, id, version) DO UPDATE SET digest = excluded.digest, name = excluded.name, \
        created_at = excluded.created_at";
const PRUNE_REPLIES: &str = "DELETE FROM replies WHERE expires_at < $1";
const DELETE_REPLIES: &str = "DELETE FROM replies WHERE key = ANY($1)";
const PUT_REPLIES: &str = "INSERT INTO replies (key, request, status, body, expires_at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::INTEGER[], $4::TEXT[], $5::BIGINT[])
    ON CONFLICT (key) DO UPDATE SET request = excluded.request, status = excluded.status, body = excluded.body, \
        expires_at = excluded.expires_at";

const DROP_DELIVERIES: &str = "DELETE FROM deliveries WHERE webhook = ANY($1)";
const DELETE_WEBHOOKS: &str = "DELETE FROM webhooks WHERE id = ANY($1)";
const PUT_WEBHOOKS: &str = "INSERT INTO webhooks (id, tenant, url, events, tags, secret, status, \
        consecutive_failures, failures, window_start, open_until, created_at)
    SELECT id, tenant, url, events::TEXT[], tags::TEXT[], secret, status, consecutive_failures, failures, \
        window_start, open_until, created_at
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::BIGINT[], \
        $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[]) AS new (id, tenant, url, events, tags, secret, \
        status, consecutive_failures, failures, window_start, open_until, created_at)
    ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, url = excluded.url, events = excluded.events, \
        tags = excluded.tags, secret = excluded.secret, status = excluded.status, \
        consecutive_failures = excluded.consecutive_failures, failures = excluded.failures, \
        window_start = excluded.window_start, open_until = excluded.open_until, created_at = excluded.created_at";

const UPDATE_WEBHOOKS: &str = "UPDATE webhooks SET tenant = new.tenant, url = new.url, \
        events = new.events::TEXT[], tags = new.tags::TEXT[], secret = new.secret, status = new.status, \
        consecutive_failures = new.consecutive_failures, failures = new.failures, window_start = new.window_start, \
        open_until = new.open_until, created_at = new.created_at
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::TEXT[], $7::TEXT[], $8::BIGINT[], \
        $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[]) AS new (id, tenant, url, events, tags, secret, \
        status, consecutive_failures, failures, window_start, open_until, created_at)
    WHERE webhooks.id = new.id";

fn put_webhooks<'a>(sql: &'static str, kept: &[&'a Webhook]) -> Statement<'a> {
    let rows = || kept.iter().copied();
    Statement::new(sql)
        .texts(rows().map(|row| row.id.as_str()))
        .texts(rows().map(|row| row.tenant.as_str()))
        .texts(rows().map(|row| row.url.as_str()))
        .lists(rows().map(|row| row.events.as_slice()))
        .lists(rows().map(|row| row.tags.as_slice()))
        .texts(rows().map(|row| row.secret.as_str()))
        .texts(rows().map(|row| rows::webhook_status(row.status)))
        .list(rows().map(|row| i64::from(row.consecutive_failures)))
        .list(rows().map(|row| i64::from(row.failures)))
        .list(rows().map(|row| row.window_start.as_micros()))
        .list(rows().map(|row| row.open_until.map(Timestamp::as_micros)))
        .list(rows().map(|row| row.created_at.as_micros()))
}

const DELETE_DELIVERIES: &str =
    "DELETE FROM deliveries USING unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[]) AS gone (webhook, run, seq)
    WHERE deliveries.webhook = gone.webhook AND deliveries.run = gone.run AND deliveries.seq = gone.seq";
const PUT_DELIVERIES: &str = "INSERT INTO deliveries (webhook, run, seq, attempts, due_at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::BIGINT[], $5::BIGINT[])
    ON CONFLICT (webhook, run, seq) DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at";

const GIVE_ROOT: &str = "UPDATE runs SET owner = $3 WHERE id = $1 AND owner = $2";
const GIVE_TREE: &str = "UPDATE runs SET owner = $3 WHERE root = $1 AND root IS NOT NULL AND owner = $2";
const RELEASE: &str = "DELETE FROM claims WHERE name = ANY($1) AND epoch = $2";
const ANSWER: &str = "UPDATE inbox SET answer = new.answer, answered_at = now()
    FROM unnest($1::TEXT[], $2::TEXT[]) AS new (id, answer) WHERE inbox.id = new.id AND inbox.answered_at IS NULL";
