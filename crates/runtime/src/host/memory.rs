//! Memory from outside a run: what people and tools put in, look up and take out. The tenant is part of every
//! ledger's name, so a scope of somebody else is an empty scope of one's own.

use baton_engine::NewEntry;
use baton_model::{MemoryEntry, TenantId};
use baton_store::{Change, LedgerId, LedgerKind, LedgerRow, Lens, Page, Reply, Write};

use super::claim_name;
use crate::run::start::REPLY_TTL_MS;
use crate::services::versioned::check_scope;
use crate::services::versioned::{check_tags, latest};
use crate::{Error, Host, Idempotent, NewMemory};

impl Host {
    /// The scopes of a tenant that anybody ever wrote to.
    pub async fn memory_scopes(&self, tenant: &TenantId) -> Result<Vec<LedgerRow>, Error> {
        Ok(self.inner.store.ledgers(tenant, LedgerKind::Memory).await?)
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
        let lens = Lens { tag, before, limit: Some(limit.saturating_add(1)), ..latest(self.inner.clock.now()) };
        let mut found = self.inner.items(&ledger, &lens).await?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|change| change.version);
        Ok(Page { items: found.iter().filter_map(Change::entry).collect(), next })
    }

    pub async fn memory_entry(&self, tenant: &TenantId, scope: &str, id: &str) -> Result<Option<MemoryEntry>, Error> {
        let Ok(ledger) = scope_of(tenant, scope) else { return Ok(None) };
        let lens = latest(self.inner.clock.now());
        Ok(self.inner.item(&ledger, id, &lens).await?.as_ref().and_then(Change::entry))
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
        let id = self.inner.ids.run().as_str().replacen("run_", "mem_", 1);
        let entry = NewEntry { id, content: new.content, tags: new.tags, ttl_ms: new.ttl_ms };
        self.inner
            .publish(ledger, move |inner, head| {
                if let Some(asked) = &idempotent {
                    inner.still_holds(&claim_name(&asked.key))?;
                }
                let at = inner.clock.now();
                let change = inner.remember(head, entry, None, at)?;
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
        self.inner.see_through(|inner| async move { inner.forget_entry(ledger, &id).await }).await
    }
}

fn scope_of(tenant: &TenantId, scope: &str) -> Result<LedgerId, Error> {
    check_scope(scope, "/scope")?;
    Ok(LedgerId::memory(tenant, scope))
}
