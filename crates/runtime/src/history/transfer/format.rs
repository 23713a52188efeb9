//! The file: one JSON object a line, named by what it holds. Header, definitions, agents, versioned stores with their changes,
//! runs with their records and what was said about them, footer; what others build on comes before them, except that children come before their parents.

use baton_model::{
    Annotation, Digest, NodeId, Origin, Part, RunId, RunStatus, RunSummary, TenantId, Timestamp, Versions, WorkflowId,
    json,
};
use baton_store::{Change, Checksum, Item, LogChain, Meta, RunRow, StoredRecord, VersionedStoreKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Transferred;

pub(super) const FORMAT: &str = "baton.run";
/// What a reader must understand. Older files stay readable for ever, and a file is no newer than what is in it.
pub(super) const VERSION: u32 = 4;
/// The first that holds agents.
const WITH_AGENTS: u32 = 2;
/// The first that holds what was said about runs.
const WITH_ANNOTATIONS: u32 = 3;

/// The first whose records have checksums.
const WITH_CHECKSUMS: u32 = 4;

/// The version of a file that holds some of these, or none.
pub(super) const fn version(agents: bool, annotations: bool, checksums: bool) -> u32 {
    match (agents, annotations, checksums) {
        (_, _, true) => WITH_CHECKSUMS,
        (_, true, _) => WITH_ANNOTATIONS,
        (true, ..) => WITH_AGENTS,
        (false, ..) => WITH_AGENTS - 1,
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Line<'a> {
    Header(Header),
    #[serde(borrow)]
    Definition(DefinitionLine<'a>),
    #[serde(borrow)]
    Agent(AgentLine<'a>),
    /// Files on people's disks call it so.
    #[serde(rename = "ledger")]
    VersionedStore(VersionedStoreLine),
    Change(ChangeLine),
    Run(Box<RunLine>),
    #[serde(borrow)]
    Record(RecordLine<'a>),
    Annotation(Box<Annotation>),
    Footer(Footer),
}

impl Line<'_> {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Header(_) => "header",
            Self::Definition(_) => "definition",
            Self::Agent(_) => "agent",
            Self::VersionedStore(_) => "ledger",
            Self::Change(_) => "change",
            Self::Run(_) => "run",
            Self::Record(_) => "record",
            Self::Annotation(_) => "annotation",
            Self::Footer(_) => "footer",
        }
    }
}

/// Fields may be added for readers that know them, so unknown ones are let pass here and only here.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) version: u32,
    /// The run the file was made for.
    pub(super) run: RunId,
    /// The top of the oldest tree in it: where the forking began.
    pub(super) first: RunId,
    pub(super) exported_at: Timestamp,
    pub(super) host: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DefinitionLine<'a> {
    pub(super) digest: Digest,
    pub(super) workflow: WorkflowId,
    #[serde(borrow)]
    pub(super) definition: &'a RawValue,
}

/// The version of an agent that a run is pinned to, with its prompt and its schemas.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AgentLine<'a> {
    pub(super) digest: Digest,
    #[serde(borrow)]
    pub(super) card: &'a RawValue,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct VersionedStoreLine {
    #[serde(with = "kind")]
    pub(super) kind: VersionedStoreKind,
    pub(super) scope: String,
    /// Changes up to this version count; those that are missing were forgotten.
    pub(super) version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<BaseLine>,
}

