//! The workspace: files that all runs of a tenant share.

use baton_api::{FileChanges, FileList, NewFile};
use baton_model::WorkspaceFile;

use crate::routes::append;
use crate::{Client, Error};

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
