//! What models can do, as far as anybody knows without asking them. The operator's word goes first; the vendors' own
//! services are known by the names of their models. Of a server that somebody runs for themselves nothing is known but
//! what its operator says: what it calls itself proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::{MODEL_CAPABILITIES, is_capability};

use crate::{ProviderKind, ProviderSettings};

/// What the models of one provider can do.
#[derive(Clone, Debug)]
pub(crate) struct ModelCapabilities {
    kind: Option<ProviderKind>,
    /// For every model.
    all: Option<BTreeSet<String>>,
    /// For some of them.
    by_model: BTreeMap<String, BTreeSet<String>>,
}

impl ModelCapabilities {
    /// Reads the settings, or says which name is no capability.
    pub(crate) fn read(settings: &ProviderSettings, official: bool) -> Result<Self, (&'static str, String)> {
        let set = |setting, list: &[String]| {
            let known = |name: &String| MODEL_CAPABILITIES.contains(&name.as_str()) || of_host(name);
            match list.iter().find(|name| !known(name)) {
                None => Ok(list.iter().cloned().collect::<BTreeSet<String>>()),
                Some(name) => Err((
                    setting,
                    format!("has `{name}`; there are {}, and x-host-<host>-<key>", MODEL_CAPABILITIES.join(", ")),
                )),
            }
        };
        let by_model = settings.model_capabilities.iter();
        Ok(Self {
            kind: Some(settings.kind).filter(|_| official),
            all: settings.capabilities.as_deref().map(|list| set("capabilities", list)).transpose()?,
            by_model: by_model
                .map(|(model, list)| Ok((model.clone(), set("model_capabilities", list)?)))
                .collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn of(&self, model: &str) -> BTreeSet<String> {
        if let Some(said) = self.by_model.get(model).or(self.all.as_ref()) {
            return said.clone();
        }
        self.kind.map(|kind| owned(known(kind, model))).unwrap_or_default()
    }
}

/// `x-host-<host>-<key>`.
fn of_host(name: &str) -> bool {
    let rest = name.strip_prefix("x-host-").unwrap_or_default();
    is_capability(name) && rest.split_once('-').is_some_and(|(host, key)| !host.is_empty() && !key.is_empty())
}

/// What a model of a vendor's own service can do, by the name everybody has for the vendor.
pub fn vendor_capabilities(vendor: &str, model: &str) -> Option<BTreeSet<String>> {
    let kind = match vendor {
        "openai" => ProviderKind::OpenAi,
        "anthropic" => ProviderKind::Anthropic,
        "gemini" | "google" => ProviderKind::Gemini,
        _ => return None,
    };
    Some(owned(known(kind, model)))
}

/// What the providers that live in the process take and give.
pub(crate) fn in_process() -> BTreeSet<String> {
    owned(vec!["structured-output", "discriminator-enum", "function-calling", "reasoning"])
}

fn owned(names: Vec<&str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn known(kind: ProviderKind, model: &str) -> Vec<&'static str> {
    let model = model.to_ascii_lowercase();
    let shaped = ["structured-output", "discriminator-enum", "function-calling"];
    let mut able = Vec::new();
    match kind {
        ProviderKind::Mock | ProviderKind::Scripted => {
            able.extend(shaped);
            able.push("reasoning");
        }
        ProviderKind::Anthropic => {
            let generation = model.strip_prefix("claude-").map(|rest| rest.split('-').find_map(number));
            if let Some(generation) = generation
                && generation.is_none_or(|generation| generation >= 3.0)
                && !model.starts_with("claude-instant")
            {
                able.extend(shaped);
                able.extend(["vision-input", "long-context"]);
                let thinks = model.contains("3-7") || generation.is_some_and(|generation| generation >= 3.7);
                able.extend(thinks.then_some("reasoning"));
            }
        }
        ProviderKind::Gemini => {
            let generation = model.strip_prefix("gemini-").and_then(|rest| rest.split('-').find_map(number));
            if generation.is_some_and(|generation| generation >= 1.5) {
                able.extend(shaped);
                able.extend(["vision-input", "audio-input", "long-context"]);
                able.extend(generation.is_some_and(|generation| generation >= 2.5).then_some("reasoning"));
            }
        }
        ProviderKind::OpenAi => {
            let omni = model.starts_with("gpt-4o") || model.starts_with("chatgpt-4o");
            let generation = model.strip_prefix("gpt-").and_then(|rest| rest.split('-').find_map(number));
            let thinker = model.starts_with('o') && model[1..].starts_with(|digit: char| digit.is_ascii_digit());
            let recent = generation.is_some_and(|generation| generation >= 4.1);
            if omni || recent || thinker {
                able.extend(shaped);
                able.extend((!thinker || !model.contains("mini")).then_some("vision-input"));
                able.extend((thinker || generation.is_some_and(|generation| generation >= 5.0)).then_some("reasoning"));
                able.extend((recent || thinker).then_some("long-context"));
            } else if generation.is_some() {
                able.push("function-calling");
            }
        }
    }
    able
}

fn number(word: &str) -> Option<f32> {
    word.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn vendors_models_are_known_by_their_names() {
        let has = |vendor: &str, model: &str, need: &str| vendor_capabilities(vendor, model).unwrap().contains(need);
        for (vendor, model, need, expected) in [
            ("anthropic", "claude-3-5-sonnet", "structured-output", true),
            ("anthropic", "claude-3-5-sonnet", "reasoning", false),
            ("anthropic", "claude-3-7-sonnet-latest", "reasoning", true),
            ("anthropic", "claude-opus-4-7", "reasoning", true),
            ("anthropic", "claude-opus-4-7", "long-context", true),
            ("anthropic", "claude-2", "structured-output", false),
            ("anthropic", "somebody-elses", "structured-output", false),
            ("openai", "gpt-3.5-turbo", "structured-output", false),
            ("openai", "gpt-3.5-turbo", "function-calling", true),
            ("openai", "gpt-4o-mini", "vision-input", true),
            ("openai", "gpt-4o-mini", "long-context", false),
            ("openai", "gpt-5", "reasoning", true),
            ("openai", "o3-mini", "vision-input", false),
            ("openai", "o3-mini", "reasoning", true),
            ("google", "gemini-2.5-pro", "audio-input", true),
            ("gemini", "gemini-2.0-flash", "reasoning", false),
            ("gemini", "gemma", "structured-output", false),
        ] {
            assert_eq!(has(vendor, model, need), expected, "{vendor}/{model} {need}");
        }
        assert_eq!(vendor_capabilities("somebody", "gpt-5"), None);
    }

    #[test]
    fn the_operators_word_goes_first_and_a_server_of_ones_own_claims_nothing() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut settings = ProviderSettings::default();
        let of = |settings: &ProviderSettings, official, model: &str| {
            ModelCapabilities::read(settings, official).unwrap().of(model)
        };
        assert!(of(&settings, true, "gpt-5").contains("reasoning"));
        assert!(of(&settings, false, "gpt-5").is_empty(), "its id proves nothing");
        settings.capabilities = Some(words(&["structured-output"]));
        settings.model_capabilities.insert("eyes".to_owned(), words(&["vision-input", "x-host-here-zoom"]));
        assert_eq!(of(&settings, true, "gpt-5"), owned(vec!["structured-output"]));
        assert_eq!(of(&settings, false, "eyes"), owned(vec!["vision-input", "x-host-here-zoom"]));
        settings.capabilities = Some(words(&["telepathy"]));
        let (setting, why) = ModelCapabilities::read(&settings, true).unwrap_err();
        assert!(setting == "capabilities" && why.contains("telepathy") && why.contains("vision-input"), "{why}");
    }
}
