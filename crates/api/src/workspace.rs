//! The files that all runs of a tenant share.

use baton_model::{FileMeta, RunId, Timestamp};
use serde::{Deserialize, Serialize};

/// What a file is to hold. Unknown members are refused.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = PutFile))]
pub struct NewFile {
    pub content: String,
    /// `text/markdown` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileList {
    /// By path, without the contents.
    pub files: Vec<FileMeta>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Changes))]
pub struct FileChanges {
    /// Newest first.
    pub changes: Vec<FileChange>,
    /// `before` of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ChangeItem))]
pub struct FileChange {
    pub path: String,
    /// The workspace's version after it.
    pub change: u64,
    #[cfg_attr(feature = "schema", schema(value_type = String, format = DateTime))]
    pub at: Timestamp,
    /// The run that did it; absent for a change from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub deleted: bool,
}
