//! What every start of a run and every look at one wants to know, and so many want to know at the same time.
//!
//! Each key is found by itself and by an index: a plan that is made while a table is small stays right when it is large.

use std::collections::HashMap;
use std::sync::Arc;

use baton_model::{RunId, TenantId, WorkflowId};
use baton_store::{Error, LedgerId, RunRow, WorkflowVersion};

use crate::gather::{Found, Lookup};
use crate::questions::Questions;
use crate::rows;
use crate::text::written;

pub(crate) struct Runs(pub(crate) Arc<Questions>);

impl Lookup for Runs {
    type Key = RunId;
    type Value = RunRow;

    async fn look(&self, keys: Vec<RunId>) -> Result<Found<Self>, Error> {
        let sql = format!(
            "SELECT {} FROM unnest($1::TEXT[]) AS asked (key)
             CROSS JOIN LATERAL (SELECT * FROM runs WHERE id = asked.key LIMIT 1) found",
            rows::RUN
        );
        let ids: Vec<_> = keys.iter().map(|run| written(run.as_str())).collect();
        let read = |row: &_| Ok((RunId::new(rows::text(row, 1)?), rows::run(row).map(|(_, run)| run)));
        Ok(self.0.list(&sql, &[&ids], read).await?.into_iter().collect())
    }
}

/// The newest version of a tenant's workflow.
pub(crate) struct Workflows(pub(crate) Arc<Questions>);

impl Lookup for Workflows {
    type Key = (TenantId, WorkflowId);
    type Value = WorkflowVersion;

    async fn look(&self, keys: Vec<Self::Key>) -> Result<Found<Self>, Error> {
        let sql = "SELECT found.tenant, found.id, version, digest, name, created_at
            FROM unnest($1::TEXT[], $2::TEXT[]) AS asked (tenant, id)
            CROSS JOIN LATERAL (SELECT * FROM workflows WHERE tenant = asked.tenant AND id = asked.id
                ORDER BY version DESC LIMIT 1) found";
        let tenants: Vec<_> = keys.iter().map(|(tenant, _)| written(tenant.as_str())).collect();
        let ids: Vec<_> = keys.iter().map(|(_, id)| written(id.as_str())).collect();
        let read = |row: &_| {
            let key = (TenantId::new(rows::text(row, 0)?), WorkflowId::new(rows::text(row, 1)?));
            Ok((key, rows::workflow(row)))
        };
        Ok(self.0.list(sql, &[&tenants, &ids], read).await?.into_iter().collect())
    }
}

/// Where a memory scope or workspace stands.
pub(crate) struct LedgerVersions(pub(crate) Arc<Questions>);

impl Lookup for LedgerVersions {
    type Key = LedgerId;
    type Value = u64;

    async fn look(&self, keys: Vec<LedgerId>) -> Result<Found<Self>, Error> {
        let sql = "SELECT found.ledger, version FROM unnest($1::BYTEA[]) AS asked (key)
            CROSS JOIN LATERAL (SELECT ledger, version FROM ledgers WHERE ledger = asked.key LIMIT 1) found";
        let mut named: HashMap<Vec<u8>, LedgerId> = keys.into_iter().map(|id| (rows::ledger_key(&id), id)).collect();
        let asked: Vec<Vec<u8>> = named.keys().cloned().collect();
        let read = |row: &_| Ok((rows::get::<Vec<u8>>(row, 0)?, rows::count(row, 1)));
        let found = self.0.list(sql, &[&asked], read).await?;
        Ok(found.into_iter().filter_map(|(key, version)| Some((named.remove(&key)?, version))).collect())
    }
}
