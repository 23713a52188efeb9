//! A command for a run, wherever it is driven. Ours: as ever. Another host's: it goes there as a message, which is
//! durable and is carried out once, and its committed answer comes back. If that host dies on the way, whoever takes the
//! run over carries it out.

use std::sync::Arc;

use baton_engine::Command;
use baton_model::{Digest, RunId, RunStatus, Timestamp, code};
use baton_store::{ForwardedCommand, Owner, Recipient};

use super::messages::{ForwardedBody, Outcome, keyed};
use crate::clock::{Clock, Ids};
use crate::cluster::claims::Claims;
use crate::cluster::messages::PeerRequest;
use crate::cluster::ownership::Ownership;
use crate::cluster::state::ClusterState;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::run::commands::RunCommands;
use crate::run::live::CommitHook;
use crate::run::load::RunLoader;
use crate::run::stored_reply::attach_reply;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind, Idempotent, Options};

/// The reply to a keyed request, to be kept with its effect.
pub(crate) struct StoredReply {
    key: Digest,
    write: CommitHook,
}

impl StoredReply {
    pub(crate) fn new<T: 'static>(
        asked: Idempotent<T>,
        view: impl FnOnce(RunStatus, Timestamp) -> T + Send + 'static,
    ) -> Self {
        Self { key: asked.key.clone(), write: attach_reply(asked, view) }
    }

    pub(crate) fn write(self) -> CommitHook {
        self.write
    }
}

