//! A request in Gemini's words.

use baton_model::ModelRequest;
use serde_json::{Map, Value, json};

use super::parts;
use crate::conversation::{Turn, apart, turns, unreadable};
use crate::draft::ReplyContext;
use crate::format::Format;
use crate::schema_compat::Dialect;
use crate::tool_names::Names;
use crate::vendor_names::GEMINI;
use crate::wire::{Settings, Wire};
use crate::{ProviderFault, options};

pub(super) fn encode(request: &ModelRequest, settings: &Settings) -> Result<(Wire, ReplyContext), ProviderFault> {
    let semantic = &*request.semantic;
    let names = Names::of(semantic);
    // Most of its models take tools or a schema, not both.
    let native = settings.native_schemas && semantic.tools.is_empty();
    let format = Format::read(semantic.response_format.as_ref(), native);
    let (system, turns) = apart(turns(semantic)?);
    let system = [system, format.instruction()].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    let mut contents = contents(&turns, &names);
    let mut body = Map::new();
    // Somebody has to say something: where nobody does, the system does.
    if contents.is_empty() {
        contents.push(json!({"role": "user", "parts": [{"text": system}]}));
    } else if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}]}));
    }
    body.insert("contents".to_owned(), contents.into());
    if !semantic.tools.is_empty() {
        let functions: Vec<Value> = semantic.tools.iter().map(|tool| function(tool, &names)).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": functions}]));
    }
    if let Some(settings) = &semantic.safety_settings {
        body.insert("safetySettings".to_owned(), safety(settings));
    }
    let mut config: Map<String, Value> = numbers(request, settings).collect();
    if request.reasoning {
        config.insert("thinkingConfig".to_owned(), thinking(settings, request.cap));
    }
    match &format {
        Format::Native { shape, .. } => {
            config.insert("responseMimeType".to_owned(), "application/json".into());
            config.insert("responseSchema".to_owned(), shape.render(Dialect::OpenApi));
        }
        Format::Json | Format::Asked(_) if native => {
            config.insert("responseMimeType".to_owned(), "application/json".into());
        }
        _ => {}
    }
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), config.into());
    }
    options::apply(&mut body, semantic, GEMINI)?;
    if let Some(Value::Object(config)) = body.get_mut("generationConfig") {
        options::hold_to(config, request.cap, &["maxOutputTokens"]);
    }
    let (verb, query) =
        if settings.stream { ("streamGenerateContent", vec![("alt", "sse")]) } else { ("generateContent", Vec::new()) };
    let path = vec!["models".to_owned(), format!("{}:{verb}", model(&semantic.model)?)];
    Ok((Wire { path, query, headers: Vec::new(), body }, ReplyContext::new(request, names, format.into_shape())))
}

/// The model is a part of the address here, so it may be nothing but a name.
fn model(model: &str) -> Result<&str, ProviderFault> {
    let name = model.strip_prefix("models/").unwrap_or(model);
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = !name.is_empty() && name.chars().all(letter) && !name.starts_with('.');
    if fits { Ok(name) } else { Err(unreadable("model", "is not a name that this vendor could know")) }
}

fn numbers(asked: &ModelRequest, settings: &Settings) -> impl Iterator<Item = (String, Value)> {
    let request = &*asked.semantic;
    let stop = request.stop.clone().filter(|stop| !stop.is_empty());
    let fields = [
        ("maxOutputTokens", settings.room(asked).map(Value::from)),
        ("temperature", request.temperature.clone().map(Value::Number)),
        ("topP", request.top_p.clone().map(Value::Number)),
        ("topK", request.top_k.clone().map(Value::Number)),
        ("seed", request.seed.clone().map(Value::Number)),
        ("stopSequences", stop.map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

fn thinking(settings: &Settings, cap: Option<u64>) -> Value {
    // Thoughts take of the room that there is; half of it is for what is said.
    match settings.thinking_budget.map(|budget| cap.map_or(budget, |cap| budget.min(cap / 2))) {
        Some(budget) => json!({"includeThoughts": true, "thinkingBudget": budget}),
        None => json!({"includeThoughts": true}),
    }
}

/// A list as the vendor has it, or a map from category to threshold.
fn safety(settings: &Value) -> Value {
    match settings {
        Value::Object(map) => {
            map.iter().map(|(category, threshold)| json!({"category": category, "threshold": threshold})).collect()
        }
        list => list.clone(),
    }
}

fn function(tool: &Value, names: &Names) -> Value {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut function = Map::from_iter([("name".to_owned(), names.theirs(name).into())]);
    for (theirs, ours) in [("description", "description"), ("parametersJsonSchema", "inputSchema")] {
        function.extend(tool.get(ours).map(|value| (theirs.to_owned(), value.clone())));
    }
    Value::Object(function)
}

/// User and model in turns: whatever one of them says in a row is one content, and tools answer as the user.
fn contents(turns: &[Turn<'_>], names: &Names) -> Vec<Value> {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in turns {
        let (role, parts) = match turn {
            Turn::System(_) => continue,
            Turn::User(said) => ("user", parts::of_parts(said)),
            Turn::Tool(answer) => ("user", vec![parts::function_response(answer, names)]),
            Turn::Assistant(said) => ("model", parts::of_assistant(said, names)),
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, said)) if *last == role => said.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    contents.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect()
}
