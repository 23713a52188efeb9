use baton_model::Digest;
use baton_store::{Commit, Reply, Write};

use crate::start::REPLY_TTL_MS;
use crate::{Error, Host, Known};

impl Host {
    /// What is stored under an idempotency key for this request.
    pub async fn recall(&self, key: &Digest, request: &Digest) -> Result<Known, Error> {
        let reply = self.inner.store.reply(key).await?;
        Ok(match reply.filter(|reply| reply.expires_at > self.inner.clock.now()) {
            None => Known::New,
            Some(reply) if reply.request == *request => Known::Replay { status: reply.status, body: reply.body },
            Some(_) => Known::Mismatch,
        })
    }

    /// Stores the reply to an idempotent request whose effect has no reply of its own in the same commit.
    pub async fn remember(&self, key: Digest, request: Digest, status: u16, body: String) -> Result<(), Error> {
        let inner = &self.inner;
        let generation = inner.world()?.generation;
        let expires_at = inner.clock.now().plus_millis(REPLY_TTL_MS);
        let reply = Reply { key, request, status, body, expires_at };
        inner.store.submit(Commit { generation, writes: vec![Write::PutReply(reply)] }).await?;
        Ok(())
    }
}
