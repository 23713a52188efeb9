//! Runs and their records.

use std::collections::BTreeMap;

use baton_model::{NodeId, RunId, Timestamp};
use baton_store::{RunRow, StoredRecord};

use super::{Created, Moved, Plan};
use crate::rows;
use crate::statement::Statement;
use crate::summary::Told;
use crate::text;

impl<'a> Plan<'a> {
    pub(super) fn runs(&self, all: &mut Vec<Statement<'a>>) {
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
        let sources = created.iter().filter_map(|created| Some(&created.row.origin.as_ref()?.source));
        let mut sources: Vec<&str> =
            sources.filter(|source| !self.created.contains_key(source)).map(RunId::as_str).collect();
        sources.sort_unstable();
        sources.dedup();
        if !sources.is_empty() {
            // Whoever wants to drop one of these logs waits, and then finds the fork; or has done so, and is found.
            all.push(Statement::new(HOLD_SOURCES).texts(sources.iter().copied()));
            all.push(Statement::new(GONE_SOURCES).texts(sources).touching(0));
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
        if !self.dropped_logs.is_empty() {
            let dropped = self.dropped_logs.iter().map(|run| run.as_str());
            all.push(Statement::new(NEEDED_LOGS).texts(dropped).touching(0));
        }
    }
}

pub(super) const INSERT_RUNS: &str =
    "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, \
        wake_at, parent, scope, tags, current_node, error_code, busy, root, memory_scope, workspace_scope, origin, \
        origin_run, origin_seq, summary, diverged, over_budget, cost_usd, long_workflow, long_scope, \
        long_memory_scope, owner)
    SELECT id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, parent, scope, \
        tags::TEXT[], current_node, error_code, busy, root, memory_scope, workspace_scope, origin, origin_run, \
        origin_seq, summary, diverged, over_budget, cost_usd, long_workflow, long_scope, long_memory_scope, $29
    FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::TEXT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[], \
        $9::BIGINT[], $10::TEXT[], $11::TEXT[], $12::TEXT[], $13::TEXT[], $14::TEXT[], $15::BOOLEAN[], $16::TEXT[], \
        $17::TEXT[], $18::TEXT[], $19::TEXT[], $20::TEXT[], $21::BIGINT[], $22::TEXT[], $23::BOOLEAN[], \
        $24::BOOLEAN[], $25::DOUBLE PRECISION[], $26::TEXT[], $27::TEXT[], $28::TEXT[]) \
        WITH ORDINALITY AS new (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, wake_at, \
        parent, scope, tags, current_node, error_code, busy, root, memory_scope, workspace_scope, origin, origin_run, \
        origin_seq, summary, diverged, over_budget, cost_usd, long_workflow, long_scope, long_memory_scope, place)
    ORDER BY place";

fn insert_runs<'a>(created: &[&Created<'a>], me: u64) -> Statement<'a> {
    let rows = || created.iter().map(|created| created.row);
    let latest = || created.iter().map(|created| created.latest);
    Statement::new(INSERT_RUNS)
        .texts(rows().map(|row| row.id.as_str()))
        .texts(rows().map(|row| row.tenant.as_str()))
        .keys(rows().map(|row| row.workflow.as_str()))
        .texts(rows().map(|row| row.digest.as_str()))
        .texts(latest().map(|row| row.status.as_str()))
        .list(rows().map(|row| row.created_at.as_micros()))
        .list(latest().map(|row| row.updated_at.as_micros()))
        .list(created.iter().map(|created| rows::integer(created.next_seq)))
        .list(latest().map(|row| row.wake_at.map(Timestamp::as_micros)))
        .maybe_texts(rows().map(|row| row.parent.as_ref().map(RunId::as_str)))
        .maybe_keys(rows().map(|row| row.scope.as_deref()))
        .lists(rows().map(|row| row.tags.as_slice()))
        .maybe_texts(latest().map(|row| row.current_node.as_ref().map(NodeId::as_str)))
        .maybe_texts(latest().map(|row| row.error_code.as_deref()))
        .list(latest().map(|row| row.busy))
        .maybe_texts(rows().map(|row| row.root.as_ref().map(RunId::as_str)))
        .keys(rows().map(RunRow::named_memory_scope))
        .texts(rows().map(RunRow::named_workspace_scope))
        .list(rows().map(|row| row.origin.as_ref().and_then(|origin| serde_json::to_string(origin).ok())))
        .maybe_texts(rows().map(|row| row.origin.as_ref().map(|origin| origin.source.as_str())))
        .list(rows().map(|row| row.origin.as_ref().map_or(0, |origin| rows::integer(origin.seq))))
        .maybe_texts(latest().map(|row| row.summary.as_deref()))
        .list(latest().map(|row| Told::by(row).diverged))
        .list(latest().map(|row| Told::by(row).over_budget))
        .list(latest().map(|row| Told::by(row).cost_usd))
        .long_texts(rows().map(|row| row.workflow.as_str()))
        .list(rows().map(|row| row.scope.as_deref().and_then(text::long)))
        .long_texts(rows().map(RunRow::named_memory_scope))
        .value(rows::integer(me))
}

/// Roots that somebody else owns.
pub(super) const FOREIGN_ROOTS: &str = "SELECT 1 FROM runs WHERE id = ANY($1) AND owner <> $2";

/// Waits for, and makes wait, whoever marks these as pruned.
pub(super) const HOLD_SOURCES: &str = "SELECT 1 FROM runs WHERE id = ANY($1) ORDER BY id FOR SHARE";
pub(super) const GONE_SOURCES: &str = "SELECT 1 FROM runs WHERE id = ANY($1) AND pruned_log";
/// Asked after the marks, which lock what is marked: a fork that came before is seen, and one that comes later sees them.
pub(super) const NEEDED_LOGS: &str =
    "SELECT 1 FROM runs WHERE origin_run = ANY($1) AND origin_run IS NOT NULL AND NOT pruned_log";
pub(super) const DROP_LOGS: &str = "DELETE FROM events WHERE run = ANY($1)";
pub(super) const MARK_PRUNED: &str = "UPDATE runs SET pruned_at = new.at, pruned_log = runs.pruned_log OR new.log
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BOOLEAN[]) AS new (id, at, log) WHERE runs.id = new.id";

pub(super) const INSERT_RECORDS: &str =
    "INSERT INTO events (run, seq, at, kind, body, private, memory, workspace, part, epoch)
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
pub(super) const MOVE_RUNS: &str =
    "UPDATE runs SET next_seq = new.next_seq, updated_at = new.updated_at, status = new.status, \
        wake_at = new.wake_at, busy = new.busy, current_node = new.current_node, error_code = new.error_code, \
        summary = new.summary, diverged = new.diverged, over_budget = new.over_budget, cost_usd = new.cost_usd
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::BOOLEAN[], \
        $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::BOOLEAN[], $12::BOOLEAN[], $13::DOUBLE PRECISION[]) \
        AS new (id, expected, next_seq, updated_at, status, wake_at, busy, current_node, error_code, summary, \
        diverged, over_budget, cost_usd)
    WHERE runs.id = new.id AND runs.next_seq = new.expected AND runs.owner = $14
    RETURNING 1";

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
