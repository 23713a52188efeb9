//! Agents as their packs describe them, with texts where a manifest has references.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::memory::MemoryEntry;
use crate::tool::ToolSpec;
use crate::{Digest, Limits, Provenance};

/// An installed agent. Runs are pinned to the digest of one, so that a later version of its pack never reaches a run
/// that is under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentCard {
    pub agent_id: String,
    pub persona: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub pack_name: String,
    pub pack_version: String,
    pub model_class: ModelClass,
    pub system_prompt: String,
    /// What may be called, as `scope:tool`. Nothing unless it is here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    #[serde(default)]
    pub memory: MemoryShape,
    /// How sure it has to be, where the manifest says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// What a task must look like, and what an answer must look like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_schema: Option<Value>,
    /// Prompts by kind that stand in where the agent has no text of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prompt_overrides: BTreeMap<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_library: Option<String>,
}

impl AgentCard {
    pub fn digest(&self) -> Digest {
        Digest::of_json(&serde_json::to_value(self).unwrap_or_default())
    }

    /// The reference that stands for the agent's own prompt.
    pub fn prompt_ref(&self) -> String {
        let id: String = self.agent_id.to_lowercase().chars().take(128).collect();
        format!("prompt:{id}@{}", self.pack_version)
    }
}

/// What kind of model an agent is made for. The host says which model that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelClass {
    Reasoning,
    Writing,
    Coding,
    Research,
    Classification,
    General,
}

impl ModelClass {
    pub const ALL: &'static [Self] =
        &[Self::Reasoning, Self::Writing, Self::Coding, Self::Research, Self::Classification, Self::General];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Writing => "writing",
            Self::Coding => "coding",
            Self::Research => "research",
            Self::Classification => "classification",
            Self::General => "general",
        }
    }

    pub fn read(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|class| class.as_str() == word)
    }
}

/// What an agent wants to remember, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryShape {
    pub scratchpad: bool,
    pub conversation: bool,
    pub long_term: bool,
}

impl MemoryShape {
    pub const fn any(self) -> bool {
        self.scratchpad || self.conversation || self.long_term
    }
}

/// What a run is pinned to for one agent, from its start on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentPin {
    pub card: Digest,
    /// The model that the host's table has for the agent's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelChoice>,
}

/// A provider and one of its models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    pub provider: String,
    pub model: String,
}

impl ModelChoice {
    /// As it is written in configurations: `provider/model`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Reads `provider/model`; the model may have slashes of its own.
    pub fn read(text: &str) -> Option<Self> {
        let (provider, model) = text.split_once('/')?;
        let named = !provider.is_empty() && !model.is_empty();
        named.then(|| Self { provider: provider.to_ascii_lowercase(), model: model.to_owned() })
    }
}

/// Through which door an agent was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InvocationSource {
    #[default]
    WorkflowNode,
    RunApi,
    ChatMention,
}

/// Everything one invocation of an agent works from, recorded when it begins: after that the world is not asked again
/// what the agent is, which tools it has or what it remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InvocationContext {
    pub card: AgentCard,
    pub model: ModelChoice,
    pub task: Value,
    /// What it may call: offered by the host, allowed by the manifest, granted by its parents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// What its manifest names and nothing here answers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_tools: Vec<String>,
    /// What it remembers, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryEntry>,
    /// For a supervisor: what has happened so far, and the files of its workspace.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub situation: Map<String, Value>,
    /// Prompts that were found for it, by layer; see [`Prompted`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Prompted>,
    /// How often it may say what to the host.
    #[serde(default, skip_serializing_if = "TurnBounds::is_usual")]
    pub bounds: TurnBounds,
    /// The log shows the texts of its prompts, not only their digests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub show_prompts: bool,
    /// Whose words the task and the variables are. Older briefs do not say, and are told without fences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origins: Option<Box<Origins>>,
    /// What was said before in the same conversation, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Spoken>,
}

/// A run's place in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationTurn {
    pub conversation: String,
    /// From 1.
    pub turn: u64,
}

/// One earlier turn of a conversation: what was asked, and what was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spoken {
    pub turn: u64,
    /// Who was asked; none where it was a workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub asked: Map<String, Value>,
    /// Where the question is from.
    pub origin: Provenance,
    /// None where the run had no answer; `outcome` says how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Somebody put other words in the place of the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    pub outcome: String,
}

/// Where what an agent is told is from, by name. What is missing here is the words of whoever wrote the workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origins {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub task: BTreeMap<String, Provenance>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Provenance>,
}

/// How often an agent may send which envelopes, as the host advertises it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnBounds {
    /// Questions to people, in one invocation.
    pub clarification_rounds: u32,
    /// Questions for a schema and envelopes that break one, in one invocation.
    pub schema_rounds: u32,
    /// Envelopes in one answer of the model.
    pub envelopes_per_turn: u32,
    /// Rounds of tool calls, where neither the node nor the run says how many.
    #[serde(default = "TurnBounds::rounds_before")]
    pub tool_rounds: u32,
}

impl TurnBounds {
    pub fn of(limits: &Limits) -> Self {
        Self {
            clarification_rounds: limits.clarification_rounds,
            schema_rounds: limits.schema_rounds,
            envelopes_per_turn: limits.envelopes_per_turn,
            tool_rounds: limits.tool_rounds.clamp(1, Limits::MOST_TOOL_ROUNDS),
        }
    }

    /// What it was for everybody before it could be set.
    const fn rounds_before() -> u32 {
        8
    }

    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for TurnBounds {
    fn default() -> Self {
        Self { clarification_rounds: 3, schema_rounds: 2, envelopes_per_turn: 5, tool_rounds: Self::rounds_before() }
    }
}

/// How the prompt of one kind was found: every layer that was tried, and the text of the one that had it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompted {
    /// `system`, `user`, `few-shot` or `schema-hint`.
    pub kind: String,
    pub chain: Vec<PromptLayer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// The composed text; secrets are markers in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variable_hashes: BTreeMap<String, String>,
    /// Something untrusted is in it, fenced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// One place where a prompt was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptLayer {
    pub layer: String,
    pub applied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
