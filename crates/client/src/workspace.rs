//! The workspace: files that all runs of a tenant share.

use baton_model::{FileMeta, Timestamp, WorkspaceFile};
use serde::{Deserialize, Serialize};

use crate::routes::append;
use crate::{Client, Error};

/// By path, without the contents.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct FileList {
    pub files: Vec<FileMeta>,
}

/// What a file is to hold.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewFile {
    pub content: String,
    /// `text/markdown` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// One thing that happened to a file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    pub path: String,
    /// The workspace's version after it.
    pub change: u64,
    pub at: Timestamp,
    /// The run that did it; none for a change from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The file's version after it; none if it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default)]
    pub deleted: bool,
}

/// Newest first.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChanges {
    pub changes: Vec<FileChange>,
    /// Where the next page begins, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_before: Option<u64>,
}

const FILES: [&str; 4] = ["v1", "host", "workspace", "files"];

impl Client {
    pub async fn files(&self, prefix: Option<&str>) -> Result<FileList, Error> {
        let mut url = self.url(&FILES);
        append(&mut url, [("prefix", prefix.map(str::to_owned))]);
        self.get(url).await
    }

    /// The file now, or as it was at one of its versions.
    pub async fn file(&self, path: &str, version: Option<u64>) -> Result<WorkspaceFile, Error> {
        let mut url = self.url_of_name(&FILES, path)?;
        append(&mut url, [("version", version.map(|version| version.to_string()))]);
        self.get(url).await
    }

    /// Writes a file. With `if_match`, only if its etag is still that one.
    pub async fn put_file(&self, path: &str, file: &NewFile, if_match: Option<&str>) -> Result<WorkspaceFile, Error> {
        self.put(self.url_of_name(&FILES, path)?, file, if_match).await
    }

    pub async fn delete_file(&self, path: &str, if_match: Option<&str>) -> Result<(), Error> {
        self.delete(self.url_of_name(&FILES, path)?, if_match).await
    }

    /// What happened to one file, or to all of them, before a change (`None` = up to now).
    pub async fn file_changes(
        &self,
        path: Option<&str>,
        before: Option<u64>,
        limit: Option<usize>,
    ) -> Result<FileChanges, Error> {
        let mut url = self.url(&["v1", "host", "baton", "workspace", "changes"]);
        let pairs = [
            ("path", path.map(str::to_owned)),
            ("before", before.map(|change| change.to_string())),
            ("limit", limit.map(|limit| limit.to_string())),
        ];
        append(&mut url, pairs);
        self.get(url).await
    }
}
