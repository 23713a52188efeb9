//! Runs that another host asks for. Such a run is named by the key it is asked for under, so it is made once however often
//! and however late the request comes: the reply to an idempotent request is kept for a day, the run for good.

use std::sync::Arc;

use baton_engine::{Plan, Start};
use baton_model::{Event, ForeignCause, Principal, RunId, RunStatus, code};

use crate::journal::generation::Generation;
use crate::journal::lane::Lane;
use crate::run::start::{Launch, RunStarter, started};
use crate::{Error, ErrorKind, Idempotent, StartedRun};

impl RunStarter {
    pub(crate) async fn take_over(
        self: &Arc<Self>,
        who: &Principal,
        plan: Arc<Plan>,
        start: Start,
        exclusive: bool,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<StartedRun, Error> {
        let Some(asked) = idempotent else {
            return Err(Error::invalid("A run that another host asks for needs an `Idempotency-Key`."));
        };
        if exclusive {
            return Err(Error::invalid("A run that another host asks for cannot be the only one of its scope."));
        }
        let run = RunId::handed_over(&asked.key);
        let who = who.clone();
        self.tasks
            .see_through_steps(self, |room| async move {
                // Held until the run is in memory: whoever comes second finds it.
                let _one_at_a_time = room.loading.lock(&run).await;
                let name = format!("run:{run}");
                let once = async {
                    match room.taken_over(start.settings.cause.as_deref(), &run).await? {
                        Some(known) => Ok(known),
                        None => {
                            let launch = Launch { idempotent: Some(asked), ..Launch::new(run, plan, start) };
                            room.launch(&who, launch).await
                        }
                    }
                };
                room.claims.alone(&name, Lane::Of(&who.tenant), once).await
            })
            .await
    }

    /// The run that was made when it was asked for before. What its workflow has become since does not matter.
    pub(crate) async fn taken_over(
        &self,
        asks: Option<&ForeignCause>,
        run: &RunId,
    ) -> Result<Option<StartedRun>, Error> {
        match self.known(&*self.storage.live()?, run).await? {
            None => Ok(None),
            Some((cause, status)) if cause.as_ref().map(of) == asks.map(of) => Ok(Some(started(run, status))),
            Some(_) => {
                let message = "Another run was started under this Idempotency-Key. Use a new key.";
                Err(Error::new(ErrorKind::Conflict, code::IDEMPOTENCY_KEY_MISMATCH, message))
            }
        }
    }

    /// Who asked for a run, and where it stands, if it exists and can no longer be lost.
    async fn known(&self, live: &Generation, run: &RunId) -> Result<Option<(Option<ForeignCause>, RunStatus)>, Error> {
        // Not a reference into the map: it would be held while the disk is waited for.
        let in_memory = live.run(run);
        if let Some(handle) = in_memory {
            let state = Arc::clone(&handle.head().await.ok_or_else(Error::stepping)?.state);
            handle.durable(&live.ending, 1).await?;
            let cause = state.started().and_then(|started| started.private.cause.as_deref().cloned());
            return Ok(Some((cause, state.status())));
        }
        let Some(row) = self.store.run(run).await? else { return Ok(None) };
        let first = self.log.log(&row, 0, 1).await?.pop().map(|stored| stored.decode(run)).transpose()?;
        let cause = match first.map(|record| record.event) {
            Some(Event::RunStarted(started)) => started.private.cause.map(|cause| *cause),
            _ => None,
        };
        Ok(Some((cause, row.status)))
    }
}

/// The asking event is what makes two requests the same one; where its host is reached may change.
fn of(cause: &ForeignCause) -> (&str, &str) {
    (cause.run_id.as_str(), cause.event_id.as_str())
}
