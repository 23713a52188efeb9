//! One memory scope and one workspace, kept the dumb way: two lists of changes that only ever grow. Every view is made
//! by reading a list from its beginning, so there is nothing clever here that could be wrong in the same way as the
//! real thing.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use baton_engine::{Answer, Found, NewEntry, NodeRequest, Probe, ReadVersion, Request, TurnContext, Written};
use baton_model::workspace::DEFAULT_CONTENT_TYPE;
use baton_model::{FileMeta, MemoryEntry, RunId, Timestamp, TurnSnapshot, Versions, WorkspaceFile, memory_ref};
use serde_json::{Map, Value, json};

use super::{agents, tools};

/// The two versioned stores. The n-th change is version n.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionedStores {
    memory: Vec<MemoryChange>,
    workspace: Vec<FileChange>,
}

#[derive(Clone, Debug, PartialEq)]
struct MemoryChange {
    writer: String,
    what: Remembered,
}

#[derive(Clone, Debug, PartialEq)]
enum Remembered {
    Put(MemoryEntry),
    Forget(String),
}

#[derive(Clone, Debug, PartialEq)]
struct FileChange {
    path: String,
    /// `None` deletes.
    file: Option<WorkspaceFile>,
}

impl VersionedStores {
    pub fn versions(&self) -> Versions {
        Versions { memory: self.memory.len() as u64, workspace: self.workspace.len() as u64 }
    }

    /// Somebody remembers something, for this long.
    pub fn remember(&mut self, writer: &str, content: &str, tags: &[&str], ttl_ms: Option<u64>, now: Timestamp) -> u64 {
        let id = format!("mem_{}", self.memory.len() + 1);
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        self.put(writer, NewEntry { id, content: content.to_owned(), tags, ttl_ms }, now);
        self.versions().memory
    }

    fn put(&mut self, writer: &str, new: NewEntry, now: Timestamp) -> MemoryEntry {
        let NewEntry { id, content, tags, ttl_ms } = new;
        let expires_at = ttl_ms.map(|ms| now.plus_millis(ms));
        let entry = MemoryEntry { id, content, tags, created_at: now, expires_at };
        self.memory.push(MemoryChange { writer: writer.to_owned(), what: Remembered::Put(entry.clone()) });
        entry
    }

    /// Somebody makes the scope forget an entry.
    pub fn forget(&mut self, writer: &str, id: &str) {
        self.memory.push(MemoryChange { writer: writer.to_owned(), what: Remembered::Forget(id.to_owned()) });
    }

    pub fn write_file(&mut self, path: &str, content: &str, content_type: Option<&str>, now: Timestamp) -> FileMeta {
        let before = self.files(self.versions().workspace).remove(path);
        let meta = FileMeta {
            path: path.to_owned(),
            version: before.map_or(1, |file| file.meta.version + 1),
            etag: format!("\"{}\"", self.workspace.len() + 1),
            updated_at: now,
            content_type: content_type.unwrap_or(DEFAULT_CONTENT_TYPE).to_owned(),
        };
        let file = WorkspaceFile { meta: meta.clone(), content: content.to_owned() };
        self.workspace.push(FileChange { path: path.to_owned(), file: Some(file) });
        meta
    }

    pub fn delete_file(&mut self, path: &str) {
        self.workspace.push(FileChange { path: path.to_owned(), file: None });
    }

    /// The entries everybody could see at this version and instant, newest first.
    pub fn entries(&self, version: u64, at: Timestamp) -> Vec<MemoryEntry> {
        self.seen_by("", ReadVersion { version, own: 0 }, at)
    }

    /// The entries one run sees.
    pub fn seen_by(&self, run: &str, read_version: ReadVersion, at: Timestamp) -> Vec<MemoryEntry> {
        let mut seen: Vec<MemoryEntry> = Vec::new();
        for (change, version) in self.memory.iter().zip(1_u64..) {
            if version > read_version.version && (change.writer != run || version > read_version.own) {
                continue;
            }
            match &change.what {
                Remembered::Put(entry) => seen.insert(0, entry.clone()),
                Remembered::Forget(id) => seen.retain(|entry| entry.id != *id),
            }
        }
        seen.retain(|entry| entry.expires_at.is_none_or(|end| at < end));
        seen
    }

    /// Who made this change, and what was remembered by it, if anything.
    pub fn change(&self, version: u64) -> (&str, Option<&MemoryEntry>) {
        let change = &self.memory[usize::try_from(version).unwrap() - 1];
        let entry = match &change.what {
            Remembered::Put(entry) => Some(entry),
            Remembered::Forget(_) => None,
        };
        (&change.writer, entry)
    }

    /// Every file at this version.
    pub fn files(&self, version: u64) -> BTreeMap<String, WorkspaceFile> {
        let mut files = BTreeMap::new();
        for change in &self.workspace[..usize::try_from(version).unwrap()] {
            match &change.file {
                Some(file) => files.insert(change.path.clone(), file.clone()),
                None => files.remove(&change.path),
            };
        }
        files
    }

