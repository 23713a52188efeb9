//! Settings of a node that asks a model for a value of a shape.

use baton_model::workflow::Node;
use baton_model::{SemanticRequest, code};
use serde_json::{Map, Number, Value, json};

use super::config::Config;
use super::model_preference::{MODEL_SETTINGS, ModelPreference};
use crate::plan::problem::Problem;
use crate::schema::Schema;

/// The provider of conformance mode: it lives in the process and answers as a test tells it to.
const MOCK: &str = "mock";
/// Stands for the model until a visit knows which it is.
pub(crate) const UNSETTLED: &str = "unsettled";

/// `core.ai.structuredOutput`: asks a model for a value that fits a schema.
#[derive(Debug)]
pub(crate) struct StructuredOutput {
    pub(crate) preference: ModelPreference,
    /// The request without its model and its messages.
    pub(crate) request: SemanticRequest,
    pub(crate) system_prompt: Option<String>,
    pub(crate) schema: Schema,
    /// What an answer of that shape is called.
    pub(crate) shape: String,
}

const SETTINGS: &[&str] = &[
    MODEL_SETTINGS[0],
    MODEL_SETTINGS[1],
    MODEL_SETTINGS[2],
    MODEL_SETTINGS[3],
    "modelClass",
    "outputSchema",
    "systemPrompt",
    "temperature",
    "topP",
    "topK",
    "maxTokens",
    "seed",
    "stopSequences",
    "safetySettings",
    "providerOptions",
    // Other hosts count retries of unreadable answers apart; here one rule counts all attempts, and this changes nothing.
    "retryOnInvalidJson",
];

impl StructuredOutput {
    pub(crate) fn compile(
        config: &Config<'_>,
        node: &Node,
        test_types: bool,
        live: bool,
    ) -> Result<Self, Vec<Problem>> {
        config.only(SETTINGS)?;
        let preference = ModelPreference::compile(config)?;
        let reachable = match preference.provider.as_deref() {
            Some(MOCK) => test_types,
            Some(_) => live,
            None => live || test_types,
        };
        if !reachable {
            return Err(no_provider(config, node, preference.provider.as_deref()));
        }
        let schema = config.get("outputSchema").filter(|schema| schema.is_object());
        let schema = schema.ok_or_else(|| config.problem("outputSchema", "`outputSchema` is a JSON Schema."))?;
        let compiled = Schema::compile(schema, config.strictness)
            .map_err(|error| config.problem("outputSchema", format!("Not a valid JSON Schema: {error}")))?;
        let mut raw = Map::from_iter([
            ("provider".to_owned(), json!(UNSETTLED)),
            ("model".to_owned(), json!(UNSETTLED)),
            ("messages".to_owned(), json!([])),
            ("responseFormat".to_owned(), json!({"type": "json_schema", "schema": schema})),
        ]);
        for (setting, field) in [("maxTokens", "maxOutputTokens"), ("stopSequences", "stop")] {
            raw.extend(config.get(setting).map(|value| (field.to_owned(), value.clone())));
        }
        for field in ["temperature", "topP", "topK", "seed", "safetySettings", "providerOptions"] {
            raw.extend(config.get(field).map(|value| (field.to_owned(), value.clone())));
        }
        let request = SemanticRequest::read(&raw).map_err(|error| {
            let setting = match error.field.as_str() {
                "maxOutputTokens" => "maxTokens",
                "stop" => "stopSequences",
                other => other,
            };
            config.problem(setting, format!("`{setting}` {}.", error.why))
        })?;
        if request.temperature.as_ref().and_then(Number::as_f64).is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return Err(config.problem("temperature", "`temperature` is a number from 0 to 2."));
        }
        config.whole("retryOnInvalidJson", 0, 16)?;
        let named = |key: &str| schema.get(key).and_then(Value::as_str).filter(|name| !name.is_empty());
        let shape = named("title").or_else(|| named("$id")).unwrap_or("structured-output").to_owned();
        Ok(Self { preference, request, system_prompt: config.text("systemPrompt")?, schema: compiled, shape })
    }

    pub(crate) fn model_preference(&self) -> &ModelPreference {
        &self.preference
    }

    pub(crate) fn shape(&self) -> &str {
        &self.shape
    }
}

fn no_provider(config: &Config<'_>, node: &Node, provider: Option<&str>) -> Vec<Problem> {
    let message = match provider {
        Some(MOCK) => "The provider `mock` answers only conformance workflows in conformance mode.".to_owned(),
        Some(name) => format!("This host reaches no model provider `{name}`. Configure it under `[providers.{name}]`."),
        None => "This host reaches no model. Configure a provider under `[providers.NAME]`, and `[models]`.".to_owned(),
    };
    let mut problems = config.problem("provider", message);
    problems[0].code = code::CAPABILITY_REQUIRED;
    problems[0].details.insert("requiredCapability".into(), "aiProviders".into());
    problems[0].details.insert("offendingTypeId".into(), node.type_id.clone().into());
    problems[0].details.insert("nodeId".into(), node.id.as_str().into());
    problems
}
