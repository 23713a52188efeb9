//! Letters from other hosts, carried out once. The answer is in the commit of what it changed, so whoever dies leaves
//! both or neither; what is left unanswered is carried out by whoever drives the run then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_model::RunId;
use baton_store::{Address, Commit, Letter, Write};
use parking_lot::Mutex;

use super::messages::{ForwardedBody, Outcome, PeerRequest};
use crate::inner::Inner;
use crate::{Error, Kind};

/// How many are read at a time.
const PAGE: usize = 256;

/// The letters in hand. One that was read before its answer was durable must not be taken up again, so those that are
/// done stay here until the unanswered ones have been read once more.
#[derive(Default)]
pub(super) struct Carrying(Mutex<BTreeMap<String, Stage>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    InHand,
    Done,
}

impl Carrying {
    fn done(&self) -> Vec<String> {
        let all = self.0.lock();
        all.iter().filter(|(_, stage)| **stage == Stage::Done).map(|(id, _)| id.clone()).collect()
    }

    /// Those to be taken up, of the ones that were unanswered after `done` were. What bears the name of one of these is
    /// another letter.
    fn take(&self, unanswered: Vec<Letter>, done: &[String]) -> Vec<Letter> {
        let mut all = self.0.lock();
        all.retain(|id, stage| *stage == Stage::InHand || !done.contains(id));
        let new = unanswered.into_iter().filter(|letter| !all.contains_key(&letter.id)).collect::<Vec<_>>();
        all.extend(new.iter().map(|letter| (letter.id.clone(), Stage::InHand)));
        new
    }

    fn settle(&self, id: &str, answered: bool) {
        let mut all = self.0.lock();
        match all.get_mut(id) {
            Some(stage) if answered => *stage = Stage::Done,
            // Somebody looks again: this host, or another.
            _ => drop(all.remove(id)),
        }
    }
}

impl Inner {
    pub(super) async fn keep_letters(&self) {
        while !self.stop.is_cancelled() {
            tokio::select! {
                () = self.company.letters.notified() => {}
                () = self.stop.cancelled() => return,
            }
            let _watched = self.watch.work("reading what other hosts want");
            if let Err(error) = self.read_letters().await {
                tracing::warn!(%error, "could not read what other hosts want");
            }
        }
    }

    async fn read_letters(&self) -> Result<(), Error> {
        let Some(shared) = self.shared() else { return Ok(()) };
        // While storage takes no writes there would be no answer.
        self.world()?;
        let done = self.company.carrying.done();
        let letters = shared.letters(PAGE).await?;
        let more = letters.len() == PAGE;
        let new = self.company.carrying.take(letters, &done);
        if more && !new.is_empty() {
            self.company.letters.notify_one();
        }
        for letter in new {
            self.spawn(|inner| async move {
                let carry_out = async {
                    match &letter.to {
                        Address::Run(run) => inner.obey(run, &letter).await,
                        Address::Session(_) => inner.oblige(&letter).await,
                    }
                };
                let answered = tokio::select! {
                    answered = carry_out => answered,
                    // Durable or not, somebody else sees to it.
                    () = inner.stop.cancelled() => return,
                };
                if let Err(error) = &answered {
                    tracing::debug!(letter = %letter.id, %error, "a letter was left for later");
                }
                inner.company.carrying.settle(&letter.id, answered.is_ok());
            });
        }
        Ok(())
    }

    /// Does what a caller of another host wants of a run that this one drives. An error leaves the letter as it is.
    async fn obey(&self, run: &RunId, letter: &Letter) -> Result<(), Error> {
        let Ok(order) = serde_json::from_str::<ForwardedBody>(&letter.body) else {
            let error = Error::invalid("This host does not know that command. Do all hosts run the same version?");
            return self.answer(&letter.id, Outcome::refused(&error).write()).await;
        };
        let world = self.world()?;
        let (id, queued) = (letter.id.clone(), Arc::new(AtomicBool::new(false)));
        let attached = {
            let (id, queued) = (id.clone(), Arc::clone(&queued));
            Box::new(move |status, at| {
                queued.store(true, Ordering::Relaxed);
                Write::AnswerLetter { id, body: Outcome::done(status, at).write() }
            })
        };
        let outcome = match self.command(&world, run, order.command(), Some(attached)).await {
            Ok(_) if queued.load(Ordering::Relaxed) => return Ok(()),
            // Nothing had to change, so nothing was committed that could have taken the answer along.
            Ok(stepped) => Outcome::done(stepped.status, stepped.at),
            Err(error) if error.is_elsewhere() || error.kind == Kind::Unavailable => return Err(error),
            Err(error) => Outcome::refused(&error),
        };
        self.answer(&id, outcome.write()).await
    }

    /// Does what another host wants of this one.
    async fn oblige(&self, letter: &Letter) -> Result<(), Error> {
        match serde_json::from_str::<PeerRequest>(&letter.body) {
            Ok(PeerRequest::LetGo { tenant, kind, scope }) => self.let_go_named(&tenant, &kind, scope).await?,
            Ok(PeerRequest::Share { trees, to }) => self.give_away(trees, to).await,
            Ok(PeerRequest::Subscriptions) => {
                self.reload_webhooks().await?;
                // One may have been resumed, or letters queued again that this host sends.
                self.webhooks.look();
            }
            Err(error) => tracing::warn!(%error, "another host wants something this one does not know"),
        }
        self.answer(&letter.id, String::new()).await
    }

    async fn answer(&self, id: &str, body: String) -> Result<(), Error> {
        let answer = Write::AnswerLetter { id: id.to_owned(), body };
        Ok(self.store.submit(Commit::alone(self.world()?.generation, vec![answer])).await?)
    }
}
