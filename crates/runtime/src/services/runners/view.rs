//! What callers are shown of runners.

use baton_model::Timestamp;
use serde::Deserialize;

use super::board::RunnerState;
use super::rows::RunnerCapabilities;

/// A runner signs in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerRegistration {
    pub runner_id: String,
    pub subject: String,
    pub capabilities: RunnerCapabilities,
}

/// A runner as callers of its subject see it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerView {
    pub runner_id: String,
    pub subject: String,
    pub pool: Option<String>,
    pub version: Option<String>,
    pub tools: Vec<String>,
    pub max_concurrency: usize,
    pub in_flight: usize,
    pub connected: bool,
    pub draining: bool,
    pub registered_at: Timestamp,
    pub last_seen_at: Timestamp,
}

impl RunnerView {
    pub(super) fn of(state: &RunnerState) -> Self {
        let registration = &*state.registration;
        let tools = registration.tool_names();
        Self {
            runner_id: registration.runner_id.clone(),
            subject: registration.subject.clone(),
            pool: registration.pool.clone(),
            version: registration.version.clone(),
            tools,
            max_concurrency: registration.max_concurrency,
            in_flight: state.in_flight,
            connected: state.connected,
            draining: registration.draining,
            registered_at: registration.registered_at,
            last_seen_at: state.seen_at,
        }
    }
}
