//! Tools, and whether a model must call one. Vendors say the latter each in their own way.

use serde_json::{Map, Value, json};

use super::OpenAiError;

enum Choice {
    Auto,
    None,
    Required,
}

/// A function of either interface in our words. `strict` is left to the vendor's layer.
pub(super) fn tool(tool: &Value, place: usize) -> Result<Value, OpenAiError> {
    let wrong = |why: &str| OpenAiError::param("tools", format!("`tools[{place}]` {why}."));
    if tool.get("type").and_then(Value::as_str) != Some("function") {
        return Err(wrong("is no function; other tools cannot be passed on"));
    }
    let function = tool.get("function").unwrap_or(tool);
    let name = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let mut ours = Map::from_iter([("name".to_owned(), name.ok_or_else(|| wrong("has no name"))?.into())]);
    if let Some(description) = function.get("description").filter(|text| text.is_string()) {
        ours.insert("description".to_owned(), description.clone());
    }
    if let Some(parameters) = function.get("parameters").filter(|parameters| parameters.is_object()) {
        ours.insert("inputSchema".to_owned(), parameters.clone());
    }
    Ok(Value::Object(ours))
}

/// What `tool_choice` and `parallel_tool_calls` say, to each vendor in its words. Where one function is chosen, the model is
/// told of no other.
pub(super) fn apply(
    choice: Option<Value>,
    parallel: Option<bool>,
    tools: &mut Vec<Value>,
    options: &mut Map<String, Value>,
) -> Result<(), OpenAiError> {
    let choice = read(choice, tools)?;
    if tools.is_empty() {
        return Ok(());
    }
    let one_at_a_time = parallel == Some(false);
    let (openai, anthropic, gemini) = match choice {
        Choice::Auto if !one_at_a_time => return Ok(()),
        Choice::Auto => ("auto", "auto", "AUTO"),
        Choice::None => ("none", "none", "NONE"),
        Choice::Required => ("required", "any", "ANY"),
    };
    let mut anthropic = json!({"type": anthropic});
    if one_at_a_time {
        options.insert("vendor.openai.parallel_tool_calls".to_owned(), false.into());
        if !matches!(choice, Choice::None) {
            anthropic["disable_parallel_tool_use"] = true.into();
        }
    }
    options.insert("vendor.openai.tool_choice".to_owned(), openai.into());
    options.insert("vendor.anthropic.tool_choice".to_owned(), anthropic);
    options.insert("vendor.gemini.toolConfig".to_owned(), json!({"functionCallingConfig": {"mode": gemini}}));
    Ok(())
}

fn read(choice: Option<Value>, tools: &mut Vec<Value>) -> Result<Choice, OpenAiError> {
    let wrong = |why: &str| OpenAiError::param("tool_choice", format!("`tool_choice` {why}."));
    let word = |word: &str| match word {
        "auto" => Ok(Choice::Auto),
        "none" => Ok(Choice::None),
        "required" => Ok(Choice::Required),
        _ => Err(wrong("is auto, none, required or a function")),
    };
    let chosen = match &choice {
        None => return Ok(Choice::Auto),
        Some(Value::String(text)) => return word(text),
        Some(chosen) => chosen,
    };
    let name = |of: &Value| {
        let place = of.pointer("/function/name").or_else(|| of.get("name"));
        place.and_then(Value::as_str).map(str::to_owned)
    };
    let (names, mode) = match chosen.get("type").and_then(Value::as_str) {
        Some("function") => (vec![name(chosen).ok_or_else(|| wrong("names no function"))?], Choice::Required),
        Some("allowed_tools") => {
            let allowed = chosen.get("allowed_tools").unwrap_or(chosen);
            let listed = allowed.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let mode = word(allowed.get("mode").and_then(Value::as_str).unwrap_or("auto"))?;
            (listed.iter().filter_map(name).collect(), mode)
        }
        _ => return Err(wrong("is auto, none, required or a function")),
    };
    tools.retain(|tool| tool["name"].as_str().is_some_and(|known| names.iter().any(|name| name == known)));
    if tools.is_empty() { Err(wrong("names no function of `tools`")) } else { Ok(mode) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn chosen(choice: Value, parallel: Option<bool>) -> (Vec<Value>, Map<String, Value>) {
        let (mut tools, mut options) = (vec![json!({"name": "a"}), json!({"name": "b"})], Map::new());
        apply(Some(choice), parallel, &mut tools, &mut options).unwrap();
        (tools, options)
    }

    #[test]
    fn every_vendor_is_told_in_its_words() {
        assert_eq!(chosen(json!("auto"), None).1, Map::new());
        let (tools, options) = chosen(json!({"type": "function", "function": {"name": "b"}}), Some(false));
        assert_eq!(tools, [json!({"name": "b"})]);
        assert_eq!(options["vendor.openai.tool_choice"], "required");
        assert_eq!(options["vendor.openai.parallel_tool_calls"], false);
        let anthropic = json!({"type": "any", "disable_parallel_tool_use": true});
        assert_eq!(options["vendor.anthropic.tool_choice"], anthropic);
        let none = chosen(json!("none"), None).1;
        assert_eq!(none["vendor.gemini.toolConfig"], json!({"functionCallingConfig": {"mode": "NONE"}}));
        let (mut tools, mut options) = (vec![json!({"name": "a"})], Map::new());
        let unknown = Some(json!({"type": "function", "name": "x"}));
        assert!(apply(unknown, None, &mut tools, &mut options).is_err());
    }
}
