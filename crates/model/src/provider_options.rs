//! Options that only one vendor knows, as `vendor.<vendor>.<option>`. Which there are and what they may be is listed here:
//! a word that a vendor would pass over, or that would get past whoever checks a request, is refused when it is written.

use serde_json::{Map, Value};

/// How many options one agent may be asked with; the table has fewer for all vendors together.
const MOST: usize = 32;

/// What an option may be.
enum Shape {
    Flag,
    Words(&'static [&'static str]),
    Number(f64, f64),
    Whole(u64, u64),
    /// So many characters at most.
    Text(usize),
    Members(&'static [(&'static str, Shape)]),
}

use Shape::{Flag, Members, Number, Text, Whole, Words};

type Known = &'static [(&'static str, Shape)];

const VENDORS: &[(&str, Known)] = &[
    (
        "openai",
        &[
            ("frequency_penalty", Number(-2.0, 2.0)),
            ("parallel_tool_calls", Flag),
            ("presence_penalty", Number(-2.0, 2.0)),
            ("prompt_cache_key", Text(64)),
            ("reasoning_effort", Words(&["none", "minimal", "low", "medium", "high", "xhigh"])),
            ("service_tier", Words(&["auto", "default", "flex", "priority"])),
            ("verbosity", Words(&["low", "medium", "high"])),
        ],
    ),
    (
        "anthropic",
        &[
            ("cache_control", Members(&[("type", Words(&["ephemeral"])), ("ttl", Words(&["5m", "1h"]))])),
            ("output_config", Members(&[("effort", Words(&["low", "medium", "high", "max"]))])),
            ("service_tier", Words(&["auto", "standard_only"])),
            (
                "thinking",
                Members(&[
                    ("type", Words(&["enabled", "disabled", "adaptive"])),
                    ("budget_tokens", Whole(1024, 1_000_000)),
                    ("display", Words(&["summarized", "omitted"])),
                ]),
            ),
            ("tool_choice", Members(&[("type", Words(&["auto", "any", "none"])), ("disable_parallel_tool_use", Flag)])),
        ],
    ),
    (
        "gemini",
        &[
            ("cachedContent", Text(256)),
            (
                "generationConfig",
                Members(&[
                    ("frequencyPenalty", Number(-2.0, 2.0)),
                    ("presencePenalty", Number(-2.0, 2.0)),
                    ("mediaResolution", Text(64)),
                    (
                        "thinkingConfig",
                        Members(&[
                            ("includeThoughts", Flag),
                            ("thinkingBudget", Whole(0, 1_000_000)),
                            ("thinkingLevel", Words(&["minimal", "low", "medium", "high"])),
                        ]),
                    ),
                ]),
            ),
        ],
    ),
];

/// Why options cannot be used: which of them, and what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongOption {
    /// Empty where it is about all of them.
    pub key: String,
    pub message: String,
}

/// Judges options of agents. Several vendors may be named: a request takes those of the one that is asked.
pub fn check(options: &Value) -> Result<&Map<String, Value>, WrongOption> {
    let wrong = |key: &str, message: String| WrongOption { key: key.to_owned(), message };
    let Value::Object(map) = options else {
        let message = "`providerOptions` is an object such as {\"vendor.openai.reasoning_effort\": \"low\"}.";
        return Err(wrong("", message.to_owned()));
    };
    if map.len() > MOST {
        return Err(wrong("", format!("`providerOptions` has at most {MOST} members.")));
    }
    for (key, value) in map {
        let vendors = || VENDORS.iter().map(|(vendor, _)| *vendor).collect::<Vec<_>>().join(", ");
        let named = key.strip_prefix("vendor.").and_then(|rest| rest.split_once('.'));
        let Some((vendor, option)) = named else {
            let message =
                format!("`{key}` is no option: write `vendor.<vendor>.<option>`; the vendors are {}.", vendors());
            return Err(wrong(key, message));
        };
        let Some((_, known)) = VENDORS.iter().find(|(name, _)| *name == vendor) else {
            return Err(wrong(key, format!("There is no vendor `{vendor}`; there are {}.", vendors())));
        };
        fits(option, value, known).map_err(|why| wrong(key, format!("{why} ({vendor}).")))?;
    }
    Ok(map)
}

