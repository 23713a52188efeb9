//! What two runs did differently, and what memory and files looked like at a record: pure functions of logs.

use std::sync::Arc;

use baton_engine::snapshot;
use baton_model::RunSnapshot;
use baton_store::{Change, ReadView, RunRow, StoredRecord, VersionedStoreId};
use serde_json::{Map, Value, json};

use crate::history::log::RunLog;
use crate::services::versioned::service::VersionedStores;
use crate::steps::{StepPool, WorkKind};
use crate::{Error, EventDiff, RunDiff, Surroundings};

/// Compares runs, and shows memory and files at a record.
pub(crate) struct RunDiffs {
    pub(crate) log: Arc<RunLog>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl RunDiffs {
    pub(crate) async fn diff(&self, row_a: RunRow, row_b: RunRow) -> Result<RunDiff, Error> {
        let tenant = &row_a.tenant;
        let ended = row_a.status.is_terminal() && row_b.status.is_terminal();
        let (shorter, longer) = (row_a.next_seq.min(row_b.next_seq), row_a.next_seq.max(row_b.next_seq));
        let length = if ended { longer } else { shorter };
        let mut events = Vec::new();
        let mut seq = shared(&row_a, &row_b).min(length);
        while seq < length && events.len() < MOST {
            let (page_a, page_b) = (self.page(&row_a, seq).await?, self.page(&row_b, seq).await?);
            let end = (seq + PAGE as u64).min(length);
            let compare_all = || {
                let pairs = (seq..end).enumerate().map(|(place, seq)| (seq, page_a.get(place), page_b.get(place)));
                pairs.map(|(seq, a, b)| compare(seq, a, b)).collect::<Result<Vec<_>, _>>()
            };
            let compared = self.pool.compute_here(WorkKind::Compare, tenant, compare_all).await??;
            events.extend(compared.into_iter().flatten());
            seq = end;
        }
        let cut = events.len() > MOST;
        events.truncate(MOST);
        let (view_a, view_b) = (self.view_of(&row_a, length).await?, self.view_of(&row_b, length).await?);
        let state = self.pool.compute_here(WorkKind::Compare, tenant, || state_diff(&view_a, &view_b)).await?;
        Ok(RunDiff { diverged_at: events.first().map(|diff| diff.seq), events, state, truncated: !ended || cut })
    }

    async fn view_of(&self, row: &RunRow, length: u64) -> Result<RunSnapshot, Error> {
        let state = self.log.fold_before(&row.id, length).await?.map(|(state, _)| state);
        state.as_ref().and_then(snapshot).ok_or_else(Error::run_not_found)
    }

    async fn page(&self, row: &RunRow, from: u64) -> Result<Vec<StoredRecord>, Error> {
        if from >= row.next_seq { Ok(Vec::new()) } else { self.log.log(row, from, PAGE).await }
    }

    pub(crate) async fn surroundings(&self, row: &RunRow, record: &StoredRecord) -> Result<Surroundings, Error> {
        let memory = VersionedStoreId::memory(&row.tenant, row.memory_scope.clone());
        let workspace = VersionedStoreId::workspace(&row.tenant, row.workspace_scope.clone());
        let entries = self.versioned.items(&memory, &ReadView::at(record.versions.memory, record.at)).await?;
        let lens = ReadView { bare: true, ..ReadView::at(record.versions.workspace, record.at) };
        Ok(Surroundings {
            versions: record.versions,
            memory_scope: row.memory_scope.clone(),
            memory: entries.iter().filter_map(Change::entry).collect(),
            workspace: self.versioned.files_at(&workspace, &lens).await?,
        })
    }
}

/// Records that are compared in one turn.
const PAGE: usize = 500;

/// More differences than anybody reads.
const MOST: usize = 5000;

/// Names and clock readings differ between any two runs and say nothing.
const IGNORED: &[&str] = &[
    "eventId",
    "runId",
    "causationId",
    "correlationId",
    "timestamp",
    "observedAt",
    "occurredAt",
    "emittedAt",
    "writtenAt",
    "_ts",
    "transport",
];

/// A fork and its source are the same up to the fork point: it is the same log.
fn shared(a: &RunRow, b: &RunRow) -> u64 {
    let forked = |fork: &RunRow, source: &RunRow| {
        fork.origin.as_ref().filter(|origin| origin.source == source.id).map(|origin| origin.seq)
    };
    forked(a, b).or_else(|| forked(b, a)).unwrap_or(0)
}

fn compare(seq: u64, a: Option<&StoredRecord>, b: Option<&StoredRecord>) -> Result<Option<EventDiff>, Error> {
    let read = |record: Option<&StoredRecord>| record.map(|record| serde_json::from_str(&record.body)).transpose();
    let unreadable = |error: serde_json::Error| Error::unavailable("A stored event does not read back.").because(error);
    let (a, b): (Option<Value>, Option<Value>) = (read(a).map_err(unreadable)?, read(b).map_err(unreadable)?);
    let same = match (&a, &b) {
        (Some(a), Some(b)) => a["type"] == b["type"] && told(a) == told(b),
        (None, None) => true,
        _ => false,
    };
    Ok((!same).then_some(EventDiff { seq, a, b }))
}

fn told(event: &Value) -> Value {
    let mut told = json!({"nodeId": event["nodeId"], "payload": event["payload"]});
    strip(&mut told);
    told
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|key, _| !IGNORED.contains(&key.as_str()));
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// What differs in how the two stand: `{name: {a, b}}` by kind.
fn state_diff(a: &RunSnapshot, b: &RunSnapshot) -> Map<String, Value> {
    let mut all = Map::new();
    let mut note = |kind: &str, a: Value, b: Value| {
        if a != b {
            all.insert(kind.to_owned(), json!({"a": a, "b": b}));
        }
    };
    note("status", json!(a.status), json!(b.status));
    note("error", json!(a.error), json!(b.error));
    note("outputs", json!(a.outputs), json!(b.outputs));
    for (kind, a, b) in [("variables", &a.variables, &b.variables), ("channels", &a.channels, &b.channels)] {
        let names = a.keys().chain(b.keys());
        let differing: Map<String, Value> = names
            .filter(|name| a.get(*name) != b.get(*name))
            .map(|name| (name.clone(), json!({"a": a.get(name), "b": b.get(name)})))
            .collect();
        if !differing.is_empty() {
            all.insert(kind.to_owned(), Value::Object(differing));
        }
    }
    all
}
