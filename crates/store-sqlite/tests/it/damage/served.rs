//! A directory with something of everything, and all that is served of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

use baton_model::{Digest, RunId, TenantId};
use baton_store::conformance::everything;
use baton_store::conformance::sample::{put, record, sealed};
use baton_store::reads::*;
use baton_store::{
    Error, InterruptFilter, ReadView, RunFilter, RunRow, StoredRecord, VersionedStoreId, VersionedStoreKind, Write,
};
use baton_store_sqlite::SqliteStore;

use crate::common::{row, submit};

pub(super) const RUNS: u64 = 40;
const TENANTS: [&str; 2] = ["acme", "globex"];

pub(super) fn id(run: u64) -> RunId {
    RunId::new(format!("run_{run:04}"))
}

fn blob(number: u64) -> (Digest, Vec<u8>) {
    let bytes: Vec<u8> = (0..300_u64).flat_map(|n| (n * number + 7).to_le_bytes()).collect();
    (Digest::of_bytes(&bytes), bytes)
}

fn told(seq: u64, run: u64) -> StoredRecord {
    let body = format!(r#"{{"sequence":{seq},"text":"{}"}}"#, "words ".repeat((run % 7) as usize * 40));
    StoredRecord { body, ..record(seq) }
}

pub(super) fn run_row(run: u64) -> RunRow {
    RunRow {
        id: id(run),
        tenant: TenantId::new(TENANTS[(run % 2) as usize]),
        tags: vec![format!("tag-{}", run % 5)],
        ..row("run_x")
    }
}

/// Writes it, in many transactions.
pub(super) async fn fill(store: &SqliteStore) {
    for commit in everything::commits() {
        submit(store, commit).await.unwrap();
    }
    for run in 0..RUNS {
        let row = run_row(run);
        let first = sealed(RunRow { next_seq: 6, ..row.clone() }, 0, (0..6).map(|seq| told(seq, run)).collect());
        let (digest, bytes) = blob(run);
        submit(store, vec![Write::CreateRun(row), first, Write::PutBlob { digest, bytes }]).await.unwrap();
    }
    for run in (0..RUNS).step_by(2) {
        let row = store.run(&id(run)).await.unwrap().unwrap();
        let more = sealed(RunRow { next_seq: 9, ..row }, 6, (6..9).map(|seq| told(seq, run)).collect());
        let change = put(run / 2 + 1, &format!("key-{}", run % 6));
        submit(store, vec![more, Write::Change { ledger: desk(), change }]).await.unwrap();
    }
}

fn desk() -> VersionedStoreId {
    VersionedStoreId::memory(&TenantId::new("acme"), "campaign")
}

/// What is served: by question, what came back or that it was noticed.
pub(super) type Served = BTreeMap<String, Result<String, Error>>;

fn note<T: Debug>(all: &mut Served, question: String, answer: Result<T, Error>) {
    all.insert(question, answer.map(|answer| format!("{answer:?}")));
}

/// Asks for everything that is compared. What is not is told in the guide: deliveries, dead letters, what is counted of
/// webhooks, and counts of runs.
pub(super) async fn everything_of(store: &SqliteStore) -> Served {
    let mut all = Served::new();
    let ids = (0..RUNS).map(id).chain(["run_full", "run_fork", "run_plain"].map(RunId::new));
    for run in ids {
        note(&mut all, format!("run {run}"), store.run(&run).await);
        note(&mut all, format!("records {run}"), store.records(&run, 0, usize::MAX).await);
        note(&mut all, format!("page {run}"), store.records_within(&run, 2, 3, 4000).await);
        note(&mut all, format!("annotation {run}"), store.annotation(&run, "ann_1").await);
        note(&mut all, format!("quarantine {run}"), store.quarantine(&run).await);
    }
    for number in 0..RUNS {
        note(&mut all, format!("blob {number}"), store.blob(&blob(number).0).await);
    }
    for tenant in TENANTS.map(TenantId::new) {
        let filter = RunFilter { tenant: Some(tenant.clone()), limit: 1000, ..RunFilter::default() };
        list(&mut all, &format!("runs of {tenant}"), store.runs(&filter).await.map(|page| page.items));
        for tag in 0..5 {
            let filter = RunFilter { tag: Some(format!("tag-{tag}")), ..filter.clone() };
            list(&mut all, &format!("runs of {tenant} by tag {tag}"), store.runs(&filter).await.map(|page| page.items));
        }
        list(&mut all, &format!("workflows of {tenant}"), store.workflows(&tenant).await);
        let open = InterruptFilter { tenant: Some(tenant.clone()), limit: 100, ..InterruptFilter::default() };
        list(&mut all, &format!("interrupts of {tenant}"), store.interrupts(&open).await);
        for kind in [VersionedStoreKind::Memory, VersionedStoreKind::Workspace] {
            let scopes = store.ledgers(&tenant, kind).await;
            note(&mut all, format!("{kind:?} of {tenant}"), scopes.map(|all| all.len()));
        }
    }
    let now = ReadView { version: u64::MAX >> 1, ..ReadView::default() };
    note(&mut all, "head".to_owned(), store.versioned_head(&desk()).await);
    note(&mut all, "items".to_owned(), store.versioned_items(&desk(), &now).await);
    note(&mut all, "bare".to_owned(), store.versioned_items(&desk(), &ReadView { bare: true, ..now }).await);
    note(&mut all, "changes".to_owned(), store.versioned_changes(&desk(), None, None, 1000).await);
    let webhooks = store.webhooks().await.map(|all| {
        all.into_iter().map(|hook| (hook.id, hook.tenant, hook.url, hook.events, hook.tags)).collect::<Vec<_>>()
    });
    list(&mut all, "webhooks", webhooks);
    list(&mut all, "tokens", store.tokens(100).await);
    list(&mut all, "spending", store.spending(&RunId::new("run_root"), None, 100).await);
    // A damaged note is as good as none.
    let spent = store.run_spending(&RunId::new("run_full")).await;
    list(&mut all, "spent", spent.map(|spent| spent.into_iter().collect::<Vec<_>>()));
    all
}

/// Lists leave out what is damaged, so each of their rows is an answer of its own.
fn list<T: Debug>(all: &mut Served, question: &str, rows: Result<Vec<T>, Error>) {
    match rows {
        Ok(rows) => all.extend(rows.iter().map(|row| {
            let row = format!("{row:?}");
            (format!("{question}: {row}"), Ok(row))
        })),
        Err(error) => drop(all.insert(question.to_owned(), Err(error))),
    }
}

/// What is served and was not written, and what is missing and nothing tells of it. A list that leaves a damaged row out
/// says so in the log, and a check names the row.
pub(super) fn silent(truth: &Served, found: &Served, sound: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let told = !sound || found.values().any(Result::is_err);
    for (question, answer) in truth {
        let Ok(answer) = answer else { continue };
        match found.get(question) {
            Some(Ok(other)) if other != answer => wrong.push(format!("{question} is {}", short(other))),
            None if !told => wrong.push(format!("{} is not there", short(question))),
            _ => {}
        }
    }
    for (question, answer) in found {
        if answer.is_ok() && !truth.contains_key(question) {
            wrong.push(format!("{} was never written", short(question)));
        }
    }
    wrong
}

fn short(text: &str) -> String {
    text.chars().take(160).collect()
}

/// Copies a directory as it is at this moment.
pub(super) fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        // SQLite makes its index of the log anew.
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
