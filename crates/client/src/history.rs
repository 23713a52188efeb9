//! Looking back at a run, and taking away what makes that possible.

use baton_api::{PruneRun, PrunedRun, StateAt};

use crate::routes::append;
use crate::{Client, Error};

impl Client {
    /// The run as of the record with sequence `at` (`None` = the latest).
    pub async fn state_at(&self, run: &str, at: Option<u64>) -> Result<StateAt, Error> {
        let mut url = self.url(&["v1", "host", "baton", "runs", run, "state"]);
        append(&mut url, [("at", at.map(|seq| seq.to_string()))]);
        self.get(url).await
    }

    /// Prunes an ended top-level run and everything below it; with `log`, the events too.
    pub async fn prune(&self, run: &str, log: bool) -> Result<PrunedRun, Error> {
        self.post(self.url(&["v1", "runs", &format!("{run}:prune")]), &PruneRun { log }, None).await
    }
}
