//! Proving that what is stored is what it should be: a fingerprint of every table, and every run gone through again.

use std::sync::Arc;

use baton_model::Digest;
use baton_runtime::{Host, Options};
use baton_store::archive::{Entry, Table};
use serde::Serialize;

use super::location::{Open, Whole};
use super::read_only::ReadOnlyStore;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;
use crate::output::Output;

/// How often a long pass says how far it has come.
const PROGRESS_EVERY: u64 = 20_000;
const RUNS_PROGRESS_EVERY: u64 = 500;

/// How many rows are held at a time: fewer where one may be large.
pub(super) const fn page_of(table: Table) -> usize {
    match table {
        Table::Blobs => 16,
        Table::Records | Table::Changes => 200,
        _ => 500,
    }
}

/// What a table holds, whatever the order: the number of rows, and the sum of their digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) rows: u64,
    sum: u128,
}

impl Fingerprint {
    pub(super) fn add(&mut self, entry: &Entry) {
        self.rows += 1;
        let digest: Digest = entry.digest();
        let half = digest.as_str().get(..32).and_then(|hex| u128::from_str_radix(hex, 16).ok());
        self.sum = self.sum.wrapping_add(half.unwrap_or_default());
    }

    /// Of one table of a store.
    pub(super) async fn of(location: &Open, table: Table, output: &Output) -> Result<Self, Failure> {
        let mut print = Self::default();
        let mut after = None;
        loop {
            let page = page(location, table, after.as_ref()).await?;
            let before = print.rows;
            page.iter().for_each(|entry| print.add(entry));
            if before / PROGRESS_EVERY != print.rows / PROGRESS_EVERY {
                output.note(format_args!("compared {} {}", print.rows, table.as_str()));
            }
            match page.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(print),
            }
        }
    }

    pub(super) fn hex(&self) -> String {
        format!("{:032x}", self.sum)
    }
}

pub(super) async fn page(location: &Open, table: Table, after: Option<&Entry>) -> Result<Vec<Entry>, Failure> {
    let page = location.whole.page(table, after, page_of(table)).await;
    page.map_err(|error| database_failure(&error).about(table.as_str()))
}

/// What came of going through every run again.
#[derive(Debug, Default, Serialize)]
pub(super) struct Replayed {
    pub(super) equal: u64,
    /// Nothing is left of their logs.
    pub(super) pruned: u64,
    pub(super) different: Vec<String>,
    pub(super) broken: Vec<String>,
}

impl Replayed {
    pub(super) fn exit(&self) -> Exit {
        match (self.different.is_empty(), self.broken.is_empty()) {
            (true, true) => Exit::Ok,
            (false, _) => Exit::Diverged,
            (true, false) => Exit::Failed,
        }
    }

    pub(super) fn sentence(&self) -> String {
        let Self { equal, pruned, different, broken } = self;
        format!(
            "went through every run: {equal} as recorded, {} different, {} broken, {pruned} pruned",
            different.len(),
            broken.len()
        )
    }
}

pub(super) async fn replay(location: &Open, output: &Output) -> Result<Replayed, Failure> {
    let whole: Arc<dyn Whole> = Arc::clone(&location.whole);
    let host = Host::open(Arc::new(ReadOnlyStore(whole)), Options::default())
        .await
        .map_err(|error| Failure::new(Exit::Failed, format!("the data cannot be opened: {error}")))?;
    let mut found = Replayed::default();
    let (mut after, mut gone) = (None, 0_u64);
    loop {
        let runs = page(location, Table::Runs, after.as_ref()).await?;
        for entry in &runs {
            let Entry::Run(row) = entry else { continue };
            if row.pruned.is_some_and(|pruned| pruned.log) {
                found.pruned += 1;
                continue;
            }
            match host.verify(&row.tenant, &row.id).await {
                Ok(verified) if verified.difference.is_none() => found.equal += 1,
                Ok(_) => {
                    output.note(format_args!("{} DIFFERS", row.id));
                    found.different.push(row.id.to_string());
                }
                Err(error) => {
                    output.note(format_args!("{} BROKEN: {error}", row.id));
                    found.broken.push(row.id.to_string());
                }
            }
            gone += 1;
            if gone.is_multiple_of(RUNS_PROGRESS_EVERY) {
                output.note(format_args!("checked {gone} runs"));
            }
        }
        match runs.into_iter().next_back() {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    host.shutdown().await;
    Ok(found)
}
