//! Conversations from outside: which there are, what was said, and another way to go on.

use baton_model::TenantId;
use baton_store::Page;

use crate::services::conversations::{ConversationView, TurnView};
use crate::{Error, Host};

impl Host {
    /// The conversations of a tenant, by name, after this one; and whether there are more.
    pub async fn conversations(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<ConversationView>, bool), Error> {
        self.inner.conversations(tenant, after, limit).await
    }

    /// The turns of one, newest first, before this one.
    pub async fn conversation(
        &self,
        tenant: &TenantId,
        id: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Page<TurnView>, Error> {
        self.inner.turns_of(tenant, id, before, limit).await
    }

    /// A conversation that begins with the turns of another up to this one. Without a name it gets one.
    pub async fn fork_conversation(
        &self,
        tenant: &TenantId,
        id: &str,
        turn: Option<u64>,
        new: Option<String>,
    ) -> Result<ConversationView, Error> {
        let new = new.unwrap_or_else(|| self.inner.ids.run().as_str().replacen("run_", "conv_", 1));
        self.inner.fork_conversation(tenant, id, turn, new).await
    }
}
