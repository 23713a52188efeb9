//! A run's past: looking back at it, forking, proving and comparing it, where it comes from, and taking it away.

use baton_api::{
    Ancestry, BulkPrune, BulkPruned, Fork, ForkedRun, PruneRun, PrunedRun, RetentionDue, RunDiff, StateAt, Verified,
};
use serde_json::{Value, json};

use crate::routes::append;
use crate::{Client, Error};

impl Client {
    /// Forks a run. The new run goes on by itself.
    pub async fn fork(&self, run: &str, fork: &Fork, idempotency_key: Option<&str>) -> Result<ForkedRun, Error> {
        self.post(self.url(&["v1", "runs", &format!("{run}:fork")]), fork, idempotency_key).await
    }

    pub async fn diff(&self, a: &str, b: &str) -> Result<RunDiff, Error> {
        let mut url = self.url(&["v1", "runs", &format!("{a}:diff")]);
        append(&mut url, [("against", Some(b.to_owned()))]);
        self.get(url).await
    }

    pub async fn ancestry(&self, run: &str) -> Result<Ancestry, Error> {
        self.get(self.url(&["v1", "runs", run, "ancestry"])).await
    }

    /// Goes through a run's log again on the host, without writing anything down.
    pub async fn verify(&self, run: &str) -> Result<Verified, Error> {
        self.post(self.url(&["v1", "host", "baton", "runs", run, "verify"]), &json!({}), None).await
    }

    /// Everything about a run that may leave the host, in one document, exactly as the host sent it.
    pub async fn debug_bundle(&self, run: &str) -> Result<Value, Error> {
        self.get(self.url(&["v1", "runs", run, "debug-bundle"])).await
    }

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

    /// The same for up to 200 runs. Each succeeds or fails by itself.
    pub async fn bulk_prune(&self, prune: &BulkPrune) -> Result<BulkPruned, Error> {
        self.post(self.url(&["v1", "runs:bulk-prune"]), prune, None).await
    }

    /// What the host's rules would prune now.
    pub async fn retention_due(&self, limit: usize) -> Result<RetentionDue, Error> {
        let mut url = self.url(&["v1", "host", "baton", "retention"]);
        append(&mut url, [("limit", Some(limit.to_string()))]);
        self.get(url).await
    }
}
