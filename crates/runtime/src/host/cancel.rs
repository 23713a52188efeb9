//! Cancelling runs.

use baton_engine::Command;
use baton_model::{Principal, RunId, RunStatus};

use crate::history::fork::is_replay;
use crate::inner::Inner;
use crate::quarantine::root_of;
use crate::{Error, Host};

/// How long a replay is waited for, and how often it is looked for without being told.
const PATIENCE_MS: u64 = 60_000;
const LOOK_MS: u64 = 500;

impl Host {
    /// Cancels a run and its children. Cancelling what has ended changes nothing and says how it ended. So it is with a
    /// replay: its log is its source's over again, in which nobody cancelled it, and it is through with it shortly.
    pub async fn cancel(&self, who: &Principal, run: &RunId, reason: Option<String>) -> Result<RunStatus, Error> {
        self.inner.authorize(&who.tenant, run).await?;
        self.inner.outlast_replay(run).await?;
        let command = Command::Cancel { reason, by: Some(who.subject.clone()), parent: None };
        match self.quarantine(&who.tenant, run).await? {
            // Nobody may step a part of it, so all of it ends.
            Some(held) => Ok(self.inner.order(&held.root, command, None).await?.0),
            None => Ok(self.command(&who.tenant, run, command, None).await?.0),
        }
    }
}

impl Inner {
    /// Waits until a replay has ended, or is left alone. Other runs are not waited for.
    async fn outlast_replay(&self, run: &RunId) -> Result<(), Error> {
        // Before looking, so that an end in between is not missed.
        let mut grown = self.hub.subscribe(run);
        let deadline = self.clock.now().plus_millis(PATIENCE_MS);
        loop {
            let row = self.store.run(run).await?.ok_or_else(Error::run_not_found)?;
            if !is_replay(&row) || row.status.is_terminal() {
                return Ok(());
            }
            // One that is left alone does not end by itself.
            if self.quarantine_of(root_of(&row)).await?.is_some() {
                return Ok(());
            }
            let now = self.clock.now();
            if now >= deadline {
                return Err(Error::unavailable("This replay is still under way. It ends by itself; look again later."));
            }
            tokio::select! {
                () = grown.changed() => {}
                () = self.clock.until(now.plus_millis(LOOK_MS).min(deadline)) => {}
            }
        }
    }
}
