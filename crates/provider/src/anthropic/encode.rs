//! A request in Anthropic's words.

use baton_model::ModelRequest;
use serde_json::{Map, Value, json};

use super::{blocks, marks};
use crate::conversation::{Turn, apart, turns};
use crate::draft::ReplyContext;
use crate::format::Format;
use crate::schema_compat::Dialect;
use crate::tool_names::Names;
use crate::vendor_names::ANTHROPIC;
use crate::wire::{Settings, Wire};
use crate::{ProviderFault, options};

const VERSION: &str = "2023-06-01";
/// The vendor wants to be told how much may be said.
const MAX_TOKENS: u64 = 8192;
/// It takes no smaller budget of thoughts than this.
const LEAST_THOUGHT: u64 = 1024;

pub(super) fn encode(request: &ModelRequest, settings: &Settings) -> Result<(Wire, ReplyContext), ProviderFault> {
    let semantic = &*request.semantic;
    let names = Names::of(semantic);
    let format = Format::read(semantic.response_format.as_ref(), settings.native_schemas);
    let (system, turns) = apart(turns(semantic)?);
    let system = [system, format.instruction()].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let mut messages = messages(&turns, &names)?;
    let mut body = Map::new();
    // Somebody has to say something: where nobody does, the system does.
    if messages.is_empty() {
        messages.push(json!({"role": "user", "content": system}));
    } else if !system.is_empty() {
        body.insert("system".to_owned(), system.into());
    }
    body.insert("model".to_owned(), semantic.model.as_str().into());
    body.insert("messages".to_owned(), messages.into());
    body.extend(numbers(request, settings));
    if !semantic.tools.is_empty() {
        body.insert("tools".to_owned(), semantic.tools.iter().map(|tool| self::tool(tool, &names)).collect());
    }
    if let Format::Native { shape, .. } = &format {
        let schema = shape.render(Dialect::JsonSchema);
        body.insert("output_config".to_owned(), json!({"format": {"type": "json_schema", "schema": schema}}));
    }
    if settings.stream {
        body.insert("stream".to_owned(), true.into());
    }
    options::apply(&mut body, semantic, ANTHROPIC)?;
    options::hold_to(&mut body, request.cap, &["max_tokens"]);
    if settings.prompt_cache {
        marks::put(&mut body);
    }
    let headers = vec![("anthropic-version", VERSION.to_owned())];
    let wire = Wire { path: vec!["messages".to_owned()], query: Vec::new(), headers, body };
    Ok((wire, ReplyContext::new(request, names, format.into_shape())))
}

/// Room for all that is said and thought, and what of it is for thoughts, where these have to be told.
pub(super) fn room(request: &ModelRequest, settings: &Settings) -> (u64, Option<u64>) {
    let said = request.semantic.max_output_tokens.or(settings.max_output_tokens).unwrap_or(MAX_TOKENS);
    let thoughts = settings.thinking_budget.filter(|_| request.reasoning);
    // Thoughts count as output: what may be said comes on top of what may be thought.
    let wanted = said.saturating_add(thoughts.unwrap_or(0));
    match request.cap.filter(|cap| *cap < wanted) {
        None => (wanted, thoughts),
        // A quarter of what there is stays for what is said, and fewer thoughts than the vendor takes are none.
        Some(cap) => (cap, thoughts.map(|budget| budget.min(cap - cap / 4)).filter(|budget| *budget >= LEAST_THOUGHT)),
    }
}

fn numbers(asked: &ModelRequest, settings: &Settings) -> impl Iterator<Item = (String, Value)> {
    let request = &*asked.semantic;
    let (most, thoughts) = room(asked, settings);
    let thinking = match (settings.thinking_budget, thoughts) {
        _ if !asked.reasoning => None,
        (_, Some(budget)) => Some(json!({"type": "enabled", "budget_tokens": budget})),
        (Some(_), None) => None,
        (None, None) => adapts(&request.model).then(|| json!({"type": "adaptive", "display": "summarized"})),
    };
    let thinks = thinking.is_some();
    // A model that thinks takes none of these.
    let sampling = |number: &Option<serde_json::Number>| number.clone().filter(|_| !thinks).map(Value::Number);
    let stop = request.stop.clone().filter(|stop| !stop.is_empty());
    let fields = [
        ("max_tokens", Some(Value::from(most))),
        ("thinking", thinking),
        ("temperature", sampling(&request.temperature)),
        ("top_p", sampling(&request.top_p)),
        ("top_k", sampling(&request.top_k)),
        ("stop_sequences", stop.map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

/// Whether a model decides for itself how much it thinks. The vendor refuses requests that let an older one decide, so
/// where the name does not tell, nobody asks for it.
fn adapts(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let Some((_, name)) = model.split_once("claude-") else { return false };
    let words: Vec<&str> = name.split(['-', '.', '@', ':']).collect();
    // A number of eight digits is a date.
    let mut version = words.iter().skip_while(|word| number(word).is_none()).map_while(|word| number(word));
    match (version.next(), version.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= (4, 6) && !(major < 5 && words.contains(&"haiku")),
        (None, _) => words.first() == Some(&"mythos"),
    }
}

fn number(word: &str) -> Option<u32> {
    word.parse().ok().filter(|number| *number < 100)
}

fn tool(tool: &Value, names: &Names) -> Value {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut written = json!({
        "name": names.theirs(name),
        "input_schema": tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object"})),
    });
    if let Some(description) = tool.get("description") {
        written["description"] = description.clone();
    }
    written
}

/// User and assistant in turns: whatever one of them says in a row is one message, and tools answer as the user.
fn messages(turns: &[Turn<'_>], names: &Names) -> Result<Vec<Value>, ProviderFault> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in turns {
        let (role, blocks) = match turn {
            Turn::System(_) => continue,
            Turn::User(parts) => ("user", blocks::of_parts(parts)?),
            Turn::Tool(answer) => ("user", vec![blocks::tool_result(answer)]),
            Turn::Assistant(said) => ("assistant", blocks::of_assistant(said, names)?),
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, said)) if *last == role => said.extend(blocks),
            _ => messages.push((role, blocks)),
        }
    }
    Ok(messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect())
}