/// Sends commands to the host that drives a run.
pub(crate) struct Forwarding {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) ids: Arc<dyn Ids>,
    pub(crate) options: Arc<Options>,
    pub(crate) claims: Arc<Claims>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) loader: Arc<RunLoader>,
    pub(crate) ownership: Arc<Ownership>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl Forwarding {
    /// Applies a caller's command and waits until its outcome is durable, here or elsewhere.
    pub(crate) async fn order(
        &self,
        run: &RunId,
        command: Command,
        kept: Option<StoredReply>,
    ) -> Result<(RunStatus, Timestamp), Error> {
        let Some(shared) = self.storage.shared() else {
            let live = self.storage.live()?;
            let stepped = self.commands.command(&live, run, command, kept.map(StoredReply::write)).await?;
            return Ok((stepped.status, stepped.at));
        };
        // A keyed request is one message however often it is made, and whoever drives the run by then.
        let keyed = kept.as_ref().map(|kept| keyed(&kept.key));
        let before = match &keyed {
            Some(id) => shared.forwarded(id).await?,
            None => None,
        };
        // Answered with what is not kept for a key: whatever comes now is another request, and may say something else.
        let (sent, passed) = match before {
            Some((_, Some(answer))) if !Outcome::stands(&answer) => (None, Some(answer)),
            Some((forwarded, _)) => (Some(forwarded), None),
            None => (None, None),
        };
        let body = || ForwardedBody::of(&command).and_then(|order| serde_json::to_string(&order).ok());
        match sent {
            Some(forwarded)
                if Some(&forwarded.body) != body().as_ref() || forwarded.to != Recipient::Run(run.clone()) =>
            {
                let message = "This Idempotency-Key was used for a different request. Use a new key.";
                return Err(Error::new(ErrorKind::Conflict, code::IDEMPOTENCY_KEY_MISMATCH, message));
            }
            Some(_) => {}
            None => {
                let live = self.storage.live()?;
                if let Some(name) = &keyed {
                    self.claims.still_holds(name)?;
                }
                let driven_here = match self.loader.handle_for(&live, run, &command).await {
                    Ok(_) => true,
                    Err(error) if error.is_elsewhere() => false,
                    // It may still be cancelled by hand.
                    Err(error)
                        if matches!(command, Command::Cancel { .. })
                            && !matches!(error.kind, ErrorKind::Unavailable | ErrorKind::NotFound) =>
                    {
                        true
                    }
                    Err(error) => return Err(error),
                };
                if driven_here {
                    let stepped = self.commands.command(&live, run, command, kept.map(StoredReply::write)).await?;
                    return Ok((stepped.status, stepped.at));
                }
            }
        }
        let body = body().ok_or_else(Error::elsewhere)?;
        let id = keyed.unwrap_or_else(|| format!("ask:{}:{}", shared.epoch(), self.ids.secret(16)));
        if let Some(answer) = passed {
            shared.forget_forwarded(&id, &answer).await?;
        }
        let forwarded = ForwardedCommand { id, to: Recipient::Run(run.clone()), body };
        shared.send(forwarded.clone()).await?;
        let deadline = self.clock.now().plus_millis(self.options.sharing.timeout_ms);
        // One that is gone, or another request's by now: whoever lost its session no longer has the key to itself.
        let answer = self.answer_to(&forwarded, deadline).await?.ok_or_else(unanswered)?;
        let (status, at) = Outcome::read(&answer)?;
        if let Some(kept) = kept {
            // Not in the commit of the effect, which was another host's: until this is durable the message has the answer.
            let reply = (kept.write)(status, at);
            self.storage.write(self.storage.live()?.generation, Lane::Host, vec![reply]).await?;
        }
        Ok((status, at))
    }

    /// Waits for the answer to a message, seeing to it that somebody is there to answer. `None` if the message is gone, or
    /// nobody is left to answer it.
    pub(super) async fn answer_to(
        &self,
        sent: &ForwardedCommand,
        deadline: Timestamp,
    ) -> Result<Option<String>, Error> {
        let Some(shared) = self.storage.shared() else { return Ok(None) };
        loop {
            let bell = self.cluster.waiters.hang(&sent.id);
            let rung = bell.notify.notified();
            tokio::pin!(rung);
            // Before looking, so that an answer in between is not missed.
            rung.as_mut().enable();
            match shared.forwarded(&sent.id).await {
                Ok(Some((forwarded, Some(answer)))) if forwarded == *sent => return Ok(Some(answer)),
                Ok(Some((forwarded, None))) if forwarded == *sent => match &sent.to {
                    Recipient::Run(run) => self.see_to_owner(run).await,
                    Recipient::Session(epoch) if self.is_over(*epoch).await => return Ok(None),
                    Recipient::Session(_) => {}
                },
                Ok(_) => return Ok(None),
                Err(error) => tracing::debug!(%error, "an answer could not be looked for"),
            }
            let now = self.clock.now();
            if now >= deadline {
                return Err(unanswered());
            }
            let next = now.plus_millis(self.options.sharing.poll_ms).min(deadline);
            tokio::select! {
                biased;
                () = rung => {}
                () = self.clock.until(next) => {}
                () = self.tasks.stop.cancelled() => return Err(unanswered()),
            }
        }
    }

    async fn is_over(&self, epoch: u64) -> bool {
        let Some(shared) = self.storage.shared() else { return true };
        let sessions = shared.sessions().await;
        sessions.is_ok_and(|sessions| sessions.iter().all(|session| session.epoch != epoch))
    }

    /// If nobody drives the run any more, this host does, and finds the message among its own.
    async fn see_to_owner(&self, run: &RunId) {
        let Some(shared) = self.storage.shared() else { return };
        match shared.adopt_tree(run).await {
            Ok(Some(Owner::Taken)) => self.ownership.taken(run),
            Ok(Some(Owner::Me)) => self.cluster.forwarded_commands.notify_one(),
            Ok(_) => {}
            Err(error) => tracing::debug!(%run, %error, "could not see who drives a run"),
        }
    }
}

fn unanswered() -> Error {
    Error::unavailable(
        "The host that drives this run has not answered yet. It may still do what was asked: look before trying again, \
         or try again with the same Idempotency-Key.",
    )
}

impl Forwarding {
    /// Waits until every host goes by the subscriptions that are durable now. One that says nothing loses its session, and
    /// reads them again before it writes under the next; one that comes later reads them when it does.
    pub(crate) async fn tell_subscriptions(&self) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        let me = shared.epoch();
        let mut forwarded_commands = Vec::new();
        for session in shared.sessions().await?.iter().filter(|session| session.epoch != me) {
            let forwarded = ForwardedCommand {
                id: format!("subscriptions:{me}:{}", self.ids.secret(16)),
                to: Recipient::Session(session.epoch),
                body: serde_json::to_string(&PeerRequest::Subscriptions).unwrap_or_default(),
            };
            shared.send(forwarded.clone()).await?;
            forwarded_commands.push(forwarded);
        }
        // Long enough for a lease to run out, where it is not longer than whoever asks would wait.
        let deadline = self.clock.now().plus_millis(self.options.sharing.timeout_ms);
        for forwarded in &forwarded_commands {
            self.answer_to(forwarded, deadline).await?;
        }
        Ok(())
    }
}
