//! What two runs did differently, and what memory and files looked like at a record: pure functions of logs.

use std::collections::BTreeSet;
use std::io;
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
    /// From a sequence on: what differs before it is not told again.
    pub(crate) async fn diff(&self, row_a: RunRow, row_b: RunRow, from: u64) -> Result<RunDiff, Error> {
        let tenant = &row_a.tenant;
        let ended = row_a.status.is_terminal() && row_b.status.is_terminal();
        let (shorter, longer) = (row_a.next_seq.min(row_b.next_seq), row_a.next_seq.max(row_b.next_seq));
        let length = if ended { longer } else { shorter };
        let mut events = Vec::new();
        let mut seq = shared(&row_a, &row_b).max(from).min(length);
        let mut left = EVENT_BYTES;
        let mut cut = false;
        while seq < length && !cut {
            let (page_a, page_b) = (self.page(&row_a, seq).await?, self.page(&row_b, seq).await?);
            let end = compared_up_to(seq, (&row_a, &page_a), (&row_b, &page_b)).min(length);
            let compare_all = || {
                let pairs = (seq..end).enumerate().map(|(place, seq)| (seq, page_a.get(place), page_b.get(place)));
                pairs.map(|(seq, a, b)| Ok((weight(a) + weight(b), compare(seq, a, b)?))).collect::<Result<Vec<_>, _>>()
            };
            let compared: Result<Vec<_>, Error> =
                self.pool.compute_here(WorkKind::Compare, tenant, compare_all).await?;
            for (weight, diff) in compared? {
                let Some(diff) = diff else { continue };
                // The first is told whatever it weighs, so that whoever goes on behind the last one gets on.
                let fits = left.checked_sub(weight).or_else(|| events.is_empty().then_some(0));
                let Some(rest) = fits.filter(|_| events.len() < MOST) else {
                    cut = true;
                    break;
                };
                left = rest;
                events.push(diff);
            }
            seq = end;
        }
        let (view_a, view_b) = (self.view_of(&row_a, length).await?, self.view_of(&row_b, length).await?);
        let (state, left_out) =
            self.pool.compute_here(WorkKind::Compare, tenant, || state_diff(&view_a, &view_b)).await?;
        let truncated = !ended || cut || left_out;
        Ok(RunDiff { diverged_at: events.first().map(|diff| diff.seq), events, state, truncated })
    }

    async fn view_of(&self, row: &RunRow, length: u64) -> Result<RunSnapshot, Error> {
        let state = self.log.fold_before(&row.id, length).await?.map(|(state, _)| state);
        state.as_ref().and_then(snapshot).ok_or_else(Error::run_not_found)
    }

    async fn page(&self, row: &RunRow, from: u64) -> Result<Vec<StoredRecord>, Error> {
        if from >= row.next_seq { Ok(Vec::new()) } else { self.log.log_within(row, from, PAGE, PAGE_BYTES).await }
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

/// What a page of each run may weigh.
const PAGE_BYTES: usize = 1024 * 1024;

/// More differences than anybody reads.
const MOST: usize = 5000;

/// What the events that differ may weigh together, and then what differs in the state: an answer is held until its
/// reader has it.
const EVENT_BYTES: usize = 1024 * 1024;
const STATE_BYTES: usize = 1024 * 1024;

fn weight(record: Option<&StoredRecord>) -> usize {
    record.map_or(0, |record| record.body.len())
}

/// How far both pages reach. A run that is over reaches as far as the other.
fn compared_up_to(seq: u64, a: (&RunRow, &[StoredRecord]), b: (&RunRow, &[StoredRecord])) -> u64 {
    let reach = |(row, page): (&RunRow, &[StoredRecord])| match seq + page.len() as u64 {
        end if end < row.next_seq && !page.is_empty() => end,
        _ => u64::MAX,
    };
    // Where neither has more, the caller's length is the end.
    reach(a).min(reach(b))
}

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

/// What differs in how the two stand: `{name: {a, b}}` by kind. And whether some of it was left out, as it does not fit
/// an answer: the runs themselves have it.
fn state_diff(a: &RunSnapshot, b: &RunSnapshot) -> (Map<String, Value>, bool) {
    let mut all = Map::new();
    let (mut left, mut left_out) = (STATE_BYTES, false);
    let mut fits = |pair: &Value| {
        let rest = left.checked_sub(written_size(pair));
        left_out |= rest.is_none();
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let mut note = |kind: &str, a: Value, b: Value| {
        let pair = json!({"a": a, "b": b});
        if pair["a"] != pair["b"] && fits(&pair) {
            all.insert(kind.to_owned(), pair);
        }
    };
    note("status", json!(a.status), json!(b.status));
    note("error", json!(a.error), json!(b.error));
    note("outputs", json!(a.outputs), json!(b.outputs));
    for (kind, a, b) in [("variables", &a.variables, &b.variables), ("channels", &a.channels, &b.channels)] {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let differing: Map<String, Value> = names
            .into_iter()
            .filter(|name| a.get(*name) != b.get(*name))
            .map(|name| (name.clone(), json!({"a": a.get(name), "b": b.get(name)})))
            .filter(|(_, pair)| fits(pair))
            .collect();
        if !differing.is_empty() {
            all.insert(kind.to_owned(), Value::Object(differing));
        }
    }
    (all, left_out)
}

/// How long a value is as text, without writing it anywhere.
fn written_size(value: &Value) -> usize {
    struct Counted(usize);
    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // Counting cannot fail, and values always serialise.
    let _ = serde_json::to_writer(&mut counted, value);
    counted.0
}
