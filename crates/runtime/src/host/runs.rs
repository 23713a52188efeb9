//! Starting runs and telling them what to do.

use baton_engine::Command;
use baton_model::{Digest, Principal, RunId, RunStatus, TenantId};
use baton_store::{Reply, Write};

use crate::journal::lane::Lane;
use crate::run::stored_reply::{REPLY_TTL_MS, claim_name};
use crate::{Error, Host, KeyLookup};

impl Host {
    /// Cancels a run and its children. Cancelling what has ended changes nothing and says how it ended. So it is with a
    /// replay: its log is its source's over again, in which nobody cancelled it, and it is through with it shortly.
    pub async fn cancel(&self, who: &Principal, run: &RunId, reason: Option<String>) -> Result<RunStatus, Error> {
        self.rooms.reads.authorize(&who.tenant, run).await?;
        self.rooms.reads.outlast_replay(run).await?;
        let command = Command::Cancel { reason, by: Some(who.subject.clone()), parent: None };
        match self.quarantine(&who.tenant, run).await? {
            // Nobody may step a part of it, so all of it ends.
            Some(held) => Ok(self.rooms.forwarding.order(&held.root, command, None).await?.0),
            None => Ok(self.command(&who.tenant, run, command, None).await?.0),
        }
    }

    /// What is stored under an idempotency key for this request.
    ///
    /// `KeyLookup::New` means that whoever asks is the one to do it, here and on every other host, until it says that it is
    /// done ([`Host::done_with`]).
    pub async fn recall(&self, tenant: &TenantId, key: &Digest, request: &Digest) -> Result<KeyLookup, Error> {
        let known = self.look_up(key, request).await?;
        if self.rooms.storage.shared().is_none() || !matches!(known, KeyLookup::New) {
            return Ok(known);
        }
        self.rooms.claims.take_claim(&claim_name(key)).await?;
        // Whoever had the claim before may have left the answer.
        let known = self.look_up(key, request).await;
        if !matches!(known, Ok(KeyLookup::New)) {
            self.done_with(tenant, key);
        }
        known
    }

    /// The request under this key has been answered, or could not be.
    pub fn done_with(&self, tenant: &TenantId, key: &Digest) {
        self.rooms.claims.release_claim(&claim_name(key), Lane::Of(tenant));
    }

    async fn look_up(&self, key: &Digest, request: &Digest) -> Result<KeyLookup, Error> {
        let reply = self.rooms.store.reply(key).await?;
        Ok(match reply.filter(|reply| reply.expires_at > self.rooms.clock.now()) {
            None => KeyLookup::New,
            Some(reply) if reply.request == *request => KeyLookup::Replay { status: reply.status, body: reply.body },
            Some(_) => KeyLookup::Mismatch,
        })
    }

    /// Stores the reply to an idempotent request whose effect has no reply of its own in the same commit.
    pub async fn remember(
        &self,
        tenant: &TenantId,
        key: Digest,
        request: Digest,
        status: u16,
        body: String,
    ) -> Result<(), Error> {
        let rooms = &self.rooms;
        let generation = rooms.storage.live()?.generation;
        rooms.claims.still_holds(&claim_name(&key))?;
        let expires_at = rooms.clock.now().plus_millis(REPLY_TTL_MS);
        let reply = Reply { key, request, status, body, expires_at };
        rooms.storage.write(generation, Lane::Of(tenant), vec![Write::PutReply(reply)]).await?;
        Ok(())
    }
}
