//! What every start of a run and every look at one wants to know, and so many want to know at the same time.
//!
//! Each key is found by itself and by an index: a plan that is made while a table is small stays right when it is large.

use std::collections::HashMap;
use std::sync::LazyLock;

use baton_model::{RunId, TenantId, WorkflowId};
use baton_store::{Error, RunRow, VersionedStoreId, WorkflowVersion};
use tokio_postgres::Row;

use crate::gather::{Found, Gather, Lookup};
use crate::questions::{Question, Questions};
use crate::rows;
use crate::text::{self, written};

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Run(RunId),
    /// The newest version of a tenant's workflow.
    Workflow(TenantId, WorkflowId),
    /// Where a memory scope or workspace stands.
    VersionedStore(VersionedStoreId),
}

#[derive(Clone)]
pub(crate) enum Value {
    Run(Box<RunRow>),
    Workflow(WorkflowVersion),
    Version(u64),
}

pub(crate) struct Lookups(pub(crate) Questions);

impl Gather<Lookups> {
    pub(crate) async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        Ok(match self.ask(Key::Run(run.clone())).await? {
            Some(Value::Run(row)) => Some(*row),
            _ => None,
        })
    }

    pub(crate) async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        Ok(match self.ask(Key::Workflow(tenant.clone(), id.clone())).await? {
            Some(Value::Workflow(version)) => Some(version),
            _ => None,
        })
    }

    pub(crate) async fn versioned_head(&self, ledger: &VersionedStoreId) -> Result<u64, Error> {
        Ok(match self.ask(Key::VersionedStore(ledger.clone())).await? {
            Some(Value::Version(version)) => version,
            _ => 0,
        })
    }
}

const WORKFLOWS: &str = "SELECT found.tenant, coalesce(found.long_id, found.id), version, digest, name, created_at, sum
    FROM unnest($1::TEXT[], $2::TEXT[]) AS asked (tenant, id)
    CROSS JOIN LATERAL (SELECT * FROM workflows WHERE tenant = asked.tenant AND id = asked.id
        ORDER BY version DESC LIMIT 1) found";
const LEDGERS: &str = "SELECT found.ledger, version FROM unnest($1::BYTEA[]) AS asked (key)
    CROSS JOIN LATERAL (SELECT ledger, version FROM ledgers WHERE ledger = asked.key LIMIT 1) found";

static RUNS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {} FROM unnest($1::TEXT[]) AS asked (key)
         CROSS JOIN LATERAL (SELECT * FROM runs WHERE id = asked.key LIMIT 1) found",
        rows::columns::<RunRow>()
    )
});

impl Lookup for Lookups {
    type Key = Key;
    type Value = Value;

    async fn look(&self, keys: Vec<Key>) -> Result<Found<Self>, Error> {
        let (mut ids, mut tenants, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let mut ledgers = HashMap::new();
        for key in &keys {
            match key {
                Key::Run(run) => ids.push(written(run.as_str())),
                Key::Workflow(tenant, id) => {
                    tenants.push(written(tenant.as_str()));
                    names.push(text::key(id.as_str()));
                }
                Key::VersionedStore(ledger) => drop(ledgers.insert(rows::versioned_key(ledger), ledger)),
            }
        }
        let digests: Vec<&Vec<u8>> = ledgers.keys().collect();
        let all = [
            (ids.is_empty(), Question { sql: &RUNS, values: &[&ids] }, run as Read),
            (names.is_empty(), Question { sql: WORKFLOWS, values: &[&tenants, &names] }, workflow),
            (digests.is_empty(), Question { sql: LEDGERS, values: &[&digests] }, ledger),
        ];
        let wanted: Vec<_> = all.iter().filter(|(nothing, ..)| !nothing).collect();
        let questions: Vec<Question<'_>> = wanted.iter().map(|(_, question, _)| *question).collect();
        let mut found = HashMap::with_capacity(keys.len());
        for (answer, (.., read)) in self.0.ask_all(&questions).await?.iter().zip(wanted) {
            for row in answer {
                let (key, value) = read(row, &ledgers)?;
                found.insert(key, value);
            }
        }
        Ok(found)
    }
}

type VersionedStores<'a> = HashMap<Vec<u8>, &'a VersionedStoreId>;
/// The key of a row, and the rest of it if that reads back.
type Read = fn(&Row, &VersionedStores<'_>) -> Result<(Key, Result<Value, Error>), Error>;

fn run(row: &Row, _: &VersionedStores<'_>) -> Result<(Key, Result<Value, Error>), Error> {
    Ok((Key::Run(rows::run_id(row)?), rows::stored(row).map(|run| Value::Run(Box::new(run)))))
}

fn workflow(row: &Row, _: &VersionedStores<'_>) -> Result<(Key, Result<Value, Error>), Error> {
    let key = rows::fields(row, |row| {
        let tenant = TenantId::new(row.text("tenant")?);
        Ok(Key::Workflow(tenant, WorkflowId::new(row.text("id")?)))
    });
    Ok((key?, rows::stored(row).map(Value::Workflow)))
}

fn ledger(row: &Row, ledgers: &VersionedStores<'_>) -> Result<(Key, Result<Value, Error>), Error> {
    let (digest, version) = rows::fields(row, |row| Ok((row.bytes("ledger")?, row.count("version")?)))?;
    let named = ledgers.get(&digest).ok_or_else(|| crate::error::unavailable("an answer that nobody asked for"))?;
    Ok((Key::VersionedStore((*named).clone()), Ok(Value::Version(version))))
}
