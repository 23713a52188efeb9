//! Writing memory: what may be stored, and as what.

use baton_engine::NewEntry;
use baton_model::{MAX_TAG_CHARS, RunId, Timestamp, code};
use baton_store::{Change, Item, Meta};

use super::store::{Index, VersionedStoreHead};
use crate::services::versioned::service::VersionedStores;
use crate::{Error, ErrorKind};

impl VersionedStores {
    /// The change that remembers an entry. Secrets are taken out before anything else looks at it.
    pub(crate) fn remember(
        &self,
        head: &VersionedStoreHead,
        entry: NewEntry,
        run: Option<&RunId>,
        at: Timestamp,
    ) -> Result<Change, Error> {
        if entry.ttl_ms == Some(0) {
            return Err(Error::invalid("This entry would expire the moment it is written."));
        }
        let expires_at = entry.ttl_ms.map(|ttl| at.plus_millis(ttl));
        self.remember_until(head, entry, run, at, expires_at)
    }

    /// The same with the end given. Only a probe may give one that has passed.
    pub(crate) fn remember_until(
        &self,
        head: &VersionedStoreHead,
        entry: NewEntry,
        run: Option<&RunId>,
        at: Timestamp,
        expires_at: Option<Timestamp>,
    ) -> Result<Change, Error> {
        let limits = &self.options.limits;
        let content = self.without_secrets(&entry.content);
        if content.len() > limits.max_memory_entry_bytes {
            let most = limits.max_memory_entry_bytes;
            return Err(Error::invalid(format!(
                "A memory entry holds at most {most} bytes, and this one has {}. Keep the long form in the workspace.",
                content.len()
            ))
            .with("limit", most)
            .with("observed", content.len()));
        }
        if let Some(Index::Memory { entries }) = head.index
            && entries >= limits.max_memory_entries
        {
            let most = limits.max_memory_entries;
            let message = format!("This memory scope holds {most} entries already. Delete some, or let them expire.");
            return Err(Error::new(ErrorKind::TooLarge, code::MEMORY_FULL, message).with("limit", most));
        }
        let tags = entry.tags.iter().map(|tag| self.without_secrets(tag)).filter(|tag| !tag.is_empty()).collect();
        let meta = Meta { tags, ..Meta::default() };
        Ok(Change {
            version: head.version + 1,
            key: entry.id,
            at,
            run: run.cloned(),
            item: Some(Item { content, expires_at, meta }),
        })
    }

    /// Whether the scope must be counted anew before it can be called full: expired entries take no room.
    pub(crate) fn looks_full(&self, head: &VersionedStoreHead) -> bool {
        matches!(head.index, Some(Index::Memory { entries }) if entries >= self.options.limits.max_memory_entries)
    }
}

/// Tags as a caller gives them.
pub(crate) fn check_tags(tags: &[String]) -> Result<(), Error> {
    let fits = |tag: &String| (1..=MAX_TAG_CHARS).contains(&tag.chars().count());
    match tags.iter().position(|tag| !fits(tag)) {
        None => Ok(()),
        Some(index) => Err(Error::invalid(format!("A tag has 1 to {MAX_TAG_CHARS} characters."))
            .with("path", format!("/tags/{index}"))),
    }
}
