use baton_model::cache_key::{self, Message};
use baton_model::workflow::Node;
use baton_model::{Fault, ModelReply, SemanticRequest, code};
use serde_json::{Map, Number, Value, json};

use super::Outcome;
use super::config::Config;
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
}

/// What becomes of an answer.
#[derive(Debug)]
pub(crate) enum Judged {
    Valid(Value),
    Refused,
    /// No value that fits. The fault says which rule it breaks and repeats nothing of what the model said.
    Unfit(Fault),
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
];

impl StructuredOutput {
    pub(super) fn compile(config: &Config<'_>, node: &Node, test_types: bool) -> Result<Self, Vec<Problem>> {
        config.only(SETTINGS)?;
        let provider = config.required_text("provider")?.to_ascii_lowercase();
        if provider != MOCK || !test_types {
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
        Ok(Self { request, system_prompt: config.text("systemPrompt")?, schema: compiled })
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

    pub(crate) fn judge(&self, reply: &ModelReply) -> Judged {
        if reply.is_refusal() {
            return Judged::Refused;
        }
        let (code, message, rule) = match serde_json::from_str::<Value>(&reply.content) {
            Err(_) if reply.is_cut_off() => (
                code::ENVELOPE_TRUNCATION_UNRECOVERABLE,
                "The model ran out of room before its answer was whole.",
                None,
            ),
            Err(_) => (code::ENVELOPE_INVALID, "The model's answer is not JSON.", None),
            Ok(value) => match self.schema.broken_rule(&value) {
                None => return Judged::Valid(value),
                Some(rule) => {
                    (code::ENVELOPE_INVALID, "The model's answer does not fit the output schema.", Some(rule))
                }
            },
        };
        let fault = self.blame(Fault::new(code, message));
        Judged::Unfit(match rule {
            Some(rule) => fault.with("rule", rule),
            None => fault,
        })
    }

    /// A fault that says which model it is about.
    pub(crate) fn blame(&self, fault: Fault) -> Fault {
        fault.with("provider", self.request.provider.as_str()).with("model", self.request.model.as_str())
    }
}

fn no_provider(config: &Config<'_>, node: &Node, provider: &str) -> Vec<Problem> {
    let message = if provider == MOCK {
        "The provider `mock` answers only conformance workflows in conformance mode.".to_owned()
    } else {
        format!("This host has no model provider `{provider}` yet; only `mock`, in conformance mode.")
    };
    let mut problems = config.problem("provider", message);
    problems[0].code = code::CAPABILITY_REQUIRED;
    problems[0].details.insert("requiredCapability".into(), "aiProviders".into());
    problems[0].details.insert("offendingTypeId".into(), node.type_id.clone().into());
    problems[0].details.insert("nodeId".into(), node.id.as_str().into());
    problems
}
