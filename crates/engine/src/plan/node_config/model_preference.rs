//! Settings that every node has that asks a model.

use baton_model::{MOST_NEEDS, ModelChoice, ModelClass, ModelNeeds, is_capability};
use serde_json::{Map, Value};

use super::config::Config;
use crate::plan::problem::Problem;

/// Which model a node wants to ask, and what it needs of it.
#[derive(Debug)]
pub(crate) struct ModelPreference {
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    /// Which of the host's models stands in where neither the node nor the run names one. An agent has a class of its
    /// own.
    pub(crate) class: ModelClass,
    pub(crate) needs: ModelNeeds,
}

impl Default for ModelPreference {
    fn default() -> Self {
        Self { provider: None, model: None, class: ModelClass::General, needs: ModelNeeds::default() }
    }
}

/// The settings that every node has that asks a model.
pub(crate) const MODEL_SETTINGS: [&str; 4] = ["provider", "model", "requiredModelCapabilities", "fallbackModel"];

impl ModelPreference {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let class = match config.text("modelClass")? {
            None => ModelClass::General,
            Some(word) => ModelClass::read(&word).ok_or_else(|| {
                let known: Vec<&str> = ModelClass::ALL.iter().map(|class| class.as_str()).collect();
                config.problem("modelClass", format!("`modelClass` is one of {}.", known.join(", ")))
            })?,
        };
        let named = |setting: &str| match config.text(setting)? {
            Some(name) if name.is_empty() => Err(config.problem(setting, format!("`{setting}` is a name, or absent."))),
            name => Ok(name),
        };
        Ok(Self {
            provider: named("provider")?.map(|name| name.to_ascii_lowercase()),
            model: named("model")?,
            class,
            needs: ModelNeeds { required: required(config)?, fallback: fallback(config)? },
        })
    }

    /// The model to ask: what the node says, else what the run says, else what the host has for the class.
    pub(crate) fn choice(
        &self,
        configurable: &Map<String, Value>,
        pinned: Option<&ModelChoice>,
    ) -> Option<ModelChoice> {
        let of_run = |dotted: &str, name: &str| {
            let nested = || configurable.get("ai").and_then(|ai| ai.get(name));
            configurable.get(dotted).or_else(nested).and_then(Value::as_str).map(str::to_owned)
        };
        let legacy = || configurable.get("model").and_then(Value::as_str).map(str::to_owned);
        let provider = self.provider.clone().or_else(|| of_run("ai.provider", "provider"));
        let model = self.model.clone().or_else(|| of_run("ai.model", "model")).or_else(legacy);
        Some(ModelChoice {
            provider: provider.map(|name| name.to_ascii_lowercase()).or_else(|| Some(pinned?.provider.clone()))?,
            model: model.or_else(|| Some(pinned?.model.clone()))?,
        })
    }
}

fn required(config: &Config<'_>) -> Result<Vec<String>, Vec<Problem>> {
    const SETTING: &str = "requiredModelCapabilities";
    let Some(list) = config.get(SETTING) else { return Ok(Vec::new()) };
    let told = format!(
        "`{SETTING}` lists at most {MOST_NEEDS} different capabilities such as \"structured-output\" or \"vision-input\"."
    );
    let list: Vec<String> = serde_json::from_value(list.clone()).map_err(|_| config.problem(SETTING, told.as_str()))?;
    let twice = list.iter().enumerate().any(|(place, need)| list[..place].contains(need));
    if twice || list.len() > MOST_NEEDS || !list.iter().all(|need| is_capability(need)) {
        return Err(config.problem(SETTING, told));
    }
    Ok(list)
}

fn fallback(config: &Config<'_>) -> Result<Option<ModelChoice>, Vec<Problem>> {
    let Some(named) = config.get("fallbackModel") else { return Ok(None) };
    let choice = serde_json::from_value::<ModelChoice>(named.clone()).ok();
    let choice = choice.filter(|choice| !choice.provider.is_empty() && !choice.model.is_empty());
    let choice = choice.filter(|_| named.as_object().is_some_and(|map| map.len() == 2));
    choice
        .map(|choice| Some(ModelChoice { provider: choice.provider.to_ascii_lowercase(), ..choice }))
        .ok_or_else(|| config.problem("fallbackModel", "`fallbackModel` is {\"provider\": …, \"model\": …}."))
}
