//! Memory from outside a run: what people and tools put in, look up and take out. The tenant is part of every
//! versioned store's name, so a scope of somebody else is an empty scope of one's own.

use baton_engine::NewEntry;
use baton_model::{FileMeta, MemoryEntry, TenantId, WorkspaceFile};
use baton_store::{Change, Page, ReadView, Reply, VersionedStoreId, VersionedStoreKind, VersionedStoreRow, Write};

use crate::run::stored_reply::{REPLY_TTL_MS, claim_name};
use crate::services::versioned::{FileWrite, check_path, check_scope, check_tags, latest};
use crate::{Error, FileChange, Host, Idempotent, NewFile, NewMemory};

impl Host {
    /// The scopes of a tenant that anybody ever wrote to.
    pub async fn memory_scopes(&self, tenant: &TenantId) -> Result<Vec<VersionedStoreRow>, Error> {
        Ok(self.rooms.store.ledgers(tenant, VersionedStoreKind::Memory).await?)
    }

    /// What a scope holds now, newest first.
    pub async fn memory(
        &self,
        tenant: &TenantId,
        scope: &str,
        tag: Option<String>,
        limit: Option<usize>,
    ) -> Result<Vec<MemoryEntry>, Error> {
        Ok(self.memory_page(tenant, scope, tag, None, limit.unwrap_or(usize::MAX - 1)).await?.items)
    }

    /// A page of it, older than what the page before ended with.
    pub async fn memory_page(
        &self,
        tenant: &TenantId,
        scope: &str,
        tag: Option<String>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<MemoryEntry>, Error> {
        let Ok(ledger) = scope_of(tenant, scope) else { return Ok(Page { items: Vec::new(), next: None }) };
        // One more than asked for says whether there is another page.
        let lens = ReadView { tag, before, limit: Some(limit.saturating_add(1)), ..latest(self.rooms.clock.now()) };
        let mut found = self.rooms.versioned.items(&ledger, &lens).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|change| change.version);
        Ok(Page { items: found.iter().filter_map(Change::entry).collect(), next })
    }

    pub async fn memory_entry(&self, tenant: &TenantId, scope: &str, id: &str) -> Result<Option<MemoryEntry>, Error> {
        let Ok(ledger) = scope_of(tenant, scope) else { return Ok(None) };
        let lens = latest(self.rooms.clock.now());
        Ok(self.rooms.versioned.item(&ledger, id, &lens).await?.as_ref().and_then(Change::entry))
    }

    /// Remembers something. The answer is what was stored, secrets taken out.
    pub async fn put_memory(
        &self,
        tenant: &TenantId,
        scope: &str,
        new: NewMemory,
        idempotent: Option<Idempotent<MemoryEntry>>,
    ) -> Result<MemoryEntry, Error> {
        let ledger = scope_of(tenant, scope)?;
        check_tags(&new.tags)?;
        self.rooms.stored_bytes.admit(tenant)?;
        let id = self.rooms.ids.run().as_str().replacen("run_", "mem_", 1);
        let entry = NewEntry { id, content: new.content, tags: new.tags, ttl_ms: new.ttl_ms };
        self.rooms
            .versioned
            .publish(ledger, move |stores, head| {
                if let Some(asked) = &idempotent {
                    stores.claims.still_holds(&claim_name(&asked.key))?;
                }
                let at = stores.clock.now();
                let change = stores.remember(head, entry, None, at)?;
                let entry = change.entry().ok_or_else(|| Error::invalid("There is nothing to remember."))?;
                let reply = idempotent.map(|Idempotent { key, request, render }| {
                    let (status, body) = render(&entry);
                    Write::PutReply(Reply { key, request, status, body, expires_at: at.plus_millis(REPLY_TTL_MS) })
                });
                Ok((Some(change), reply.into_iter().collect(), entry))
            })
            .await
    }

    /// False if there was nothing to forget.
    pub async fn delete_memory(&self, tenant: &TenantId, scope: &str, id: &str) -> Result<bool, Error> {
        let Ok(ledger) = scope_of(tenant, scope) else { return Ok(false) };
        let id = id.to_owned();
        self.rooms
            .tasks
            .see_through(&self.rooms, |rooms| async move { rooms.versioned.forget_entry(ledger, &id).await })
            .await
    }

    /// What there is now, by path, without the contents.
    pub async fn files(
        &self,
        tenant: &TenantId,
        workspace: &str,
        prefix: Option<String>,
    ) -> Result<Vec<FileMeta>, Error> {
        let lens = ReadView { prefix, bare: true, ..latest(self.rooms.clock.now()) };
        self.rooms.versioned.files_at(&VersionedStoreId::workspace(tenant, workspace), &lens).await
    }

    /// One file, now or (`version`) as it was since it was last created.
    pub async fn file(
        &self,
        tenant: &TenantId,
        workspace: &str,
        path: &str,
        version: Option<u64>,
    ) -> Result<Option<WorkspaceFile>, Error> {
        let ledger = VersionedStoreId::workspace(tenant, workspace);
        let store = &self.rooms.store;
        let current = self.rooms.versioned.item(&ledger, path, &latest(self.rooms.clock.now())).await?;
        let Some(current) = current.as_ref().and_then(Change::file) else { return Ok(None) };
        let Some(version) = version.filter(|version| *version != current.meta.version) else {
            return Ok(Some(current));
        };
        let history = store.versioned_changes(&ledger, Some(path), None, HISTORY).await?;
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
        let ledger = VersionedStoreId::workspace(tenant, workspace);
        let changes = self.rooms.store.versioned_changes(&ledger, path, before, limit).await?;
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
        self.rooms.stored_bytes.admit(tenant)?;
        let file = FileWrite { path, content, content_type, if_match };
        self.rooms
            .versioned
            .publish(VersionedStoreId::workspace(tenant, workspace), move |stores, head| {
                let change = stores.write_file(head, file, None, stores.clock.now())?;
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
        self.rooms
            .versioned
            .publish(VersionedStoreId::workspace(tenant, workspace), move |stores, head| {
                let change = stores.delete_file(head, &path, if_match.as_deref(), stores.clock.now())?;
                let deleted = change.is_some();
                Ok((change, Vec::new(), deleted))
            })
            .await
    }
}

fn scope_of(tenant: &TenantId, scope: &str) -> Result<VersionedStoreId, Error> {
    check_scope(scope, "/scope")?;
    Ok(VersionedStoreId::memory(tenant, scope))
}

/// How many changes of one file are looked through for an old version.
const HISTORY: usize = 10_000;
