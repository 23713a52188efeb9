//! The port to another host. What answers it speaks HTTP; this crate does not.

use async_trait::async_trait;
use baton_model::TraceContext;
use baton_model::{Fault, ForeignCause, RunId, RunStatus, TenantId, UsageSummary};
use serde_json::{Map, Value};

/// A host that runs of this one may have workers on. Each call is one attempt: how long to try is the caller's matter.
#[async_trait]
pub trait RemoteHost: Send + Sync {
    /// What the operator calls it.
    fn name(&self) -> &str;

    /// `https://host[:port]`, as workers are addressed there.
    fn origin(&self) -> &str;

    /// Whether runs of this tenant may have workers there.
    fn serves(&self, tenant: &TenantId) -> bool;

    /// Has a run made there, or finds the one that was made under the same key before.
    async fn hand_over(&self, handover: &RemoteRunRequest) -> Result<Accepted, RemoteFault>;

    /// Where a run stands. With `after`, waits a while for something newer than that.
    async fn look(&self, run: &RunId, after: Option<u64>) -> Result<RemoteRunStatus, RemoteFault>;

    /// Asks for a run to be cancelled. One that has ended stays as it ended.
    async fn cancel(&self, run: &RunId, reason: &str) -> Result<(), RemoteFault>;
}

/// A run to be made on another host.
#[derive(Clone, Debug)]
pub struct RemoteRunRequest {
    /// Names the child's place in its parent: however often it is sent, there is one run.
    pub key: String,
    pub workflow_id: String,
    pub inputs: Map<String, Value>,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    pub trace: Option<TraceContext>,
    pub cause: ForeignCause,
    /// It is not wanted any more: if it was never made, it is made as a cancelled run, so that a copy of the request
    /// that is still under way finds it and starts nothing.
    pub withdrawn: bool,
}

/// A run that exists on another host.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    pub run: RunId,
    /// How the host calls itself, if it says so.
    pub host_id: Option<String>,
    /// Where the run is found.
    pub url: String,
}

/// A run as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteRunStatus {
    pub status: RunStatus,
    /// The newest record that was seen.
    pub seq: u64,
    /// What is left of it, if it has ended.
    pub end: Option<RemoteRunResult>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemoteRunResult {
    pub variables: Map<String, Value>,
    pub error: Option<Fault>,
    /// What it says that it and the runs below it have used.
    pub usage: Option<UsageSummary>,
}

/// Why another host did not do what it was asked. Never holds a credential.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RemoteFault {
    /// No answer, or one that means "later".
    #[error("{why}")]
    Unavailable {
        /// The request may have arrived.
        sent: bool,
        why: String,
    },
    /// It says no, and will say so again.
    #[error("{message} [{code}, HTTP {status}]")]
    Refused { status: u16, code: String, message: String },
}

impl RemoteFault {
    /// The host answers, but does not know the run (any more).
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 410, .. })
    }
}
