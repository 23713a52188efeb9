//! The part of a node's settings that says which tool it calls by itself, and with what.

use baton_model::OutcomePolicy;
use baton_model::tool::RunnerRequirement;
use serde_json::Value;

use super::config::Config;
use crate::expr::Expression;
use crate::plan::problem::Problem;

/// The settings that are read here.
pub(super) const KEYS: [&str; 6] =
    ["tool", "arguments", "argumentsExpression", "outcomePolicy", "waitForRunnerMs", "runnerVersion"];

/// Nothing outside takes longer: a day.
pub(super) const LONGEST_CALL_MS: u64 = 24 * 60 * 60 * 1000;

/// A tool of the catalogue, found when the node runs.
#[derive(Debug)]
pub(crate) struct CalledTool {
    pub(crate) id: String,
    /// What is done when nobody knows whether a call took place; none: what the tool says.
    pub(crate) outcome_policy: Option<OutcomePolicy>,
    pub(crate) runner: RunnerRequirement,
}

/// Where a value comes from that a node hands on.
#[derive(Debug)]
pub(crate) enum Given {
    /// From nowhere in particular: the node's input ports, or the item of a map.
    Default,
    Value(Value),
    Expression(Expression),
}

impl Given {
    /// `key`, or `keyExpression`, or neither.
    pub(super) fn read(config: &Config<'_>, key: &str) -> Result<Self, Vec<Problem>> {
        let computed = format!("{key}Expression");
        match (config.get(key), config.expression(&computed)?) {
            (None, None) => Ok(Self::Default),
            (Some(value), None) => Ok(Self::Value(value.clone())),
            (None, Some(expression)) => Ok(Self::Expression(expression)),
            (Some(_), Some(_)) => Err(config.problem(key, format!("Give either `{key}` or `{computed}`."))),
        }
    }

    pub(crate) fn expression(&self) -> Option<&Expression> {
        match self {
            Self::Expression(expression) => Some(expression),
            Self::Default | Self::Value(_) => None,
        }
    }
}

impl CalledTool {
    pub(super) fn read(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let id = config.required_text("tool")?;
        let of_server = ["mcp:", "runner:"].iter().find_map(|kind| id.strip_prefix(kind));
        if of_server.is_some_and(|rest| !rest.contains('.')) {
            let message = format!("`{id}` names all tools of a server. Name one of them, such as `{id}.search`.");
            return Err(config.problem("tool", message));
        }
        let policy = config.choice("outcomePolicy", "retry, verify, ask, fail")?;
        if policy == Some(OutcomePolicy::Verify) && !id.starts_with("openwop:http") {
            let message = "Only calls over HTTP can be looked up. Use retry, ask or fail.";
            return Err(config.problem("outcomePolicy", message));
        }
        let wait_ms = config.whole("waitForRunnerMs", 0, LONGEST_CALL_MS)?;
        let version = config.text("runnerVersion")?;
        if version.as_deref().is_some_and(|version| version.trim().is_empty()) {
            return Err(config.problem("runnerVersion", "`runnerVersion` is a range such as \"^1.2\"."));
        }
        Ok(Self { id, outcome_policy: policy, runner: RunnerRequirement { wait_ms, version } })
    }
}

/// Arguments that stand in the settings are an object.
pub(super) fn arguments(config: &Config<'_>) -> Result<Given, Vec<Problem>> {
    match Given::read(config, "arguments")? {
        Given::Value(value) if !value.is_object() => {
            Err(config.problem("arguments", "`arguments` is an object: the tool's arguments by name."))
        }
        given => Ok(given),
    }
}
