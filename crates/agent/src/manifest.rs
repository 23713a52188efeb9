//! One agent, as a pack's `agents[]` describes it.

use std::collections::BTreeMap;

use baton_model::{MemoryShape, ModelClass, code};
use serde_json::Value;

use crate::names;
use crate::problem::Problem;
use crate::prompts::{PromptKind, PromptRef};
use crate::shape::{self, Fields, Text, quoted};

/// A manifest whose every field keeps its rules. Files it refers to have not been looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentManifest {
    pub agent_id: String,
    pub persona: String,
    pub label: Option<String>,
    pub description: Option<String>,
    pub model_class: ModelClass,
    pub prompt: PromptSource,
    /// What it may call. An absent list is an empty one.
    pub tools: Vec<String>,
    pub requires: Vec<String>,
    pub memory: Option<MemoryShape>,
    pub threshold: Option<f64>,
    pub handoff: Option<Handoff>,
    pub prompt_library: Option<String>,
    pub prompt_overrides: BTreeMap<String, Value>,
    pub eval_suite: Option<String>,
    pub role: Option<Role>,
}

/// Where an agent's own prompt is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptSource {
    Inline(String),
    File(String),
}

/// The files that say what goes in and what comes out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handoff {
    pub task: Option<String>,
    pub answer: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Does one thing and keeps nothing.
    Skill,
    /// Talks and remembers.
    Assistant,
}

impl AgentManifest {
    /// Reads the manifest at `at` of the pack `pack`.
    pub fn read(value: &Value, at: &str, pack: &str) -> Result<Self, Vec<Problem>> {
        let mut problems = Vec::new();
        let manifest = shape::object(value, at, code::INVALID_MANIFEST, &mut problems, |fields| {
            let manifest = read(fields, pack);
            if let Some(manifest) = &manifest {
                role_rules(manifest, fields);
            }
            manifest
        });
        match manifest.flatten() {
            Some(manifest) if problems.is_empty() => Ok(manifest),
            _ => Err(problems),
        }
    }
}

fn read(fields: &mut Fields<'_, '_>, pack: &str) -> Option<AgentManifest> {
    let id = Text::between(3, 256).which(names::is_agent_id, names::AGENT_ID);
    let agent_id = fields.required_text("agentId", id);
    if let Some(id) = agent_id.as_deref().filter(|id| !names::belongs(id, pack)) {
        fields.problem("agentId", format!("`{id}` is not in the name space of its pack; call it `{pack}.<name>`."));
    }
    let persona = fields.required_text("persona", Text::between(1, 200));
    let model_class = model_class(fields);
    let prompt = prompt(fields);
    let mut tools: Vec<String> = Vec::new();
    for tool in fields
        .texts("toolAllowlist", 256, Text::between(1, 256).which(names::is_tool_id, names::TOOL_ID))
        .unwrap_or_default()
    {
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    let requires = fields.texts("requiresCapabilities", 64, Text::between(1, 256)).unwrap_or_default();
    if let Some(twice) = requires.iter().enumerate().find_map(|(at, key)| requires[..at].contains(key).then_some(key)) {
        fields.problem("requiresCapabilities", format!("`{twice}` is listed twice; once is enough."));
    }
    let memory = fields.nested("memoryShape", |shape| MemoryShape {
        scratchpad: shape.flag("scratchpad").unwrap_or(false),
        conversation: shape.flag("conversation").unwrap_or(false),
        long_term: shape.flag("longTerm").unwrap_or(false),
    });
    let threshold = fields.nested("confidence", |shape| shape.number("defaultThreshold", 0.0, 1.0)).flatten();
    let handoff = fields.nested("handoff", |shape| Handoff {
        task: shape.text("taskSchemaRef", Text::NOT_EMPTY),
        answer: shape.text("returnSchemaRef", Text::NOT_EMPTY),
    });
    let label = fields.text("label", Text::between(1, 100));
    let description = fields.text("description", Text::up_to(500));
    let library = fields.text("promptLibraryRef", Text::ANY.which(names::is_template_id, names::TEMPLATE_ID));
    let prompt_overrides = prompt_overrides(fields);
    let eval_suite = fields.text("evalSuiteRef", Text::NOT_EMPTY);
    let role = fields.word("role", &["skill", "assistant"]).map(|word| match word.as_str() {
        "skill" => Role::Skill,
        _ => Role::Assistant,
    });
    Some(AgentManifest {
        agent_id: agent_id?,
        persona: persona?,
        label,
        description,
        model_class: model_class?,
        prompt: prompt?,
        tools,
        requires,
        memory,
        threshold,
        handoff,
        prompt_library: library,
        prompt_overrides,
        eval_suite,
        role,
    })
}

fn model_class(fields: &mut Fields<'_, '_>) -> Option<ModelClass> {
    let word = fields.required_text("modelClass", Text::ANY)?;
    let class = ModelClass::read(&word);
    if class.is_none() {
        let words: Vec<&str> = ModelClass::ALL.iter().map(|class| class.as_str()).collect();
        fields.problem("modelClass", format!("`modelClass` is one of {}.", quoted(&words)));
    }
    class
}

fn prompt(fields: &mut Fields<'_, '_>) -> Option<PromptSource> {
    let (both, neither) = match (fields.has("systemPrompt"), fields.has("systemPromptRef")) {
        (true, true) => (true, false),
        (false, false) => (false, true),
        _ => (false, false),
    };
    let inline = fields.text("systemPrompt", Text::NOT_EMPTY).map(PromptSource::Inline);
    let file = fields.text("systemPromptRef", Text::NOT_EMPTY).map(PromptSource::File);
    if both || neither {
        let which = if both { "both are there; keep one" } else { "neither is there; add one" };
        fields.problem("", format!("Exactly one of `systemPrompt` and `systemPromptRef`: {which}."));
        return None;
    }
    inline.or(file)
}

fn prompt_overrides(fields: &mut Fields<'_, '_>) -> BTreeMap<String, Value> {
    let read = fields.nested("promptOverrides", |kinds| {
        let mut overrides = BTreeMap::new();
        for kind in PromptKind::ALL {
            let Some(value) = kinds.value(kind.as_str()) else { continue };
            match PromptRef::read(value) {
                Ok(_) => drop(overrides.insert(kind.as_str().to_owned(), value.clone())),
                Err(error) => kinds.problem(kind.as_str(), error.to_string()),
            }
        }
        overrides
    });
    read.unwrap_or_default()
}

/// A skill is handed a task and hands back an answer; it keeps nothing between two of them.
fn role_rules(manifest: &AgentManifest, fields: &mut Fields<'_, '_>) {
    if manifest.role != Some(Role::Skill) {
        return;
    }
    if manifest.handoff.is_none() {
        fields.problem("role", "A `skill` says what it takes and gives: add `handoff`, or make it an `assistant`.");
    }
    let memory = manifest.memory.unwrap_or_default();
    for (kept, name) in [(memory.conversation, "conversation"), (memory.long_term, "longTerm")] {
        if kept {
            let message = format!("A `skill` has no `{name}` memory: set it to false, or make it an `assistant`.");
            fields.problem("memoryShape", message);
        }
    }
}
