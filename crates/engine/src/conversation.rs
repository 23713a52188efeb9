//! What an agent's model is asked: its prompts, what it remembers, its task, and everything that was said and called
//! since. Whatever somebody else wrote stands in a fence.

use baton_model::cache_key::Message;
use baton_model::{Brief, SemanticRequest, ToolOutcome, ToolSpec, fence_from};
use serde_json::{Map, Value, json};

use crate::invocation::Invocation;
use crate::nodes::{Kind, Manner};
use crate::transcript::Transcript;

/// What a model is shown of one tool's answer.
const MOST_RESULT_CHARS: usize = 60_000;

impl Invocation {
    /// What the model is asked, before any of its attempts.
    pub(crate) fn request(&self, kind: &Kind, manner: &Manner) -> SemanticRequest {
        let brief = &self.brief;
        let mut messages = Vec::new();
        let prompts = |kind: &'static str| {
            let of_kind = brief.prompts.iter().filter(move |prompt| prompt.kind == kind);
            of_kind.filter_map(|prompt| prompt.text.clone())
        };
        let mut system: Vec<String> = prompts("system").chain(prompts("schema-hint")).collect();
        if !brief.memory.is_empty() {
            system.push(remembered(brief));
        }
        if !system.is_empty() {
            messages.push(Message::new("system", system.join("\n\n")));
        }
        messages.extend(prompts("few-shot").map(|text| Message::new("user", text)));
        let wish = match prompts("user").next() {
            None => task(brief),
            // A supervisor is told where it stands whatever it is asked.
            Some(text) if self.transcript.is_some() => with_situation(text, brief),
            Some(text) => text,
        };
        messages
            .push(Message::new("user", format!("{wish}{}", self.transcript.as_ref().map_or_else(String::new, before))));
        for round in &self.rounds {
            messages.push(Message::said(&round.reply));
            messages.extend(round.calls.iter().filter_map(|call| {
                let outcome = call.outcome.as_ref()?;
                Some(Message::tool(&call.asked, shown(&call.asked.name, outcome)))
            }));
        }
        let tool = |spec: &ToolSpec| json!({"name": spec.id, "description": spec.description, "inputSchema": spec.input_schema});
        let format = |schema: &Value| json!({"type": "json_schema", "name": "answer", "schema": schema});
        SemanticRequest {
            provider: brief.model.provider.clone(),
            model: brief.model.model.clone(),
            messages,
            tools: brief.tools.iter().map(tool).collect(),
            temperature: manner.temperature.clone(),
            top_p: None,
            top_k: None,
            max_output_tokens: manner.max_tokens,
            seed: None,
            stop: None,
            response_format: self.answer_schema(kind).map(format),
            safety_settings: None,
            provider_options: None,
        }
    }
}

/// The task as a message: a text as it stands, anything else as JSON; and for a supervisor what has happened so far.
fn task(brief: &Brief) -> String {
    let task = match &brief.task {
        Value::String(text) => text.clone(),
        Value::Object(map) if map.len() == 1 => match map.get("task").or_else(|| map.get("text")) {
            Some(Value::String(text)) => text.clone(),
            _ => pretty(&brief.task),
        },
        other => pretty(other),
    };
    if brief.situation.is_empty() {
        return task;
    }
    with_situation(if brief.task.as_object().is_some_and(Map::is_empty) { String::new() } else { task }, brief)
}

/// What a supervisor is asked, and where it stands.
fn with_situation(wish: String, brief: &Brief) -> String {
    let situation = pretty(&Value::Object(brief.situation.clone()));
    let wish = if wish.is_empty() { wish } else { wish + "\n\n" };
    format!("{wish}The situation, as the host recorded it:\n{situation}")
}

/// What happened in the turns before a supervisor's own. It is told in the words of workers, people and models, so it
/// gives no orders.
fn before(transcript: &Transcript) -> String {
    let lines: Vec<&str> = transcript.entries().map(|entry| entry.text.as_str()).collect();
    if lines.is_empty() {
        return String::new();
    }
    let older = if transcript.is_shortened() { " Older turns are left out." } else { "" };
    let told = fenced("source", "transcript", &lines.join("\n"));
    format!("\n\nWhat happened in the turns before, oldest first.{older}\n{told}")
}

/// What an agent remembers, newest first.
fn remembered(brief: &Brief) -> String {
    let entries: Vec<String> = brief.memory.iter().map(|entry| format!("- {}", entry.content)).collect();
    format!("What you remember, newest first:\n{}", fenced("source", "memory", &entries.join("\n")))
}

/// A tool's answer as the model sees it.
fn shown(tool: &str, outcome: &ToolOutcome) -> String {
    match &outcome.error {
        Some(error) => format!("The call failed ({}): {}", error.code, fenced("tool", tool, &cut(&error.message))),
        None => {
            let text = match &outcome.value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            fenced("tool", tool, &cut(&text))
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_RESULT_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}\n[cut here: {} characters in all]", &text[..end], text.chars().count()),
    }
}

/// Text that gives no orders, on lines of its own.
fn fenced(attribute: &str, name: &str, text: &str) -> String {
    fence_from(&format!("\n{text}\n"), &[(attribute, name)])
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_cut_where_it_says_so() {
        let cut = cut(&"é".repeat(MOST_RESULT_CHARS + 5));
        assert!(cut.ends_with("[cut here: 60005 characters in all]"));
        assert_eq!(cut.matches('é').count(), MOST_RESULT_CHARS);
    }
}
