//! Forwarded commands from other hosts, carried out once. The answer is in the commit of what it changed, so whoever dies leaves
//! both or neither; what is left unanswered is carried out by whoever drives the run then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::RunId;
use baton_store::{ForwardedCommand, Recipient, Write};

use super::messages::{ForwardedBody, Outcome, PeerRequest};
use crate::cluster::balance::Balance;
use crate::cluster::state::ClusterState;
use crate::journal::lane::Lane;
use crate::journal::storage::Storage;
use crate::run::commands::RunCommands;
use crate::services::versioned::service::VersionedStores;
use crate::services::webhooks::Webhooks;
use crate::services::webhooks::register::WebhookRegistry;
use crate::tasks::Tasks;
use crate::watch::Watch;
use crate::{Error, ErrorKind};

/// How many are read at a time.
const PAGE: usize = 256;

/// Carries out what other hosts forward.
pub(crate) struct Inbox {
    pub(crate) cluster: Arc<ClusterState>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) balance: Arc<Balance>,
    pub(crate) commands: Arc<RunCommands>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) subscriptions: Arc<WebhookRegistry>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl Inbox {
    pub(crate) async fn keep_inbox(self: &Arc<Self>) {
        while !self.tasks.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = self.cluster.forwarded_commands.notified() => {}
                () = self.tasks.stop.cancelled() => return,
            }
            let _watched = self.watch.work("reading what other hosts want");
            if let Err(error) = self.read_inbox().await {
                tracing::warn!(%error, "could not read what other hosts want");
            }
        }
    }

    async fn read_inbox(self: &Arc<Self>) -> Result<(), Error> {
        let Some(shared) = self.storage.shared() else { return Ok(()) };
        // While storage takes no writes there would be no answer.
        self.storage.live()?;
        let done = self.cluster.carrying.done();
        let forwarded_commands = shared.forwarded_commands(PAGE).await?;
        let more = forwarded_commands.len() == PAGE;
        let new = self.cluster.carrying.take(forwarded_commands, &done);
        if more && !new.is_empty() {
            self.cluster.forwarded_commands.notify_one();
        }
        for forwarded in new {
            self.tasks.spawn(self, |room| async move {
                let carry_out = async {
                    match &forwarded.to {
                        Recipient::Run(run) => room.carry_out(run, &forwarded).await,
                        Recipient::Session(_) => room.do_for_peer(&forwarded).await,
                    }
                };
                let answered = tokio::select! {
                    biased;
                    answered = carry_out => answered,
                    // Durable or not, somebody else sees to it.
                    () = room.tasks.stop.cancelled() => return,
                };
                if let Err(error) = &answered {
                    tracing::debug!(forwarded = %forwarded.id, %error, "a letter was left for later");
                }
                room.cluster.carrying.settle(&forwarded.id, answered.is_ok());
            });
        }
        Ok(())
    }

    /// Does what a caller of another host wants of a run that this one drives. An error leaves the message as it is.
    async fn carry_out(&self, run: &RunId, forwarded: &ForwardedCommand) -> Result<(), Error> {
        let Ok(order) = serde_json::from_str::<ForwardedBody>(&forwarded.body) else {
            let error = Error::invalid("This host does not know that command. Do all hosts run the same version?");
            return self.answer(&forwarded.id, Outcome::refused(&error).write()).await;
        };
        let live = self.storage.live()?;
        let (id, queued) = (forwarded.id.clone(), Arc::new(AtomicBool::new(false)));
        let attached = {
            let (id, queued) = (id.clone(), Arc::clone(&queued));
            Box::new(move |status, at| {
                queued.store(true, Ordering::Relaxed);
                Write::AnswerForwarded { id, body: Outcome::done(status, at).write() }
            })
        };
        let outcome = match self.commands.command(&live, run, order.command(), Some(attached)).await {
            Ok(_) if queued.load(Ordering::Relaxed) => return Ok(()),
            // Nothing had to change, so nothing was committed that could have taken the answer along.
            Ok(stepped) => Outcome::done(stepped.status, stepped.at),
            Err(error) if error.is_elsewhere() || error.kind == ErrorKind::Unavailable => return Err(error),
            Err(error) => Outcome::refused(&error),
        };
        self.answer(&id, outcome.write()).await
    }

    /// Does what another host wants of this one.
    async fn do_for_peer(&self, forwarded: &ForwardedCommand) -> Result<(), Error> {
        match serde_json::from_str::<PeerRequest>(&forwarded.body) {
            Ok(PeerRequest::LetGo { tenant, kind, scope }) => {
                self.versioned.let_go_named(&tenant, &kind, scope).await?
            }
            Ok(PeerRequest::Share { trees, to }) => self.balance.give_away(trees, to).await,
            Ok(PeerRequest::Subscriptions) => {
                self.subscriptions.reload_webhooks().await?;
                // One may have been resumed, or messages queued again that this host sends.
                self.webhooks.look();
            }
            Err(error) => tracing::warn!(%error, "another host wants something this one does not know"),
        }
        self.answer(&forwarded.id, String::new()).await
    }

    async fn answer(&self, id: &str, body: String) -> Result<(), Error> {
        let answer = Write::AnswerForwarded { id: id.to_owned(), body };
        Ok(self.storage.write(self.storage.live()?.generation, Lane::Host, vec![answer]).await?)
    }
}
