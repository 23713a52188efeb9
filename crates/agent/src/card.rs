//! From a manifest and the files of its pack to an agent that can be used.

use baton_model::{AgentCard, code};
use serde_json::Value;

use crate::files::{Files, Inside};
use crate::manifest::{AgentManifest, PromptSource};
use crate::pack::PackManifest;
use crate::problem::Problem;
use crate::schema;

/// An agent of a pack: what its manifest says, and the card that runs are pinned to.
#[derive(Clone, Debug)]
pub struct PackAgent {
    pub manifest: AgentManifest,
    pub card: AgentCard,
}

/// Reads the files a manifest refers to. Any that cannot be used fails the manifest.
pub(crate) fn agent(
    manifest: AgentManifest,
    at: &str,
    pack: &PackManifest,
    files: &Files,
) -> Result<PackAgent, Vec<Problem>> {
    let mut reader = Reader { files, problems: Vec::new() };
    let system_prompt = match &manifest.prompt {
        PromptSource::Inline(text) => Some(text.clone()),
        PromptSource::File(path) => reader.prompt(path, &format!("{at}/systemPromptRef")),
    };
    let handoff = manifest.handoff.clone().unwrap_or_default();
    let task_schema = reader.schema(handoff.task.as_deref(), &format!("{at}/handoff/taskSchemaRef"));
    let return_schema = reader.schema(handoff.answer.as_deref(), &format!("{at}/handoff/returnSchemaRef"));
    if let Some(path) = &manifest.eval_suite {
        reader.json(path, &format!("{at}/evalSuiteRef"));
    }
    let problems = reader.problems;
    let Some(system_prompt) = system_prompt.filter(|_| problems.is_empty()) else { return Err(problems) };
    let card = AgentCard {
        agent_id: manifest.agent_id.clone(),
        persona: manifest.persona.clone(),
        label: manifest.label.clone().unwrap_or_else(|| manifest.persona.clone()),
        description: manifest.description.clone(),
        pack_name: pack.name.clone(),
        pack_version: pack.version.to_string(),
        model_class: manifest.model_class,
        system_prompt,
        tools: manifest.tools.clone(),
        memory: manifest.memory.unwrap_or_default(),
        threshold: manifest.threshold,
        task_schema,
        return_schema,
        prompt_overrides: manifest.prompt_overrides.clone(),
        prompt_library: manifest.prompt_library.clone(),
    };
    Ok(PackAgent { manifest, card })
}

struct Reader<'a> {
    files: &'a Files,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, at: &str, message: String) {
        self.problems.push(Problem::new(code::INVALID_MANIFEST, at, message));
    }

    fn text(&mut self, path: &str, at: &str) -> Option<String> {
        let inside = match Inside::read(path) {
            Ok(inside) => inside,
            Err(why) => {
                self.problem(at, format!("The path `{path}` {why}."));
                return None;
            }
        };
        match self.files.text(&inside) {
            Ok(text) => Some(text),
            Err(why) => {
                self.problem(at, format!("`{path}` {why}. Put a UTF-8 file of that name into the pack."));
                None
            }
        }
    }

    fn prompt(&mut self, path: &str, at: &str) -> Option<String> {
        let text = self.text(path, at)?;
        if text.trim().is_empty() {
            self.problem(at, format!("`{path}` is empty; write the agent's prompt into it."));
            return None;
        }
        Some(text)
    }

    fn json(&mut self, path: &str, at: &str) -> Option<Value> {
        let text = self.text(path, at)?;
        match serde_json::from_str(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.problem(at, format!("`{path}` is not JSON: {error}."));
                None
            }
        }
    }

    fn schema(&mut self, path: Option<&str>, at: &str) -> Option<Value> {
        let path = path?;
        let schema = self.json(path, at)?;
        match schema::check(&schema) {
            Ok(()) => Some(schema),
            Err(why) => {
                let message =
                    format!("`{path}` is no JSON Schema 2020-12 that stands on its own: {why}. Keep it in one file.");
                self.problem(at, message);
                None
            }
        }
    }
}