    /// Answers one question as a shell would. The versioned stores it returns hold what was written; they count only if the
    /// engine takes the answer.
    pub fn answer(&self, run: &RunId, scope: &str, node_request: &NodeRequest, now: Timestamp) -> (Answer, Self) {
        let mut after = self.clone();
        if let Request::Tool(lookup) = &node_request.request {
            return (tools::find(lookup), after);
        }
        let (written, found) = after.serve(run.as_str(), scope, &node_request.request, now);
        (Answer { written, found: Ok(found) }, after)
    }

    fn serve(&mut self, run: &str, scope: &str, request: &Request, now: Timestamp) -> (Vec<Written>, Found) {
        let found = match request {
            Request::Turn { frozen, memory, workspace, agent } => {
                let TurnSnapshot { versions, at } =
                    frozen.unwrap_or(TurnSnapshot { versions: self.versions(), at: now });
                let memory = if *memory { self.entries(versions.memory, at) } else { Vec::new() };
                let workspace = if *workspace { self.files(versions.workspace) } else { BTreeMap::new() };
                let brief = agent.as_deref().map(|request| Box::new(agents::brief(request, memory.clone())));
                Found::Turn(TurnContext { versions, memory, workspace, brief })
            }
            Request::Tool(_) => panic!("answered before"),
            Request::Invoke(request) => {
                let memory = self.seen_by(run, request.read_version, now);
                Found::InvocationContext(Box::new(agents::brief(request, memory)))
            }
            Request::Remember(new) => {
                let entry = self.put(run, new.clone(), now);
                return (vec![self.written(scope, &entry)], Found::Entry(Some(entry)));
            }
            Request::Forget { id, read_version } => {
                if !self.seen_by(run, *read_version, now).iter().any(|entry| entry.id == *id) {
                    return (Vec::new(), Found::Forgotten(false));
                }
                self.forget(run, id);
                let version = self.versions().memory;
                let forgotten = Written::Forgotten { memory_ref: memory_ref(scope), id: id.clone(), version };
                return (vec![forgotten], Found::Forgotten(true));
            }
            Request::Recall { id, read_version } => {
                Found::Entry(self.seen_by(run, *read_version, now).into_iter().find(|entry| entry.id == *id))
            }
            Request::Recollect { tag, limit, read_version } => {
                let mut seen = self.seen_by(run, *read_version, now);
                seen.retain(|entry| tag.as_ref().is_none_or(|tag| entry.tags.contains(tag)));
                seen.truncate(limit.unwrap_or(usize::MAX));
                Found::Entries(seen)
            }
            Request::WriteFile { path, content, content_type } => {
                let meta = self.write_file(path, content, content_type.as_deref(), now);
                let version = self.versions().workspace;
                let written = Written::File { path: path.clone(), file_version: meta.version, version };
                return (vec![written], Found::Written(meta));
            }
            Request::ReadFile { path, version } => Found::File(self.files(*version).remove(path)),
            Request::ListFiles { prefix, version } => {
                let prefix = prefix.as_deref().unwrap_or("");
                let files = self.files(*version).into_values().map(|file| file.meta);
                Found::Files(files.filter(|meta| meta.path.starts_with(prefix)).collect())
            }
            Request::Probe(probe) => return self.probe(run, scope, probe, now),
        };
        (Vec::new(), found)
    }

    fn written(&self, scope: &str, entry: &MemoryEntry) -> Written {
        Written::Entry {
            memory_ref: memory_ref(scope),
            id: entry.id.clone(),
            tags: entry.tags.clone(),
            version: self.versions().memory,
        }
    }

    fn probe(&mut self, run: &str, scope: &str, probe: &Probe, now: Timestamp) -> (Vec<Written>, Found) {
        let mut written = Vec::new();
        let mut write = |ledgers: &mut Self, content: &str, ttl_ms: Option<u64>| {
            let id = format!("mem_probe_{}", ledgers.memory.len());
            let entry = ledgers.put(run, NewEntry { id, content: content.to_owned(), tags: vec![], ttl_ms }, now);
            written.push(ledgers.written(scope, &entry));
            entry.content
        };
        let variables: Map<String, Value> = match probe {
            Probe::WriteThenRead => [("readBack".to_owned(), json!(write(self, "probe", None)))].into_iter().collect(),
            Probe::CrossTenant { memory_ref } => [("foreign".to_owned(), json!([memory_ref]))].into_iter().collect(),
            Probe::Redaction { .. } => {
                [("stored".to_owned(), json!(write(self, "[REDACTED:key]", None)))].into_iter().collect()
            }
            Probe::Ttl => {
                write(self, "gone", Some(0));
                [("fresh".to_owned(), json!(write(self, "fresh", Some(60_000))))].into_iter().collect()
            }
        };
        (written, Found::Variables(variables))
    }
}
