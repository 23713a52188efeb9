//! Memory: what people and agents wanted remembered, by scope.

use baton_model::{MemoryEntry, Timestamp};
use serde::{Deserialize, Serialize};

use crate::routes::append;
use crate::{Client, Error};

/// A scope that somebody wrote to.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryScope {
    pub scope: String,
    /// Grows with every change.
    pub version: u64,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct MemoryScopes {
    pub scopes: Vec<MemoryScope>,
}

/// Newest first.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryList {
    pub entries: Vec<MemoryEntry>,
    /// Where the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Something to be remembered. It ends after a time or at an instant, not both.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewMemory {
    pub content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

const MEMORY: [&str; 4] = ["v1", "host", "baton", "memory"];

impl Client {
    pub async fn memory_scopes(&self) -> Result<MemoryScopes, Error> {
        self.get(self.url(&MEMORY)).await
    }

    pub async fn memory_list(&self, scope: &str, tag: Option<&str>, limit: Option<usize>) -> Result<MemoryList, Error> {
        self.memory_page(scope, tag, limit, None).await
    }

    /// The page that another one's `next_cursor` names.
    pub async fn memory_page(
        &self,
        scope: &str,
        tag: Option<&str>,
        limit: Option<usize>,
        cursor: Option<&str>,
    ) -> Result<MemoryList, Error> {
        let mut url = self.url_of_name(&MEMORY, scope)?;
        let limit = limit.map(|limit| limit.to_string());
        append(&mut url, [("tag", tag.map(str::to_owned)), ("limit", limit), ("cursor", cursor.map(str::to_owned))]);
        self.get(url).await
    }

    pub async fn memory_get(&self, scope: &str, id: &str) -> Result<MemoryEntry, Error> {
        self.get(self.entry_url(scope, id)?).await
    }

    /// The answer is what was stored, secrets taken out.
    pub async fn memory_put(
        &self,
        scope: &str,
        new: &NewMemory,
        idempotency_key: Option<&str>,
    ) -> Result<MemoryEntry, Error> {
        self.post(self.url_of_name(&MEMORY, scope)?, new, idempotency_key).await
    }

    pub async fn memory_delete(&self, scope: &str, id: &str) -> Result<(), Error> {
        self.delete(self.entry_url(scope, id)?, None).await
    }

    fn entry_url(&self, scope: &str, id: &str) -> Result<reqwest::Url, Error> {
        self.url_of_name(&MEMORY, scope)?;
        self.url_of_name(&[MEMORY.as_slice(), &[scope]].concat(), id)
    }
}