/// The versioned store of the same kind that this one was forked from.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BaseLine {
    pub(super) scope: String,
    pub(super) version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ChangeLine {
    version: u64,
    key: String,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<ItemLine>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ItemLine {
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<Timestamp>,
    #[serde(default)]
    meta: Meta,
}

impl From<Change> for ChangeLine {
    fn from(change: Change) -> Self {
        let Change { version, key, at, run, item } = change;
        let item = item.map(|Item { content, expires_at, meta }| ItemLine { content, expires_at, meta });
        Self { version, key, at, run, item }
    }
}

impl From<ChangeLine> for Change {
    fn from(line: ChangeLine) -> Self {
        let ChangeLine { version, key, at, run, item } = line;
        let item = item.map(|ItemLine { content, expires_at, meta }| Item { content, expires_at, meta });
        Self { version, key, at, run, item }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RunLine {
    id: RunId,
    workflow: WorkflowId,
    digest: Digest,
    status: RunStatus,
    created_at: Timestamp,
    updated_at: Timestamp,
    next_seq: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    root: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current_node: Option<NodeId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
    memory_scope: String,
    workspace_scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<RunSummary>,
    /// The checksum that the first record of a fork follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chain_base: Option<Checksum>,
}

impl From<RunRow> for RunLine {
    fn from(row: RunRow) -> Self {
        let summary = crate::run::summary::summary_of(&row).map(|told| RunSummary { imported: false, ..told });
        Self {
            id: row.id,
            workflow: row.workflow,
            digest: row.digest,
            status: row.status,
            created_at: row.created_at,
            updated_at: row.updated_at,
            next_seq: row.next_seq,
            parent: row.parent,
            root: row.root,
            scope: row.scope,
            tags: row.tags,
            current_node: row.current_node,
            error_code: row.error_code,
            memory_scope: row.memory_scope,
            workspace_scope: row.workspace_scope,
            origin: row.origin,
            summary,
            chain_base: row.chain.base,
        }
    }
}

impl RunLine {
    /// The row of a run that has ended, owned by whoever takes it in, and marked as theirs by import.
    pub(super) fn into_row(self, tenant: &TenantId) -> RunRow {
        RunRow {
            id: self.id,
            tenant: tenant.clone(),
            workflow: self.workflow,
            digest: self.digest,
            status: self.status,
            created_at: self.created_at,
            updated_at: self.updated_at,
            next_seq: self.next_seq,
            wake_at: None,
            busy: false,
            parent: self.parent,
            root: self.root,
            scope: self.scope,
            tags: self.tags,
            current_node: self.current_node,
            error_code: self.error_code,
            memory_scope: self.memory_scope,
            workspace_scope: self.workspace_scope,
            origin: self.origin,
            pruned: None,
            summary: crate::run::summary::encode(&RunSummary { imported: true, ..self.summary.unwrap_or_default() }),
            chain: LogChain::default(),
        }
    }
}

/// A record with both its faces: a replay needs what never leaves otherwise.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordLine<'a> {
    seq: u64,
    at: Timestamp,
    kind: String,
    #[serde(default, skip_serializing_if = "Versions::is_zero")]
    versions: Versions,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<PartLine>,
    #[serde(borrow)]
    body: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    private: Option<&'a RawValue>,
    /// Over all of this and the records before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sum: Option<Checksum>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartLine {
    outside: bool,
    first: bool,
}

impl<'a> RecordLine<'a> {
    pub(super) fn of(record: &'a StoredRecord) -> Result<Self, serde_json::Error> {
        Ok(Self {
            seq: record.seq,
            at: record.at,
            kind: record.kind.clone(),
            versions: record.versions,
            part: record.part.map(|Part { outside, first }| PartLine { outside, first }),
            body: serde_json::from_str(&record.body)?,
            private: record.private.as_deref().map(serde_json::from_str).transpose()?,
            sum: record.sum,
        })
    }

    /// Whether one of its texts is like that.
    pub(super) fn holds(&self, like: impl Fn(&str) -> bool) -> bool {
        [Some(self.body), self.private].into_iter().flatten().any(|text| like(text.get())) || like(&self.kind)
    }

    pub(super) fn into_record(self) -> StoredRecord {
        StoredRecord {
            seq: self.seq,
            at: self.at,
            kind: self.kind,
            body: self.body.get().to_owned(),
            private: self.private.map(|private| private.get().to_owned()),
            versions: self.versions,
            part: self.part.map(|PartLine { outside, first }| Part { outside, first }),
            sum: self.sum,
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Footer {
    pub(super) definitions: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) agents: u64,
    pub(super) ledgers: u64,
    pub(super) changes: u64,
    pub(super) runs: u64,
    pub(super) records: u64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) annotations: u64,
    /// SHA-256 of everything before this line.
    pub(super) digest: Digest,
}

impl Footer {
    pub(super) fn new(holds: Transferred, digest: Digest) -> Self {
        let Transferred { definitions, agents, ledgers, changes, runs, records, annotations } = holds;
        Self { definitions, agents, ledgers, changes, runs, records, annotations, digest }
    }

    pub(super) fn holds(&self) -> Transferred {
        let Self { definitions, agents, ledgers, changes, runs, records, annotations, .. } = *self;
        Transferred { definitions, agents, ledgers, changes, runs, records, annotations }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The digest of what has been hashed so far.
pub(super) fn digest_of(hash: &sha2::Sha256) -> Option<Digest> {
    use sha2::Digest as _;
    Digest::parse(&json::hex(&hash.clone().finalize()))
}

mod kind {
    use super::VersionedStoreKind;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(kind: &VersionedStoreKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(kind.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<VersionedStoreKind, D::Error> {
        let text = String::deserialize(deserializer)?;
        VersionedStoreKind::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("there are no {text} ledgers")))
    }
}