fn fits(name: &str, value: &Value, known: Known) -> Result<(), String> {
    let Some((_, shape)) = known.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        return Err(format!("There is no option `{name}`; there are {}", names.join(", ")));
    };
    let fits = match shape {
        Flag => value.is_boolean(),
        Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Number(least, most) => value.as_f64().is_some_and(|number| (*least..=*most).contains(&number)),
        Whole(least, most) => value.as_u64().is_some_and(|number| (*least..=*most).contains(&number)),
        Text(longest) => value.as_str().is_some_and(|text| (1..=*longest).contains(&text.chars().count())),
        Members(known) => match value {
            Value::Object(members) => {
                return members.iter().try_for_each(|(name, value)| self::fits(name, value, known));
            }
            _ => false,
        },
    };
    if fits {
        return Ok(());
    }
    let expected = match shape {
        Flag => "true or false".to_owned(),
        Words(words) => format!("one of {}", words.join(", ")),
        Number(least, most) => format!("a number from {least} to {most}"),
        Whole(least, most) => format!("a whole number from {least} to {most}"),
        Text(longest) => format!("a text of up to {longest} characters"),
        Members(known) => {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            format!("an object of {}", names.join(", "))
        }
    };
    Err(format!("`{name}` is {expected}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_vendors_know_is_taken() {
        for good in [
            json!({}),
            json!({"vendor.openai.reasoning_effort": "low", "vendor.anthropic.thinking": {"type": "disabled"}}),
            json!({"vendor.openai.presence_penalty": -1.5, "vendor.openai.parallel_tool_calls": false}),
            json!({"vendor.gemini.generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
            json!({"vendor.anthropic.output_config": {"effort": "max"}}),
        ] {
            assert_eq!(check(&good).unwrap(), good.as_object().unwrap());
        }
    }

    #[test]
    fn what_they_do_not_is_refused_with_what_there_is() {
        let many: Map<String, Value> = (0..1000).map(|i| (format!("vendor.openai.x{i}"), json!(1))).collect();
        for (bad, key, told) in [
            (json!([]), "", "is an object"),
            (Value::Object(many), "", "at most 32"),
            (json!({"reasoning_effort": "low"}), "reasoning_effort", "vendor.<vendor>.<option>"),
            (json!({"vendor.openai": 1}), "vendor.openai", "openai, anthropic, gemini"),
            (json!({"vendor.acme.x": 1}), "vendor.acme.x", "openai, anthropic, gemini"),
            (json!({"vendor.openai.messages": []}), "vendor.openai.messages", "there are frequency_penalty, "),
            (json!({"vendor.openai.model": "gpt-x"}), "vendor.openai.model", "reasoning_effort"),
            (json!({"vendor.openai.tools": []}), "vendor.openai.tools", "verbosity"),
            (json!({"vendor.openai.reasoning_effort": "huge"}), "vendor.openai.reasoning_effort", "one of none, "),
            (json!({"vendor.openai.presence_penalty": 3}), "vendor.openai.presence_penalty", "from -2 to 2"),
            (json!({"vendor.openai.prompt_cache_key": "x".repeat(65)}), "vendor.openai.prompt_cache_key", "up to 64"),
            (json!({"vendor.anthropic.thinking": {"type": "enabled", "x": 1}}), "vendor.anthropic.thinking", "`x`"),
            (json!({"vendor.anthropic.thinking": 7}), "vendor.anthropic.thinking", "an object of type, "),
            (
                json!({"vendor.anthropic.output_config": {"format": {}}}),
                "vendor.anthropic.output_config",
                "there are effort",
            ),
        ] {
            let wrong = check(&bad).unwrap_err();
            assert_eq!(wrong.key, key);
            assert!(wrong.message.contains(told), "{}", wrong.message);
        }
    }
}
