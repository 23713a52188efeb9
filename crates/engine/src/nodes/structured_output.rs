use baton_model::cache_key::{self, Message};
use baton_model::workflow::Node;
use baton_model::{Fault, ModelChoice, ModelReply, SemanticRequest, code};
use serde_json::{Map, Number, Value, json};

use super::Outcome;
use super::config::Config;
use crate::envelope::{self, Verdict};
use crate::plan::Problem;
use crate::scene::Scene;
use crate::schema::Schema;

/// The provider of conformance mode: it lives in the process and answers as a test tells it to.
const MOCK: &str = "mock";

/// `core.ai.structuredOutput`: asks a model for a value that fits a schema.
#[derive(Debug)]
pub(crate) struct StructuredOutput {
    /// The request without its messages.
    request: SemanticRequest,
    system_prompt: Option<String>,
    schema: Schema,
    /// What an answer of that shape is called.
    shape: String,
}

const SETTINGS: &[&str] = &[
    "provider",
    "model",
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
    pub(super) fn compile(
        config: &Config<'_>,
        node: &Node,
        test_types: bool,
        live: bool,
    ) -> Result<Self, Vec<Problem>> {
        config.only(SETTINGS)?;
        let provider = config.required_text("provider")?.to_ascii_lowercase();
        let reachable = if provider == MOCK { test_types } else { live };
        if !reachable {
            return Err(no_provider(config, node, &provider));
        }
        let schema = config.get("outputSchema").filter(|schema| schema.is_object());
        let schema = schema.ok_or_else(|| config.problem("outputSchema", "`outputSchema` is a JSON Schema."))?;
        let compiled = Schema::compile(schema)
            .map_err(|error| config.problem("outputSchema", format!("Not a valid JSON Schema: {error}")))?;
        let mut raw = Map::from_iter([
            ("provider".to_owned(), json!(provider)),
            ("model".to_owned(), json!(config.required_text("model")?)),
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
        Ok(Self { request, system_prompt: config.text("systemPrompt")?, schema: compiled, shape })
    }

    /// Asks with what its ports say: `messages`, or a single `prompt`.
    pub(super) fn run(&self, scene: &Scene<'_>) -> Outcome {
        match self.conversation(&scene.inputs) {
            Ok(messages) => Outcome::Call(Box::new(SemanticRequest { messages, ..self.request.clone() })),
            Err(fault) => Outcome::Failed(fault),
        }
    }

    fn conversation(&self, inputs: &Map<String, Value>) -> Result<Vec<Message>, Fault> {
        let said = match (inputs.get("messages"), inputs.get("prompt")) {
            (Some(list), None) => cache_key::messages(list, "messages")
                .map_err(|error| Fault::new(code::VALIDATION_ERROR, format!("The input {error}.")))?,
            (None, Some(Value::String(prompt))) => vec![Message::new("user", prompt.as_str())],
            (None, Some(_)) => return Err(Fault::new(code::VALIDATION_ERROR, "The input `prompt` is a text.")),
            _ => {
                let message = "A model is asked with one of the inputs `messages` and `prompt`.";
                return Err(Fault::new(code::INPUT_MISSING, message).with("input", "messages"));
            }
        };
        let system = self.system_prompt.iter().map(|text| Message::new("system", text.as_str()));
        Ok(system.chain(said).collect())
    }

    /// The model it asks.
    pub(crate) fn choice(&self) -> ModelChoice {
        ModelChoice { provider: self.request.provider.clone(), model: self.request.model.clone() }
    }

    pub(crate) fn judge(&self, reply: &ModelReply) -> Verdict {
        envelope::judge(reply, &self.schema)
    }

    pub(crate) fn shape(&self) -> &str {
        &self.shape
    }
}

fn no_provider(config: &Config<'_>, node: &Node, provider: &str) -> Vec<Problem> {
    let message = if provider == MOCK {
        "The provider `mock` answers only conformance workflows in conformance mode.".to_owned()
    } else {
        format!("This host reaches no model provider `{provider}`. Configure it under `[providers.{provider}]`.")
    };
    let mut problems = config.problem("provider", message);
    problems[0].code = code::CAPABILITY_REQUIRED;
    problems[0].details.insert("requiredCapability".into(), "aiProviders".into());
    problems[0].details.insert("offendingTypeId".into(), node.type_id.clone().into());
    problems[0].details.insert("nodeId".into(), node.id.as_str().into());
    problems
}
