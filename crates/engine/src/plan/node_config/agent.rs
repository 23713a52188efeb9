//! Settings of nodes where an agent works, and how the agent is named.

use std::collections::BTreeMap;

use baton_model::workflow::Node;
use baton_model::{AgentPin, Limits, provider_options};
use serde_json::{Map, Number, Value};

use super::config::Config;
use super::model_preference::{MODEL_SETTINGS, ModelPreference};
use crate::plan::problem::Problem;

/// `vendor.baton.agent`: an installed agent works on what the node's inputs say.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) agent_id: String,
    /// The one version that will do, where the node says so.
    pub(crate) version: Option<String>,
    pub(crate) options: AgentOptions,
}

/// An agent as a node names it: whichever version there is when a run starts, or one and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedAgent<'a> {
    pub id: &'a str,
    pub version: Option<&'a str>,
}

impl NamedAgent<'_> {
    /// What its pin is kept under. No agent's id has an `@`.
    pub fn key(self) -> String {
        match self.version {
            Some(version) => format!("{}@{version}", self.id),
            None => self.id.to_owned(),
        }
    }

    /// What a run is pinned to for it. Runs that began before versions counted have one pin for each id.
    pub fn pin(self, pins: &BTreeMap<String, AgentPin>) -> Option<&AgentPin> {
        pins.get(&self.key()).or_else(|| pins.get(self.id))
    }
}

/// How an agent is asked, wherever it is asked from.
#[derive(Debug, Default)]
pub(crate) struct AgentOptions {
    /// Which model it is asked with, and what that must be able to do.
    pub(crate) preference: ModelPreference,
    pub(crate) temperature: Option<Number>,
    /// Room for one answer.
    pub(crate) max_tokens: Option<u64>,
    /// Rounds of tool calls before it has to come to an end, where the node says so.
    pub(crate) max_rounds: Option<u32>,
    /// The tools it may have at most here; its manifest may allow more.
    pub(crate) tools: Option<Vec<String>>,
    /// Without a tool that its manifest names it does not begin.
    pub(crate) require_tools: bool,
    /// Prompts that the node names, by the setting's name.
    pub(crate) prompts: Map<String, Value>,
    /// What only one vendor knows.
    pub(crate) provider_options: Option<Map<String, Value>>,
    /// A doubtful answer that nobody ratifies within this time is rejected.
    pub(crate) hold_timeout_ms: Option<u64>,
}

pub(crate) const AGENT_SETTINGS: &[&str] = &[
    "agentId",
    MODEL_SETTINGS[0],
    MODEL_SETTINGS[1],
    MODEL_SETTINGS[2],
    MODEL_SETTINGS[3],
    "temperature",
    "maxTokens",
    "providerOptions",
    "maxToolRounds",
    "tools",
    "requireTools",
    "systemPromptRef",
    "userPromptRef",
    "fewShotPromptRefs",
    "schemaHintPromptRef",
    "escalationTimeoutMs",
];

const PROMPTS: &[&str] = &["systemPromptRef", "userPromptRef", "fewShotPromptRefs", "schemaHintPromptRef"];
const YEAR_MS: u64 = 31_536_000_000;

/// Which agent a node names: its pin, else its configuration.
pub(crate) fn named(config: &Config<'_>, node: &Node) -> Result<Option<String>, Vec<Problem>> {
    let pinned = node.agent.as_ref().and_then(|agent| agent.get("agentId")).and_then(Value::as_str);
    let configured = config.text("agentId")?;
    if let (Some(pinned), Some(configured)) = (pinned, &configured)
        && pinned != configured
    {
        return Err(config.problem("agentId", format!("The node is pinned to `{pinned}`, not to `{configured}`.")));
    }
    let id = pinned.map(str::to_owned).or(configured);
    match id {
        Some(id) if !(3..=256).contains(&id.chars().count()) => {
            Err(config.problem("agentId", "An agent id has 3 to 256 characters."))
        }
        id => Ok(id),
    }
}

/// The version that a node is pinned to. Whatever is no text is no version that anybody has: such a run does not begin.
pub(crate) fn version(node: &Node) -> Option<String> {
    match node.agent.as_ref()?.get("version")? {
        Value::Null => None,
        Value::String(version) => Some(version.clone()),
        other => Some(other.to_string()),
    }
}

impl Agent {
    pub(crate) fn compile(config: &Config<'_>, node: &Node) -> Result<Self, Vec<Problem>> {
        config.only(AGENT_SETTINGS)?;
        let agent_id = named(config, node)?.ok_or_else(|| {
            config.problem("agentId", "An agent node needs `agentId`. `baton agent list` shows them.")
        })?;
        Ok(Self { agent_id, version: version(node), options: AgentOptions::compile(config)? })
    }
}

impl AgentOptions {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let temperature = match config.get("temperature") {
            None => None,
            Some(Value::Number(n)) if n.as_f64().is_some_and(|t| (0.0..=2.0).contains(&t)) => Some(n.clone()),
            Some(_) => return Err(config.problem("temperature", "`temperature` is a number from 0 to 2.")),
        };
        let tools = match config.get("tools") {
            None => None,
            Some(list) => Some(
                serde_json::from_value(list.clone())
                    .map_err(|_| config.problem("tools", "`tools` lists tool ids such as \"openwop:http.fetch\"."))?,
            ),
        };
        let require_tools = match config.get("requireTools") {
            None => false,
            Some(Value::Bool(required)) => *required,
            Some(_) => return Err(config.problem("requireTools", "`requireTools` is true or false.")),
        };
        let provider_options = match config.get("providerOptions").map(provider_options::check) {
            None => None,
            Some(Ok(options)) => Some(options.clone()),
            Some(Err(wrong)) => {
                let key = match wrong.key.as_str() {
                    "" => "providerOptions".to_owned(),
                    key => format!("providerOptions/{}", key.replace('~', "~0").replace('/', "~1")),
                };
                return Err(config.problem(&key, wrong.message));
            }
        };
        let prompts = PROMPTS.iter().filter_map(|key| Some(((*key).to_owned(), config.get(key)?.clone()))).collect();
        Ok(Self {
            preference: ModelPreference::compile(config)?,
            temperature,
            max_tokens: config.whole("maxTokens", 1, 1_000_000)?,
            max_rounds: config
                .whole("maxToolRounds", 0, Limits::MOST_TOOL_ROUNDS.into())?
                .and_then(|rounds| u32::try_from(rounds).ok()),
            tools,
            require_tools,
            provider_options,
            prompts,
            hold_timeout_ms: config.whole("escalationTimeoutMs", 1, YEAR_MS)?,
        })
    }
}
