//! Runs and their records.

use std::collections::BTreeMap;

use baton_model::{NodeId, RunId, Timestamp};
use baton_store::codec::{Existing, NewRun, integer, moved_sum, pruned_sum};
use baton_store::{Checksum, Pruned, StoredRecord};

use super::{Moved, Plan};
use crate::insert;
use crate::statement::Statement;
use crate::summary::Told;

impl<'a> Plan<'a> {
    pub(super) fn runs(&self, all: &mut Vec<Statement<'a>>) {
        let created: Vec<NewRun<'a>> = self.order.iter().filter_map(|id| self.created.get(*id).copied()).collect();
        if !created.is_empty() {
            all.push(insert::runs(Existing::Refuse, &created, self.me));
            all.extend(insert::tags(&created));
            // A child belongs to whoever owns its tree.
            let roots = created.iter().filter_map(|created| created.row.root.as_ref());
            let mut roots: Vec<&str> =
                roots.filter(|root| !self.created.contains_key(root)).map(RunId::as_str).collect();
            roots.sort_unstable();
            roots.dedup();
            if self.me != 0 && !roots.is_empty() {
                all.push(Statement::new(FOREIGN_ROOTS).texts(roots).value(integer(self.me)).touching(0));
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
            let of_run = |(run, records): (&&'a RunId, &Vec<&'a StoredRecord>)| {
                let run = *run;
                records.iter().map(move |record| (run, *record)).collect::<Vec<_>>()
            };
            let records: Vec<_> = self.records.iter().flat_map(of_run).collect();
            all.push(insert::records(Existing::Refuse, &records, self.me));
        }
        if !self.moved.is_empty() {
            all.push(move_runs(&self.moved, self.me));
        }
        if !self.first.is_empty() {
            all.push(
                Statement::new(FIRST_VERSIONS)
                    .texts(self.first.keys().map(|run| run.as_str()))
                    .list(self.first.values().map(|first| integer(first.memory)))
                    .list(self.first.values().map(|first| integer(first.workspace))),
            );
        }
        if !self.pruned.is_empty() {
            all.push(
                Statement::new(MARK_PRUNED)
                    .texts(self.pruned.keys().map(|run| run.as_str()))
                    .list(self.pruned.values().map(|pruned| pruned.at.as_micros()))
                    .list(self.pruned.values().map(|pruned| pruned.log))
                    .list(self.pruned.iter().map(|(run, pruned)| pruned_sum(run, Pruned { log: true, ..*pruned })))
                    .list(self.pruned.iter().map(|(run, pruned)| pruned_sum(run, Pruned { log: false, ..*pruned }))),
            );
        }
        if !self.dropped_logs.is_empty() {
            let dropped = self.dropped_logs.iter().map(|run| run.as_str());
            all.push(Statement::new(NEEDED_LOGS).texts(dropped).touching(0));
        }
    }
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
pub(super) const MARK_PRUNED: &str = "UPDATE runs SET pruned_at = new.at, pruned_log = runs.pruned_log OR new.log,
        pruned_sum = CASE WHEN runs.pruned_log OR new.log THEN new.with_log ELSE new.without END
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BOOLEAN[], $4::BIGINT[], $5::BIGINT[]) AS new (id, at, log, with_log, without)
    WHERE runs.id = new.id";

pub(super) const FIRST_VERSIONS: &str = "UPDATE runs SET first_memory = new.memory, first_workspace = new.workspace
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[]) AS new (id, memory, workspace)
    WHERE runs.id = new.id AND runs.first_memory IS NULL";

/// Finds a run only where it is expected, and only if it is ours: the guard of every log.
pub(super) const MOVE_RUNS: &str =
    "UPDATE runs SET next_seq = new.next_seq, updated_at = new.updated_at, status = new.status, \
        wake_at = new.wake_at, busy = new.busy, current_node = new.current_node, error_code = new.error_code, \
        summary = new.summary, diverged = new.diverged, over_budget = new.over_budget, cost_usd = new.cost_usd, \
        chain = new.chain, sum = new.sum
    FROM unnest($1::TEXT[], $2::BIGINT[], $3::BIGINT[], $4::BIGINT[], $5::TEXT[], $6::BIGINT[], $7::BOOLEAN[], \
        $8::TEXT[], $9::TEXT[], $10::TEXT[], $11::BOOLEAN[], $12::BOOLEAN[], $13::DOUBLE PRECISION[], $14::BYTEA[], \
        $15::BIGINT[]) \
        AS new (id, expected, next_seq, updated_at, status, wake_at, busy, current_node, error_code, summary, \
        diverged, over_budget, cost_usd, chain, sum)
    WHERE runs.id = new.id AND runs.next_seq = new.expected AND runs.owner = $16
    RETURNING 1";

fn move_runs<'a>(moved: &BTreeMap<&'a RunId, Moved<'a>>, me: u64) -> Statement<'a> {
    let rows = || moved.values().map(|moved| moved.row);
    let told: Vec<Told> = rows().map(Told::by).collect();
    Statement::new(MOVE_RUNS)
        .texts(rows().map(|row| row.id.as_str()))
        .list(moved.values().map(|moved| integer(moved.expected)))
        .list(rows().map(|row| integer(row.next_seq)))
        .list(rows().map(|row| row.updated_at.as_micros()))
        .texts(rows().map(|row| row.status.as_str()))
        .list(rows().map(|row| row.wake_at.map(Timestamp::as_micros)))
        .list(rows().map(|row| row.busy))
        .maybe_texts(rows().map(|row| row.current_node.as_ref().map(NodeId::as_str)))
        .maybe_texts(rows().map(|row| row.error_code.as_deref()))
        .maybe_texts(rows().map(|row| row.summary.as_deref()))
        .list(told.iter().map(|told| told.diverged))
        .list(told.iter().map(|told| told.over_budget))
        .list(told.iter().map(|told| told.cost_usd))
        .list(rows().map(|row| row.chain.head.as_ref().map(Checksum::as_bytes)))
        .list(rows().map(moved_sum))
        .value(integer(me))
        .touching(moved.len())
}
