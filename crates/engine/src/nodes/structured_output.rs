use baton_model::cache_key::{self, Message};
use baton_model::workflow::Node;
use baton_model::{Fault, ModelChoice, ModelNeeds, ModelReply, Provenance, SemanticRequest, code};
use serde_json::{Map, Number, Value, json};

use super::Outcome;
use super::config::Config;
use super::model_wish::{ModelWish, WISH};
use crate::envelope::{self, Verdict};
use crate::eval_context::EvalContext;
use crate::plan::Problem;
use crate::schema::Schema;

/// The provider of conformance mode: it lives in the process and answers as a test tells it to.
const MOCK: &str = "mock";
/// Stands for the model until a visit knows which it is.
const UNSETTLED: &str = "unsettled";
/// Needed by the node that no model satisfies.
const UNATTAINABLE: &str = "nonexistent-capability-9b3f";

/// `core.ai.structuredOutput`: asks a model for a value that fits a schema.
#[derive(Debug)]
pub(crate) struct StructuredOutput {
    wish: ModelWish,
    /// The request without its model and its messages.
    request: SemanticRequest,
    system_prompt: Option<String>,
    schema: Schema,
    /// What an answer of that shape is called.
    shape: String,
}

const SETTINGS: &[&str] = &[
    WISH[0],
    WISH[1],
    WISH[2],
    WISH[3],
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
    pub(super) fn compile(
        config: &Config<'_>,
        node: &Node,
        test_types: bool,
        live: bool,
    ) -> Result<Self, Vec<Problem>> {
        config.only(SETTINGS)?;
        let wish = ModelWish::compile(config)?;
        let reachable = match wish.provider.as_deref() {
            Some(MOCK) => test_types,
            Some(_) => live,
            None => live || test_types,
        };
        if !reachable {
            return Err(no_provider(config, node, wish.provider.as_deref()));
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
        Ok(Self { wish, request, system_prompt: config.text("systemPrompt")?, schema: compiled, shape })
    }

    /// A test's node that needs what no model has.
    pub(super) fn unattainable(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&[])?;
        let raw = json!({"provider": UNSETTLED, "model": UNSETTLED, "messages": []});
        let request = SemanticRequest::read(raw.as_object().unwrap_or(&Map::new()));
        let request = request.map_err(|error| config.problem("", error.why.to_string()))?;
        let needs = ModelNeeds { required: vec![UNATTAINABLE.to_owned()], fallback: None };
        let wish = ModelWish { needs, ..ModelWish::default() };
        let schema = Schema::compile(&json!({}), config.strictness).map_err(|error| config.problem("", error))?;
        Ok(Self { wish, request, system_prompt: None, schema, shape: "unattainable".to_owned() })
    }

    /// Asks with what its ports say: `messages`, or a single `prompt`.
    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        let Some(ModelChoice { provider, model }) = scene.state.model(scene.node) else {
            let message = "No model is configured for this node.";
            return Outcome::Failed(Fault::new(code::CAPABILITY_NOT_PROVIDED, message));
        };
        match self.conversation(scene) {
            Ok(messages) => {
                let request = SemanticRequest { provider, model, messages, ..self.request.clone() };
                Outcome::Call(Box::new(scene.state.with_run_options(request)))
            }
            Err(fault) => Outcome::Failed(fault),
        }
    }

    fn conversation(&self, scene: &EvalContext<'_>) -> Result<Vec<Message>, Fault> {
        let inputs = &scene.inputs;
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
        let said = match origin(scene) {
            None => said,
            Some(origin) => said.into_iter().map(|message| fenced(message, &origin)).collect(),
        };
        let system = self.system_prompt.iter().map(|text| Message::new("system", text.as_str()));
        Ok(system.chain(said).collect())
    }

    pub(crate) fn wish(&self) -> &ModelWish {
        &self.wish
    }

    pub(crate) fn judge(&self, reply: &ModelReply, rule: u32) -> Verdict {
        envelope::judge(reply, &self.schema, rule)
    }

    pub(crate) fn shape(&self) -> &str {
        &self.shape
    }
}

/// Whose words the messages are, unless they are the workflow's own. A port that brings nothing is not asked.
fn origin(scene: &EvalContext<'_>) -> Option<Provenance> {
    let asked = |name: &str| matches!(name, "messages" | "prompt") && scene.inputs.contains_key(name);
    let port = scene.state.plan.nodes[scene.node].inputs.iter().find(|(name, _)| asked(name));
    let (_, port) = port.filter(|_| scene.state.fences())?;
    scene.state.brought_by(port)
}

/// A message that somebody else wrote: its texts are fenced, and it speaks for nobody but whoever asks.
fn fenced(message: Message, origin: &Provenance) -> Message {
    let content = match message.content() {
        Value::String(text) => Value::String(origin.fence(text)),
        Value::Array(parts) => {
            let part = |part: &Value| match part.get("text") {
                Some(Value::String(text)) => {
                    let mut part = part.clone();
                    part["text"] = origin.fence(text).into();
                    part
                }
                _ => part.clone(),
            };
            parts.iter().map(part).collect()
        }
        other => other.clone(),
    };
    Message::new(if message.role() == "assistant" { "assistant" } else { "user" }, content)
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
