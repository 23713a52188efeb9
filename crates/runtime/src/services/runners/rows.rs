//! What the rows of runners and steps say beside their columns, and what callers send and are shown of runners.

use baton_model::{Digest, NodeId, RunId, TenantId, Timestamp, TraceContext};
use baton_store::{RunnerRow, StepRow, StepState};
use baton_tool::runner::ListedTool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::MOST_GIVEN;
use super::names::{RunnerOwner, step_key};

/// How many steps a runner does at a time if it does not say.
pub(crate) const DEFAULT_CONCURRENCY: usize = 4;

/// What a runner can do, as the registration frame has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerCapabilities {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// One tool of a runner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerToolListing {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl RunnerToolListing {
    pub(super) fn listed(&self) -> ListedTool {
        let Self { name, title, description, input_schema, output_schema } = self.clone();
        ListedTool { name, title, description, input_schema, output_schema }
    }
}

/// What a runner says of its tools beyond their names.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunnerTools {
    pub pool: String,
    #[serde(default)]
    pub version: Option<String>,
    #[serde(default = "default_concurrency")]
    pub max_concurrency: usize,
    pub tools: Vec<RunnerToolListing>,
}

const fn default_concurrency() -> usize {
    DEFAULT_CONCURRENCY
}

/// A runner that signed in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Registration {
    pub(crate) tenant: TenantId,
    pub(crate) subject: String,
    pub(crate) runner_id: String,
    pub(crate) token_id: String,
    pub(crate) capabilities: RunnerCapabilities,
    pub(crate) pool: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) max_concurrency: usize,
    pub(crate) tools: Vec<RunnerToolListing>,
    /// How much that is.
    #[serde(default)]
    pub(crate) listed_bytes: usize,
    pub(crate) draining: bool,
    pub(crate) registered_at: Timestamp,
    /// Numbers below this may have been given to its steps.
    pub(crate) seq_limit: u64,
    /// Of its row.
    pub(crate) row_version: u64,
    pub(crate) epoch: u64,
    pub(crate) seen_at: Timestamp,
}

impl Registration {
    pub(crate) fn owner(&self) -> RunnerOwner {
        RunnerOwner { tenant: self.tenant.clone(), subject: self.subject.clone() }
    }

    /// The tools that it brings, by their whole names: what it listed last, else what it said when it signed in.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        match &self.pool {
            Some(pool) => self.tools.iter().map(|tool| format!("{pool}.{}", tool.name)).collect(),
            None => self.capabilities.tools.clone(),
        }
    }

    /// What it says of a tool. Of one that it only named nothing is known: whoever calls has to know what it takes.
    pub(crate) fn listed(&self, name: &str) -> ListedTool {
        let known = self.tools.iter().filter(|_| self.pool.is_some()).find(|tool| tool.name == name);
        known.map_or_else(|| ListedTool::named(name), RunnerToolListing::listed)
    }

    /// Whether callers are offered the same.
    pub(crate) fn offers_like(&self, other: &Self) -> bool {
        let of = |all: &Self| (all.pool.clone(), all.registered_at, all.capabilities.tools.clone());
        of(self) == of(other) && self.tools == other.tools
    }

    /// Whether it does this, by the whole name of the tool: what it listed last, else what it said when it signed in.
    pub(crate) fn does(&self, tool: &str) -> bool {
        if let Some((provider, model)) = model_of(tool) {
            let models = &self.capabilities.models;
            let has = |list: &[String], word: &str| list.iter().any(|known| known == word);
            return has(&self.capabilities.providers, provider) && (models.is_empty() || has(models, model));
        }
        match &self.pool {
            Some(pool) => {
                let name = tool.strip_prefix(pool.as_str()).and_then(|rest| rest.strip_prefix('.'));
                name.is_some_and(|name| self.tools.iter().any(|listed| listed.name == name))
            }
            None => self.capabilities.tools.iter().any(|name| name == tool),
        }
    }

    pub(crate) fn row(&self) -> RunnerRow {
        RunnerRow {
            key: self.owner().runner_key(&self.runner_id),
            version: self.row_version,
            epoch: self.epoch,
            seen_at: self.seen_at,
            body: serde_json::to_string(self).unwrap_or_default(),
        }
    }

    pub(crate) fn read(row: &RunnerRow) -> Option<Self> {
        let read: Self = serde_json::from_str(&row.body).ok()?;
        Some(Self { row_version: row.version, epoch: row.epoch, seen_at: row.seen_at, ..read })
    }
}

/// What a step of a model asks of a runner. Pools have no colon in their names.
pub(crate) fn model_step(provider: &str, model: &str) -> String {
    format!("{MODEL}{provider}/{model}")
}

/// The provider and the model that a step asks for, if it asks for one.
pub(crate) fn model_of(tool: &str) -> Option<(&str, &str)> {
    tool.strip_prefix(MODEL).and_then(|rest| rest.split_once('/'))
}

const MODEL: &str = "model:";

/// To whom a step was given, under which number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Given {
    pub(crate) runner: String,
    pub(crate) seq: u64,
}

/// One call of a tool that a runner is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) tenant: TenantId,
    pub(crate) subject: String,
    pub(crate) run: RunId,
    pub(crate) step_id: String,
    pub(crate) node: NodeId,
    /// `<pool>.<tool>`.
    pub(crate) tool: String,
    /// Which versions of a runner will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) inputs: Map<String, Value>,
    pub(crate) timeout_ms: u64,
    /// How often the call was taken up again; a runner is not told.
    #[serde(default)]
    pub(crate) again: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<TraceContext>,
}

impl Step {
    pub(crate) fn owner(&self) -> RunnerOwner {
        RunnerOwner { tenant: self.tenant.clone(), subject: self.subject.clone() }
    }

    pub(crate) fn key(&self) -> String {
        step_key(&self.run, &self.step_id)
    }
}

/// A step's row, beyond its columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepBody {
    #[serde(flatten)]
    pub(crate) step: Step,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) given: Vec<Given>,
    /// Of its output, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<Digest>,
    /// Until when the runner that has it counts as alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    /// What came of a step that no run waits for; that of a run is on its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Map<String, Value>>,
    /// The session that gave it to a runner.
    #[serde(default)]
    pub(crate) epoch: u64,
}

impl StepBody {
    pub(crate) fn read(row: &StepRow) -> Option<Self> {
        serde_json::from_str(&row.body).ok()
    }

    pub(crate) fn row(&self, state: StepState, version: u64, at: Timestamp) -> StepRow {
        let body = serde_json::to_string(self).unwrap_or_default();
        StepRow {
            key: self.step.key(),
            run: self.step.run.clone(),
            owner: self.step.owner().key(),
            state,
            version,
            at,
            body,
        }
    }

    /// Too many runners gave it back.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given.len() >= MOST_GIVEN
    }

    /// The same without what it was asked: all that is needed once it is over.
    pub(crate) fn over(&self, digest: Option<Digest>) -> Self {
        let step = Step { inputs: Map::new(), trace: None, ..self.step.clone() };
        Self { step, digest, until: None, ..self.clone() }
    }
}
