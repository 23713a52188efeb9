//! Settings of a node that calls one tool of the catalogue.

use serde::Deserialize;

use super::called_tool::{self, CalledTool, Given, LONGEST_CALL_MS};
use super::config::Config;
use crate::expr::Expression;
use crate::plan::ports::{Origin, Port};
use crate::plan::problem::Problem;

/// What becomes of a node whose tool says that it failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OnToolError {
    #[default]
    Fail,
    Return,
}

/// `vendor.baton.tool`: one call of a tool, announced before it is made.
#[derive(Debug)]
pub(crate) struct ToolStep {
    pub(crate) tool: CalledTool,
    pub(crate) arguments: Given,
    pub(crate) into: Option<String>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) on_tool_error: OnToolError,
}

impl ToolStep {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let known: Vec<&str> = called_tool::KEYS.into_iter().chain(["into", "timeoutMs", "onToolError"]).collect();
        config.only(&known)?;
        Ok(Self {
            tool: CalledTool::read(config)?,
            arguments: called_tool::arguments(config)?,
            into: config.text("into")?,
            timeout_ms: config.whole("timeoutMs", 1, LONGEST_CALL_MS)?,
            on_tool_error: config.choice("onToolError", "fail, return")?.unwrap_or_default(),
        })
    }

    /// What its arguments are computed by; none where they are the node's inputs, or stand in the settings.
    pub(crate) fn sends(&self) -> Option<&Expression> {
        self.arguments.expression()
    }

    pub(crate) fn sends_inputs(&self) -> bool {
        matches!(self.arguments, Given::Default)
    }

    pub(crate) fn stores<'a>(&'a self, inputs: &'a [(String, Port)]) -> Vec<(&'a str, Origin<'a>)> {
        let Some(into) = self.into.as_deref() else { return Vec::new() };
        match &self.arguments {
            Given::Default => inputs.iter().map(|(name, _)| (into, Origin::Port(name))).collect(),
            Given::Value(_) => Vec::new(),
            Given::Expression(expression) => vec![(into, Origin::Expression(expression))],
        }
    }

    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        self.into.as_deref().map(|into| ("result", into))
    }
}
