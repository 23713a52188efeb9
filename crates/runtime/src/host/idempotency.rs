use baton_model::Digest;
use baton_store::{Commit, Reply, Write};

use crate::run::start::REPLY_TTL_MS;
use crate::{Error, Host, Known};

impl Host {
    /// What is stored under an idempotency key for this request.
    ///
    /// `Known::New` means that whoever asks is the one to do it, here and on every other host, until it says that it is
    /// done ([`Host::done_with`]).
    pub async fn recall(&self, key: &Digest, request: &Digest) -> Result<Known, Error> {
        let known = self.look_up(key, request).await?;
        if self.inner.shared().is_none() || !matches!(known, Known::New) {
            return Ok(known);
        }
        self.inner.take_claim(&claim_name(key)).await?;
        // Whoever had the claim before may have left the answer.
        let known = self.look_up(key, request).await;
        if !matches!(known, Ok(Known::New)) {
            self.done_with(key);
        }
        known
    }

    /// The request under this key has been answered, or could not be.
    pub fn done_with(&self, key: &Digest) {
        self.inner.release_claim(&claim_name(key));
    }

    async fn look_up(&self, key: &Digest, request: &Digest) -> Result<Known, Error> {
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
        inner.still_holds(&claim_name(&key))?;
        let expires_at = inner.clock.now().plus_millis(REPLY_TTL_MS);
        let reply = Reply { key, request, status, body, expires_at };
        inner.store.submit(Commit::new(generation, vec![Write::PutReply(reply)])).await?;
        Ok(())
    }
}

pub(crate) fn claim_name(key: &Digest) -> String {
    format!("key:{}", key.as_str())
}
