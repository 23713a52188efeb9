//! The thread that looks whether anything is stuck, and what it does about it.

use std::sync::{Arc, mpsc};

use baton_model::RunId;

use crate::Options;
use crate::journal::storage::Storage;
use crate::quarantine::service::Quarantines;
use crate::quarantine::trees::Cause;
use crate::steps::Turns;
use crate::tasks::Tasks;
use crate::watch::{StuckStep, Watch};

/// Starts the watchdog and acts on what it finds.
pub(crate) struct WatchdogTask {
    pub(crate) options: Arc<Options>,
    pub(crate) turns: Turns,
    pub(crate) watch: Arc<Watch>,
    pub(crate) quarantine: Arc<Quarantines>,
    pub(crate) storage: Arc<Storage>,
    pub(crate) tasks: Arc<Tasks>,
}

impl WatchdogTask {
    /// Starts the thread that looks, and the task that shows it that the async workers run.
    pub(crate) fn start_watchdog(self: &Arc<Self>) {
        let Some(dog) = self.options.watchdog.clone() else { return };
        let every = dog.every;
        self.tasks.keep(self, "heartbeat", move |room| async move {
            while !room.tasks.stop.is_cancelled() {
                room.watch.beat();
                tokio::select! {
                    biased;
                    () = tokio::time::sleep(every) => {}
                    () = room.tasks.stop.cancelled() => {}
                }
            }
        });
        // Until the very end: something may freeze while the host stops, too.
        let (stopped, stops) = mpsc::sync_channel::<()>(1);
        *self.watch.watching.lock() = Some(stopped);
        let me = Arc::downgrade(self);
        let watching = std::thread::Builder::new().name("baton-watchdog".to_owned()).spawn(move || {
            while matches!(stops.recv_timeout(dog.every), Err(mpsc::RecvTimeoutError::Timeout)) {
                let Some(room) = me.upgrade() else { return };
                let found = room.watch.look(&dog);
                for StuckStep { place, root, run, tenant } in found.stuck {
                    room.turns.write_off(&tenant, place);
                    room.tasks.spawn(&room, |room| async move { room.quarantine_stuck(&root, &run).await });
                }
                if let Some(why) = found.end {
                    tracing::error!(%why, "the process ends itself, so that whoever supervises it can start it again");
                    (dog.end)(&why);
                }
            }
        });
        if let Err(error) = watching {
            tracing::error!(%error, "the watchdog could not be started");
            self.watch.task_down("watchdog", error.to_string());
        }
    }

    /// A step does not end. Its run is not stepped again, here or after a restart.
    async fn quarantine_stuck(&self, root: &RunId, run: &RunId) {
        match self.storage.row_or_root(run, root).await {
            Ok(Some(row)) => self.quarantine.quarantine(&row, Cause::Stuck, &format!("a step of {run} did not end")),
            // It is being started and nobody knows of it yet: with the process it is gone.
            Ok(None) => {}
            Err(error) => tracing::error!(%root, %run, %error, "a run that is stuck could not be put in quarantine"),
        }
    }
}
