//! Writing files: versions, etags, limits.

use baton_model::workspace::{DEFAULT_CONTENT_TYPE, path_problem};
use baton_model::{FileMeta, RunId, Timestamp, code};
use baton_store::{Change, Item, Meta, ReadView, VersionedStoreId};

use super::store::{Index, VersionedStoreHead};
use crate::services::versioned::service::VersionedStores;
use crate::{Error, ErrorKind};

/// A file to be written.
#[derive(Clone, Debug)]
pub(crate) struct FileWrite {
    pub(crate) path: String,
    pub(crate) content: String,
    pub(crate) content_type: Option<String>,
    /// The etag the writer believes to be current.
    pub(crate) if_match: Option<String>,
}

impl VersionedStores {
    pub(crate) async fn files_at(&self, ledger: &VersionedStoreId, lens: &ReadView) -> Result<Vec<FileMeta>, Error> {
        let mut files: Vec<FileMeta> = self.items(ledger, lens).await?.iter().filter_map(Change::file_meta).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

impl VersionedStores {
    pub(crate) fn write_file(
        &self,
        head: &VersionedStoreHead,
        file: FileWrite,
        run: Option<&RunId>,
        at: Timestamp,
    ) -> Result<Change, Error> {
        check_path(&file.path)?;
        if self.without_secrets(&file.path) != file.path {
            return Err(Error::invalid("This path holds a secret. Name the file otherwise."));
        }
        let limits = &self.options.limits;
        let content = self.without_secrets(&file.content);
        if content.len() > limits.max_workspace_file_bytes {
            let most = limits.max_workspace_file_bytes;
            let message = format!("A workspace file holds at most {most} bytes, and this one has {}.", content.len());
            return Err(Error::new(ErrorKind::TooLarge, code::WORKSPACE_TOO_LARGE, message)
                .with("limit", "maxFileBytes")
                .with("maxFileBytes", most)
                .with("observed", content.len()));
        }
        let Some(Index::Workspace { files }) = &head.index else { return Err(not_loaded()) };
        let current = files.get(&file.path);
        check_match(&file.path, file.if_match.as_deref(), current)?;
        if current.is_none() && files.len() as u64 >= limits.max_workspace_files {
            let most = limits.max_workspace_files;
            let message = format!("This workspace holds {most} files already. Delete one first.");
            return Err(Error::new(ErrorKind::TooLarge, code::WORKSPACE_TOO_LARGE, message)
                .with("limit", "maxFiles")
                .with("maxFiles", most));
        }
        let version = head.version + 1;
        let meta = Meta {
            version: Some(current.map_or(1, |(version, _)| version + 1)),
            // Unique over the life of the workspace, so a file that was deleted and made again never matches.
            etag: Some(format!("w{version}")),
            content_type: Some(
                file.content_type.map_or_else(|| DEFAULT_CONTENT_TYPE.to_owned(), |named| self.without_secrets(&named)),
            ),
            ..Meta::default()
        };
        let item = Some(Item { content, expires_at: None, meta });
        Ok(Change { version, key: file.path, at, run: run.cloned(), item })
    }

    /// `None` if there is no such file.
    pub(crate) fn delete_file(
        &self,
        head: &VersionedStoreHead,
        path: &str,
        if_match: Option<&str>,
        at: Timestamp,
    ) -> Result<Option<Change>, Error> {
        let Some(Index::Workspace { files }) = &head.index else { return Err(not_loaded()) };
        let Some(current) = files.get(path) else { return Ok(None) };
        check_match(path, if_match, Some(current))?;
        Ok(Some(head.forget(path, None, at)))
    }
}

pub(crate) fn check_path(path: &str) -> Result<(), Error> {
    match path_problem(path) {
        None => Ok(()),
        Some(why) => Err(Error::invalid(format!("This path cannot name a file: {why}.")).with("path", path)),
    }
}

fn check_match(path: &str, wanted: Option<&str>, current: Option<&(u64, String)>) -> Result<(), Error> {
    let Some(wanted) = wanted else { return Ok(()) };
    if current.is_some_and(|(_, etag)| matches_etag(wanted, etag)) {
        return Ok(());
    }
    let version = current.map_or(0, |(version, _)| *version);
    let message = match version {
        0 => format!("There is no file `{path}` to match. Write it without If-Match."),
        _ => format!("The file `{path}` is at version {version} now. Read it again and decide anew."),
    };
    Err(Error::new(ErrorKind::Conflict, code::WORKSPACE_CONFLICT, message).with("currentVersion", version))
}

/// Clients send an etag as they read it, or in the quotes that HTTP wants around it.
pub(crate) fn matches_etag(wanted: &str, etag: &str) -> bool {
    wanted == "*" || wanted == etag || wanted.trim_matches('"') == etag
}

/// Every writer loads the index first.
fn not_loaded() -> Error {
    Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The workspace was written to before it was loaded.")
}
