//! How owners, runners and steps are called in the store: by digests, because what they are made of may be long.

use baton_model::{Digest, RunId, TenantId};
use serde_json::json;

/// Whose a runner is, and whose steps it does: a tenant, and on whose behalf within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunnerOwner {
    pub tenant: TenantId,
    pub subject: String,
}

impl RunnerOwner {
    pub(crate) fn key(&self) -> String {
        Digest::of_json(&json!([self.tenant, self.subject])).as_str().to_owned()
    }

    pub(crate) fn runner_key(&self, id: &str) -> String {
        Digest::of_json(&json!([self.tenant, self.subject, id])).as_str().to_owned()
    }
}

pub(crate) fn step_key(run: &RunId, step: &str) -> String {
    Digest::of_json(&json!([run, step])).as_str().to_owned()
}
