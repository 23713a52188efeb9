//! Commands to runs. Whoever gives one waits until its outcome is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_engine::Command;
use baton_model::{RunId, RunStatus};
use baton_store::Store;
use futures_util::future::BoxFuture;

use crate::clock::{Clock, RETRY_MS};
use crate::journal::generation::Generation;
use crate::journal::storage::Storage;
use crate::ports::TellRuns;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::may_be_loaded;
use crate::run::live::CommitHook;
use crate::run::router::Router;
use crate::run::step::Stepped;
use crate::run::stepper::RunStepper;
use crate::run::tree::is_replay;
use crate::steps::StepPool;
use crate::tasks::Tasks;
use crate::{Error, ErrorKind};

/// Gives runs commands.
pub(crate) struct RunCommands {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) router: Arc<Router>,
    pub(crate) stepper: Arc<RunStepper>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl RunCommands {
    /// The top of a tree in quarantine was to be cancelled on the host that drives it, and could not be loaded or must not
    /// be: then all of it ends by hand. Says whether it did.
    pub(crate) async fn cancelled_by_hand(
        &self,
        run: &RunId,
        command: &Command,
        failed: &Error,
    ) -> Result<bool, Error> {
        let from_outside = matches!(command, Command::Cancel { parent: None, .. });
        if !from_outside || matches!(failed.kind, ErrorKind::Unavailable | ErrorKind::NotFound) {
            return Ok(false);
        }
        let Some(row) = self.store.run(run).await?.filter(|row| row.root.is_none()) else { return Ok(false) };
        let Some(held) = self.quarantine.quarantine_of(&row.id).await? else { return Ok(false) };
        // A replay takes no commands.
        let by_hand = failed.kind == ErrorKind::Internal || !may_be_loaded(&held) || is_replay(&row);
        if by_hand {
            self.quarantine.end_tree_by_hand(run, command).await?;
        }
        Ok(by_hand)
    }

    /// Applies one command on behalf of a caller and waits until the answer may be shown. What follows from it in other
    /// runs goes on by itself: a caller that hangs up must not take half of it along.
    pub(crate) async fn command(
        self: &Arc<Self>,
        live: &Arc<Generation>,
        run: &RunId,
        command: Command,
        attached: Option<CommitHook>,
    ) -> Result<Stepped, Error> {
        let (here, named) = (Arc::clone(live), run.clone());
        let stepping = self.pool.on_step_threads(self, |room| async move {
            let mut messages = VecDeque::new();
            let result = room.stepper.step_with(&here, &named, &command, attached, &mut messages).await;
            room.router.finish_soon(&here, messages);
            match result {
                Err(error) if room.cancelled_by_hand(&named, &command, &error).await? => {
                    Ok(Ok(Stepped { handle: None, status: RunStatus::Cancelled, at: room.clock.now(), count: 0 }))
                }
                result => Ok(result),
            }
        });
        // The disk is waited for by whoever asked: no step thread is woken for it.
        let result = stepping.await?;
        match &result {
            Ok(Stepped { handle: Some(handle), count, .. }) => handle.durable(&live.ending, *count).await?,
            Ok(Stepped { handle: None, .. }) => {}
            // A refusal, too, may only speak of what can no longer be lost.
            Err(_) => {
                let handle = live.run(run);
                if let Some(handle) = handle
                    && let Some(queued) = handle.head().await.map(|head| head.queued)
                {
                    handle.durable(&live.ending, queued).await?;
                }
            }
        }
        result
    }

    /// Lets a run go on from where it is, and sees through everything that follows.
    pub(crate) async fn advance(self: &Arc<Self>, run: &RunId) -> Result<(), Error> {
        let (live, run) = (self.storage.live()?, run.clone());
        self.pool
            .on_step_threads(self, |room| async move {
                let mut messages = VecDeque::new();
                room.stepper.step(&live, &run, &Command::Advance, &mut messages).await?;
                room.router.finish(&live, messages).await;
                Ok(())
            })
            .await
    }

    /// Lets a run take one step; what follows goes on by itself.
    pub(crate) async fn advance_once(self: &Arc<Self>, run: &RunId) -> Result<(), Error> {
        let (live, run) = (self.storage.live()?, run.clone());
        self.pool
            .on_step_threads(self, |room| async move {
                let mut messages = VecDeque::new();
                let stepped = room.stepper.step(&live, &run, &Command::Advance, &mut messages).await;
                room.router.finish_soon(&live, messages);
                stepped.map(drop)
            })
            .await
    }

    /// Applies a command. A disk in trouble is waited for; one that takes nothing any more keeps nobody from leaving.
    pub(crate) async fn tell_until_durable(self: &Arc<Self>, run: &RunId, command: Command) -> Result<(), Error> {
        loop {
            let told = async {
                let live = self.storage.live()?;
                self.command(&live, run, command.clone(), None).await.map(|_| ())
            };
            let told = tokio::select! {
                biased;
                told = told => told,
                () = self.tasks.stop.cancelled() => return Ok(()),
            };
            match told {
                Err(error) if error.kind == ErrorKind::Unavailable => {}
                told => return told,
            }
            tokio::select! {
                biased;
                () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                () = self.tasks.stop.cancelled() => return Ok(()),
            }
        }
    }
}

impl TellRuns for RunCommands {
    fn tell(self: Arc<Self>, run: RunId, command: Command) -> BoxFuture<'static, Result<(), Error>> {
        Box::pin(async move {
            let live = self.storage.live()?;
            self.command(&live, &run, command, None).await.map(|_| ())
        })
    }
}
