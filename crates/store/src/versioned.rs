//! What outlives a run: memory scopes and workspaces. Each is an append-only versioned store of changes with one version per
//! change, so every past state can be looked at again.

use std::collections::BTreeMap;

use baton_model::{FileMeta, MemoryEntry, RunId, TenantId, Timestamp, WorkspaceFile};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionedStoreKind {
    Memory,
    Workspace,
}

impl VersionedStoreKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Workspace => "workspace",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Memory, Self::Workspace].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Names one versioned store. The tenant is part of the name, so no question can be asked without one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionedStoreId {
    pub tenant: TenantId,
    pub kind: VersionedStoreKind,
    pub scope: String,
}

impl VersionedStoreId {
    pub fn memory(tenant: &TenantId, scope: impl Into<String>) -> Self {
        Self { tenant: tenant.clone(), kind: VersionedStoreKind::Memory, scope: scope.into() }
    }

    pub fn workspace(tenant: &TenantId, workspace: impl Into<String>) -> Self {
        Self { tenant: tenant.clone(), kind: VersionedStoreKind::Workspace, scope: workspace.into() }
    }
}

/// One change: the item under a key is this now, or (`None`) is gone. Never edited.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// 1, 2, 3, … in its versioned store.
    pub version: u64,
    /// A memory entry's id, a file's path.
    pub key: String,
    pub at: Timestamp,
    /// The run that made it; none for a change made from outside.
    pub run: Option<RunId>,
    pub item: Option<Item>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub content: String,
    pub expires_at: Option<Timestamp>,
    pub meta: Meta,
}

/// What is kept beside the content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A file's own version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// Which changes count, and what is wanted of what they leave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadView {
    /// Changes up to this version.
    pub version: u64,
    /// And this run's own, up to that one.
    pub own: Option<(RunId, u64)>,
    /// Items that have expired by then are left out.
    pub at: Option<Timestamp>,
    pub tag: Option<String>,
    pub prefix: Option<String>,
    /// Only items older than this change: the next page.
    pub before: Option<u64>,
    /// `None` = all.
    pub limit: Option<usize>,
    /// Leave the content out: items come back with an empty one.
    pub bare: bool,
}

impl ReadView {
    /// Everything as of one version and one instant.
    pub fn at(version: u64, at: Timestamp) -> Self {
        Self { version, at: Some(at), ..Self::default() }
    }

    /// Whether a change counts.
    pub fn counts(&self, change: &Change) -> bool {
        change.version <= self.version
            || self.own.as_ref().is_some_and(|(run, upto)| change.version <= *upto && change.run.as_ref() == Some(run))
    }

    /// Whether what a change left is wanted.
    pub fn wants(&self, change: &Change) -> bool {
        let Some(item) = &change.item else { return false };
        let alive = match (item.expires_at, self.at) {
            (Some(end), Some(at)) => end > at,
            _ => true,
        };
        alive
            && self.before.is_none_or(|before| change.version < before)
            && self.tag.as_ref().is_none_or(|tag| item.meta.tags.contains(tag))
            && self.prefix.as_ref().is_none_or(|prefix| change.key.starts_with(prefix))
    }

    /// What the view shows of a versioned store, newest first. The meaning of a view, in one place; adapters with an index
    /// must agree with it.
    pub fn view<'a>(&self, changes: impl IntoIterator<Item = &'a Change>) -> Vec<Change> {
        let mut latest: BTreeMap<&str, &Change> = BTreeMap::new();
        for change in changes {
            if self.counts(change) && latest.get(change.key.as_str()).is_none_or(|seen| seen.version < change.version) {
                latest.insert(&change.key, change);
            }
        }
        let mut shown: Vec<Change> = latest.into_values().filter(|change| self.wants(change)).cloned().collect();
        shown.sort_by_key(|change| std::cmp::Reverse(change.version));
        shown.truncate(self.limit.unwrap_or(usize::MAX));
        if self.bare {
            shown.iter_mut().filter_map(|change| change.item.as_mut()).for_each(|item| item.content.clear());
        }
        shown
    }
}

/// A versioned store as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedStoreRow {
    pub scope: String,
    pub version: u64,
    pub updated_at: Timestamp,
}

/// Where a versioned store stands.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionedStoreState {
    pub ledger: VersionedStoreId,
    pub version: u64,
    pub updated_at: Timestamp,
    /// Changes up to this version may be missing.
    pub forgotten: u64,
}

impl Change {
    /// The memory entry this change left, if it left one.
    pub fn entry(&self) -> Option<MemoryEntry> {
        let item = self.item.as_ref()?;
        Some(MemoryEntry {
            id: self.key.clone(),
            content: item.content.clone(),
            tags: item.meta.tags.clone(),
            created_at: self.at,
            expires_at: item.expires_at,
        })
    }

    /// The file this change left, if it left one.
    pub fn file(&self) -> Option<WorkspaceFile> {
        let item = self.item.as_ref()?;
        Some(WorkspaceFile { meta: self.file_meta()?, content: item.content.clone() })
    }

    pub fn file_meta(&self) -> Option<FileMeta> {
        let meta = &self.item.as_ref()?.meta;
        Some(FileMeta {
            path: self.key.clone(),
            version: meta.version.unwrap_or(self.version),
            etag: meta.etag.clone().unwrap_or_default(),
            updated_at: self.at,
            content_type: meta
                .content_type
                .clone()
                .unwrap_or_else(|| baton_model::workspace::DEFAULT_CONTENT_TYPE.into()),
        })
    }
}
