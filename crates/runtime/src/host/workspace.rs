//! Files from outside a run. Every answer is about what is durable.

use baton_model::{FileMeta, TenantId, WorkspaceFile};
use baton_store::{Change, LedgerId, Lens};

use crate::services::versioned::{FileWrite, check_path, latest};
use crate::{Error, FileChange, Host, NewFile};

/// How many changes of one file are looked through for an old version.
const HISTORY: usize = 10_000;

impl Host {
    /// What there is now, by path, without the contents.
    pub async fn files(
        &self,
        tenant: &TenantId,
        workspace: &str,
        prefix: Option<String>,
    ) -> Result<Vec<FileMeta>, Error> {
        let lens = Lens { prefix, bare: true, ..latest(self.inner.clock.now()) };
        self.inner.files_at(&LedgerId::workspace(tenant, workspace), &lens).await
    }

    /// One file, now or (`version`) as it was since it was last created.
    pub async fn file(
        &self,
        tenant: &TenantId,
        workspace: &str,
        path: &str,
        version: Option<u64>,
    ) -> Result<Option<WorkspaceFile>, Error> {
        let ledger = LedgerId::workspace(tenant, workspace);
        let store = &self.inner.store;
        let current = self.inner.item(&ledger, path, &latest(self.inner.clock.now())).await?;
        let Some(current) = current.as_ref().and_then(Change::file) else { return Ok(None) };
        let Some(version) = version.filter(|version| *version != current.meta.version) else {
            return Ok(Some(current));
        };
        let history = store.ledger_changes(&ledger, Some(path), None, HISTORY).await?;
        let since_creation = history.iter().map_while(Change::file);
        Ok(since_creation.into_iter().find(|file| file.meta.version == version))
    }

    /// What happened to a file, newest first; to all files without a path.
    pub async fn file_changes(
        &self,
        tenant: &TenantId,
        workspace: &str,
        path: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<FileChange>, Error> {
        let ledger = LedgerId::workspace(tenant, workspace);
        let changes = self.inner.store.ledger_changes(&ledger, path, before, limit).await?;
        let told = changes.into_iter().map(|change| FileChange {
            file: change.file_meta(),
            path: change.key,
            change: change.version,
            at: change.at,
            run_id: change.run,
        });
        Ok(told.collect())
    }

    pub async fn put_file(&self, tenant: &TenantId, workspace: &str, new: NewFile) -> Result<WorkspaceFile, Error> {
        let NewFile { path, content, content_type, if_match } = new;
        check_path(&path)?;
        let file = FileWrite { path, content, content_type, if_match };
        self.inner
            .publish(LedgerId::workspace(tenant, workspace), move |inner, head| {
                let change = inner.write_file(head, file, None, inner.clock.now())?;
                let file = change.file().ok_or_else(|| Error::invalid("There is nothing to write."))?;
                Ok((Some(change), Vec::new(), file))
            })
            .await
    }

    /// False if there is no such file.
    pub async fn delete_file(
        &self,
        tenant: &TenantId,
        workspace: &str,
        path: &str,
        if_match: Option<String>,
    ) -> Result<bool, Error> {
        let path = path.to_owned();
        self.inner
            .publish(LedgerId::workspace(tenant, workspace), move |inner, head| {
                let change = inner.delete_file(head, &path, if_match.as_deref(), inner.clock.now())?;
                let deleted = change.is_some();
                Ok((change, Vec::new(), deleted))
            })
            .await
    }
}

impl crate::inner::Inner {
    pub(crate) async fn files_at(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<FileMeta>, Error> {
        let mut files: Vec<FileMeta> = self.items(ledger, lens).await?.iter().filter_map(Change::file_meta).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}
