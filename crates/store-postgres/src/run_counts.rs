//! How many runs a tenant has of each status. Counting a few is cheap; counting many is not, and nobody needs to know to the
//! run how many there are.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use baton_model::{RunStatus, TenantId};
use baton_store::Error;
use tokio::sync::Mutex;
use tokio_postgres::Row;

use crate::questions::Questions;
use crate::rows;
use crate::text::written;

/// Up to how many are counted whenever somebody asks.
const COUNTED: i64 = 5000;
/// How long a count of more than that is good for.
const KEPT: Duration = Duration::from_secs(60);
/// Of how many tenants counts are kept. More ask rarely.
const TENANTS: usize = 1000;

const FEW: &str =
    "SELECT status, count(*) FROM (SELECT status FROM runs WHERE tenant = $1 LIMIT $2) few GROUP BY status";
const ALL: &str = "SELECT status, count(*) FROM runs WHERE tenant = $1 GROUP BY status";

/// What was counted lately. One counts at a time, and whoever else asks takes what comes of it.
#[derive(Default)]
pub(crate) struct Counted(Mutex<HashMap<TenantId, (Instant, Counts)>>);

type Counts = Vec<(RunStatus, u64)>;

pub(crate) async fn read(counted: &Counted, questions: &Questions, tenant: &TenantId) -> Result<Counts, Error> {
    let of = written(tenant.as_str());
    let read = |row: &Row| rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)));
    let few = questions.list(FEW, &[&of, &COUNTED], read).await?;
    if few.iter().map(|(_, count)| count).sum::<u64>() < COUNTED.unsigned_abs() {
        return Ok(few);
    }
    let mut counted = counted.0.lock().await;
    if let Some((_, counts)) = counted.get(tenant).filter(|(at, _)| at.elapsed() < KEPT) {
        return Ok(counts.clone());
    }
    let counts = questions.list(ALL, &[&of], read).await?;
    if counted.len() >= TENANTS {
        counted.retain(|_, (at, _)| at.elapsed() < KEPT);
    }
    if counted.len() < TENANTS {
        counted.insert(tenant.clone(), (Instant::now(), counts.clone()));
    }
    Ok(counts)
}
