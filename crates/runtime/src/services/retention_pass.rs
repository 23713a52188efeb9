//! Pruning by the operator's rules, now and then, in small parts. One host at a time; one that is cut short goes on with the
//! next pass, for what is pruned is not found again.

use std::sync::Arc;

use baton_model::{RunId, TenantId};
use baton_store::{KeptTree, RunPlace, Store};

use crate::clock::Clock;
use crate::cluster::claims::Claims;
use crate::journal::lane::Lane;
use crate::retention_rules::{RetentionReason, Walk};
use crate::services::retention::Retention;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Options};

/// How far passes are apart. What is to go may stay a little longer.
const EVERY_MS: u64 = 10 * 60 * 1000;
/// How long after its start a host begins: it has other things to do first.
const FIRST_MS: u64 = 60 * 1000;
/// Trees that are looked at with one question.
const PAGE: usize = 500;
/// Tenants that are named by one.
const TENANTS: usize = 500;
/// What a record takes where the store cannot say.
const RECORD_BYTES: u64 = 1024;
/// While one host is at it, the others leave it alone.
const CLAIM: &str = "retention";

/// A tree that the rules do not keep.
#[derive(Clone, Debug, PartialEq)]
pub struct DueTree {
    pub tree: KeptTree,
    pub reason: RetentionReason,
}

/// What one pass over a tenant took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionReport {
    pub trees: u64,
    pub runs: u64,
    pub records: u64,
    /// Kept though the rules say otherwise: something else begins with its log.
    pub needed: u64,
}

/// Applies the operator's rules.
pub(crate) struct RetentionPass {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) retention: Arc<Retention>,
    pub(crate) tasks: Arc<Tasks>,
}

impl RetentionPass {
    pub(crate) async fn keep_pruning(self: &Arc<Self>) {
        let mut next = self.clock.now().plus_millis(FIRST_MS);
        loop {
            tokio::select! {
                biased;
                () = self.clock.until(next) => {}
                () = self.tasks.stop.cancelled() => return,
            }
            if let Err(error) = self.claims.alone(CLAIM, Lane::Host, self.prune_all()).await {
                tracing::debug!(%error, "retention is left to the next pass");
            }
            next = self.clock.now().plus_millis(EVERY_MS);
        }
    }

    async fn prune_all(&self) -> Result<(), Error> {
        let mut after: Option<TenantId> = None;
        loop {
            let tenants = self.store.tenants(after.as_ref(), TENANTS).await?;
            let Some(last) = tenants.last().cloned() else { return Ok(()) };
            for tenant in &tenants {
                self.prune_due(tenant).await?;
            }
            after = Some(last);
        }
    }

    /// Prunes what the rules do not keep of one tenant.
    pub(crate) async fn prune_due(&self, tenant: &TenantId) -> Result<RetentionReport, Error> {
        let mut report = RetentionReport::default();
        let mut walk = self.walk().await?;
        let mut before = self.begin();
        loop {
            let (due, next) = self.due(tenant, &mut walk, before).await?;
            self.prune_some(tenant, &due, &mut report).await?;
            before = next;
            if before.is_none() || self.tasks.stop.is_cancelled() {
                return Ok(report);
            }
            // Others may want the thread.
            tokio::task::yield_now().await;
        }
    }

    /// What [`Self::prune_due`] would prune now, newest first, up to a bound; and whether there is more.
    pub(crate) async fn would_prune(&self, tenant: &TenantId, limit: usize) -> Result<(Vec<DueTree>, bool), Error> {
        let (mut all, mut before) = (Vec::new(), self.begin());
        let mut walk = self.walk().await?;
        loop {
            let (due, next) = self.due(tenant, &mut walk, before).await?;
            for due in due {
                match self.retention.prunable(tenant, &due.tree.id, true).await {
                    Ok(_) if all.len() == limit => return Ok((all, true)),
                    Ok(_) => all.push(due),
                    Err(error) if error.kind == ErrorKind::Conflict => {}
                    Err(error) => return Err(error),
                }
            }
            before = next;
            if before.is_none() {
                return Ok((all, false));
            }
        }
    }

    async fn walk(&self) -> Result<Walk<'_>, Error> {
        let each = self.store.record_bytes().await?.unwrap_or(RECORD_BYTES);
        Ok(Walk::new(&self.options.retention, self.clock.now(), each))
    }

    fn begin(&self) -> Option<RunPlace> {
        let newest = self.options.retention.newest(self.clock.now());
        Some(newest.map_or(RunPlace::NEWEST, |created_at| RunPlace { created_at, position: 0 }))
    }

    /// What the rules do not keep of the next trees, and where to go on, unless these were the last.
    async fn due(
        &self,
        tenant: &TenantId,
        walk: &mut Walk<'_>,
        before: Option<RunPlace>,
    ) -> Result<(Vec<DueTree>, Option<RunPlace>), Error> {
        let trees = self.store.kept_trees(tenant, before, PAGE).await?;
        let next = trees.last().filter(|_| trees.len() == PAGE).map(|tree| tree.place);
        let judged = trees.into_iter().filter_map(|tree| walk.judge(&tree).map(|reason| DueTree { tree, reason }));
        Ok((judged.collect(), next))
    }

    async fn prune_some(&self, tenant: &TenantId, due: &[DueTree], report: &mut RetentionReport) -> Result<(), Error> {
        if due.is_empty() {
            return Ok(());
        }
        let ids: Vec<RunId> = due.iter().map(|due| due.tree.id.clone()).collect();
        let told = self.retention.prune_many(tenant, &ids, true).await?;
        let (mut trees, mut runs, mut records, mut needed) = (0, 0, 0, 0);
        for (id, pruned) in told {
            let Some(due) = due.iter().find(|due| due.tree.id == id) else { continue };
            match pruned {
                Ok(pruned) => {
                    trees += 1;
                    runs += pruned.runs as u64;
                    records += due.tree.records;
                    let reason = due.reason.as_str();
                    metrics::counter!("baton_retention_pruned_trees_total", "reason" => reason).increment(1);
                    tracing::debug!(%tenant, run = %id, runs = pruned.runs, reason, "pruned by retention");
                }
                Err(error) => {
                    needed += 1;
                    tracing::debug!(%tenant, run = %id, %error, "kept though retention would prune it");
                }
            }
        }
        metrics::counter!("baton_retention_pruned_records_total").increment(records);
        if trees > 0 {
            let (newest, oldest) = (due.first().map(|due| &due.tree.id), due.last().map(|due| &due.tree.id));
            let (newest, oldest) = (newest.map(RunId::as_str), oldest.map(RunId::as_str));
            tracing::info!(%tenant, trees, runs, records, newest, oldest, "retention pruned ended runs");
        }
        report.trees += trees;
        report.runs += runs;
        report.records += records;
        report.needed += needed;
        Ok(())
    }
}
