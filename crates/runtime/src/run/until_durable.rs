//! What was paid for, or cannot be asked again, is told until it is on disk.

use baton_engine::Command;
use baton_model::RunId;

use crate::inner::{Inner, RETRY_MS};
use crate::{Error, Kind};

impl Inner {
    /// Applies a command. A disk in trouble is waited for; one that takes nothing any more keeps nobody from leaving.
    pub(crate) async fn insist(&self, run: &RunId, command: Command) -> Result<(), Error> {
        loop {
            let told = async {
                let world = self.world()?;
                self.command(&world, run, command.clone(), None).await.map(|_| ())
            };
            let told = tokio::select! {
                told = told => told,
                () = self.stop.cancelled() => return Ok(()),
            };
            match told {
                Err(error) if error.kind == Kind::Unavailable => {}
                told => return told,
            }
            tokio::select! {
                () = self.clock.until(self.clock.now().plus_millis(RETRY_MS)) => {}
                () = self.stop.cancelled() => return Ok(()),
            }
        }
    }
}
