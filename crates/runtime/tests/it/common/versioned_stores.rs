//! Memory and workspace in tests: short names for the nodes, and what must be true of every versioned store.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Event, MemoryEntry, RunId, RunSnapshot, TenantId, Timestamp, Versions, WorkspaceFile};
use baton_runtime::{NewFile, NewMemory, StartRun};
use baton_store::{Change, StoredRecord, VersionedStoreId, VersionedStoreKind};
use serde_json::{Value, json};

use super::{World, other, request, tenant, who};

pub const PUT: &str = "vendor.baton.memory.put";
pub const GET: &str = "vendor.baton.memory.get";
pub const LIST: &str = "vendor.baton.memory.list";
pub const DELETE: &str = "vendor.baton.memory.delete";
pub const WRITE: &str = "vendor.baton.workspace.put";
pub const READ: &str = "vendor.baton.workspace.get";
pub const FILES: &str = "vendor.baton.workspace.list";

pub fn note(content: &str) -> Value {
    json!({"content": content})
}

pub fn list() -> Value {
    json!({"into": "seen"})
}

pub fn file(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

pub fn files() -> Value {
    json!({"into": "files"})
}

pub fn scoped(workflow: &str, scope: &str) -> StartRun {
    StartRun { scope_id: Some(scope.to_owned()), ..request(workflow) }
}

/// The contents of the entries in a variable, newest first.
pub fn contents(snapshot: &RunSnapshot, variable: &str) -> Vec<String> {
    texts(&snapshot.variables[variable], "content")
}

pub fn paths(snapshot: &RunSnapshot, variable: &str) -> Vec<String> {
    texts(&snapshot.variables[variable], "path")
}

fn texts(list: &Value, field: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

pub fn new_file(path: &str, content: &str) -> NewFile {
    NewFile { path: path.to_owned(), content: content.to_owned(), content_type: None, if_match: None }
}

pub fn new_memory(content: &str) -> NewMemory {
    NewMemory { content: content.to_owned(), tags: Vec::new(), ttl_ms: None }
}

/// Both kinds of versioned store, oldest change first.
pub type VersionedStores = BTreeMap<VersionedStoreId, Vec<Change>>;

/// What a versioned store held as of a version and an instant, told the simplest way: every change after the other.
pub fn as_of(changes: &[Change], version: u64, at: Timestamp) -> Vec<&Change> {
    let mut held: Vec<&Change> = Vec::new();
    for change in changes.iter().filter(|change| change.version <= version) {
        held.retain(|other| other.key != change.key);
        held.push(change);
    }
    held.retain(|change| {
        change.item.as_ref().is_some_and(|item| item.expires_at.is_none_or(|end| end.as_micros() > at.as_micros()))
    });
    held.reverse();
    held
}

/// A change of a versioned store as a run's log tells of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    kind: VersionedStoreKind,
    scope: String,
    version: u64,
    key: String,
    deleted: bool,
}

impl World {
    pub async fn start_in(&self, workflow: &str, scope: &str) -> RunId {
        self.host.start_run(&who(), scoped(workflow, scope), None).await.unwrap().run_id
    }

    /// Starts a run and waits for its end.
    pub async fn finish(&self, workflow: &str) -> RunSnapshot {
        let run = self.start(workflow).await;
        self.ended(&run).await
    }

    pub async fn remember(&self, scope: &str, content: &str) -> MemoryEntry {
        self.host.put_memory(&tenant(), scope, new_memory(content), None).await.unwrap()
    }

    /// What a scope holds now, newest first.
    pub async fn entries(&self, tenant: &TenantId, scope: &str) -> Vec<MemoryEntry> {
        self.host.memory(tenant, scope, None, None).await.unwrap()
    }

    pub async fn recall(&self, scope: &str) -> Vec<String> {
        self.entries(&tenant(), scope).await.into_iter().map(|entry| entry.content).collect()
    }

    pub async fn write(&self, path: &str, content: &str) -> WorkspaceFile {
        self.host.put_file(&tenant(), DEFAULT_WORKSPACE, new_file(path, content)).await.unwrap()
    }

    pub async fn read(&self, path: &str) -> Option<WorkspaceFile> {
        self.host.file(&tenant(), DEFAULT_WORKSPACE, path, None).await.unwrap()
    }

    pub async fn records(&self, run: &RunId) -> Vec<StoredRecord> {
        self.reader.records(run, 0, usize::MAX).await.unwrap()
    }

    /// Everything that was ever written, as the store has it.
    pub async fn ledgers(&self) -> VersionedStores {
        let mut all = VersionedStores::new();
        for tenant in [tenant(), other().tenant] {
            for kind in [VersionedStoreKind::Memory, VersionedStoreKind::Workspace] {
                for row in self.reader.ledgers(&tenant, kind).await.unwrap() {
                    let id = VersionedStoreId { tenant: tenant.clone(), kind, scope: row.scope };
                    let mut changes = self.reader.versioned_changes(&id, None, None, usize::MAX).await.unwrap();
                    changes.reverse();
                    all.insert(id, changes);
                }
            }
        }
        all
    }

    /// Checks all versioned stores against all logs, nothing having been pruned: no version is missing or there twice, every
    /// change a run made is told of on its log and the other way round, and looking back at any record shows what the
    /// changes up to it leave.
    pub async fn audit_versioned_stores(&self, context: &str) {
        let ledgers = self.ledgers().await;
        for (id, changes) in &ledgers {
            let versions = changes.iter().map(|change| change.version);
            assert!(
                versions.clone().eq(1..=changes.len() as u64),
                "{context}, {id:?}: {:?}",
                versions.collect::<Vec<_>>()
            );
            if id.kind == VersionedStoreKind::Workspace {
                check_file_versions(context, changes);
            }
        }
        for row in self.rows().await {
            let context = format!("{context}, {} {}", row.workflow, row.id);
            let memory = VersionedStoreId::memory(&row.tenant, row.memory_scope.clone());
            let workspace = VersionedStoreId::workspace(&row.tenant, DEFAULT_WORKSPACE);
            let records = self.records(&row.id).await;
            let told = told(&row.id, &row.memory_scope, &records, &context);
            let mut made = BTreeSet::new();
            for id in [&memory, &workspace] {
                let by_run =
                    ledgers.get(id).into_iter().flatten().filter(|change| change.run.as_ref() == Some(&row.id));
                made.extend(by_run.map(|change| Told {
                    kind: id.kind,
                    scope: id.scope.clone(),
                    version: change.version,
                    key: change.key.clone(),
                    deleted: change.item.is_none(),
                }));
            }
            assert_eq!(told, made, "{context}: what the log tells and what was written");
            self.audit_surroundings(&row.tenant, &row.id, &records, &ledgers, &context).await;
        }
    }

    /// Looking back at every record shows what was there then.
    pub async fn audit_surroundings(
        &self,
        tenant: &TenantId,
        run: &RunId,
        records: &[StoredRecord],
        ledgers: &VersionedStores,
        context: &str,
    ) {
        let mut before = Versions::default();
        for record in records {
            let (seq, now) = (record.seq, record.versions);
            assert!(now.memory >= before.memory && now.workspace >= before.workspace, "{context}, {seq}: back in time");
            before = now;
            let shown = self.host.surroundings(tenant, run, seq).await.unwrap();
            assert_eq!(shown.versions, now, "{context}, {seq}");
            let memory = ledgers.get(&VersionedStoreId::memory(tenant, shown.memory_scope.clone()));
            let expected: Vec<_> = as_of(memory.map_or(&[], Vec::as_slice), now.memory, record.at)
                .into_iter()
                .filter_map(Change::entry)
                .collect();
            assert_eq!(shown.memory, expected, "{context}, {seq}: memory");
            let workspace = ledgers.get(&VersionedStoreId::workspace(tenant, DEFAULT_WORKSPACE));
            let mut expected: Vec<_> = as_of(workspace.map_or(&[], Vec::as_slice), now.workspace, record.at)
                .into_iter()
                .filter_map(Change::file_meta)
                .collect();
            expected.sort_by(|a, b| a.path.cmp(&b.path));
            assert_eq!(shown.workspace, expected, "{context}, {seq}: workspace");
        }
    }
}

/// A file's versions are 1, 2, 3, … and begin again when it was deleted; no two contents share an etag.
fn check_file_versions(context: &str, changes: &[Change]) {
    let mut current: BTreeMap<&str, u64> = BTreeMap::new();
    let mut etags = BTreeSet::new();
    for change in changes {
        match change.file_meta() {
            Some(meta) => {
                let before = current.insert(&change.key, meta.version).unwrap_or(0);
                assert_eq!(meta.version, before + 1, "{context}: {}", change.key);
                assert!(etags.insert(meta.etag), "{context}: {} has an etag that was used", change.key);
            }
            None => assert!(current.remove(change.key.as_str()).is_some(), "{context}: deleted what was not there"),
        }
    }
}

fn told(run: &RunId, scope: &str, records: &[StoredRecord], context: &str) -> BTreeSet<Told> {
    let mut all = BTreeSet::new();
    for stored in records {
        let (versions, seq) = (stored.versions, stored.seq);
        let (memory, workspace) = (VersionedStoreKind::Memory, VersionedStoreKind::Workspace);
        let (kind, version, key, deleted) = match stored.decode(run).unwrap().event {
            Event::MemoryWritten(event) => (memory, event.private.version, event.memory_id, false),
            Event::MemoryDeleted(event) => (memory, event.private.version, event.memory_id, true),
            Event::WorkspaceUpdated(event) => (workspace, event.private.version, event.path, false),
            _ => continue,
        };
        let stamped = if kind == memory { versions.memory } else { versions.workspace };
        assert_eq!(stamped, version, "{context}, {seq}: a write counts from its own record on");
        let scope = if kind == memory { scope.to_owned() } else { DEFAULT_WORKSPACE.to_owned() };
        assert!(all.insert(Told { kind, scope, version, key, deleted }), "{context}, {seq}: told twice");
    }
    all
}
