//! Memory: what people and agents wanted remembered, by scope.

use baton_api::{MemoryList, MemoryScopes, NewMemory};
use baton_model::MemoryEntry;

use crate::routes::append;
use crate::{Client, Error};

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
