//! The node types of test workflows, and how each is read.

use baton_model::tool::{SafetyTier, Transport};
use baton_model::workflow::Node;
use baton_model::{ModelNeeds, OutcomePolicy, SemanticRequest, ToolSpec, native};
use serde_json::{Map, json};

use super::kind::TestKind;
use super::mock_agent::MockAgent;
use crate::node_request::Probe;
use crate::plan::Problem;
use crate::plan::node_config::model_preference::ModelPreference;
use crate::plan::node_config::structured_output::{StructuredOutput, UNSETTLED};
use crate::plan::node_config::{Config, Delay, Http, Kind};
use crate::schema::Schema;

/// Whether this build has any of it.
pub(crate) const AVAILABLE: bool = true;

/// What conformance mode has besides.
pub(crate) const TYPES: [&str; 7] = [
    "conformance.effect.emit",
    "conformance.modelCapability.insufficient",
    "conformance.requiresMissing",
    "core.ai.callPrompt",
    "core.conformance.hold",
    "core.conformance.mock-agent",
    "core.conformance.side-effect",
];

/// Needed by the node that no model satisfies.
const UNATTAINABLE: &str = "nonexistent-capability-9b3f";

/// The kind of a node that only test workflows have; none for every other node.
pub(crate) fn read(config: &Config<'_>, node: &Node) -> Result<Option<Kind>, Vec<Problem>> {
    Ok(Some(match node.type_id.as_str() {
        "core.identity" if config.get("memoryAction").is_some() => Kind::Test(TestKind::Probe(probe(config)?)),
        "core.conformance.hold" => Kind::Delay(Delay::compile(config)?),
        "conformance.modelCapability.insufficient" => Kind::StructuredOutput(unattainable(config)?),
        "core.ai.callPrompt" => {
            if config.get("mcp").is_some() {
                return Err(
                    config.problem("mcp", "Tools are called by agents here; give one the tool in its `toolAllowlist`.")
                );
            }
            Kind::Test(TestKind::StreamText)
        }
        "conformance.effect.emit" | "core.conformance.side-effect" => Kind::Http(effect(config)?),
        "core.conformance.mock-agent" => Kind::Test(TestKind::MockAgent(Box::new(MockAgent::compile(config, node)?))),
        "conformance.requiresMissing" => {
            Kind::Test(TestKind::Missing { capability: "conformance.never-provided".to_owned() })
        }
        _ => return Ok(None),
    }))
}

/// The suite's memory checks, which it drives through a setting of `core.identity`. They go through the same service as
/// every other write; see [`Probe`].
fn probe(config: &Config<'_>) -> Result<Probe, Vec<Problem>> {
    config.only(&["memoryAction", "probeMemoryRef", "byokSecretId"])?;
    match config.required_text("memoryAction")?.as_str() {
        "write-then-read" => Ok(Probe::WriteThenRead),
        "ttl-probe" => Ok(Probe::Ttl),
        "cross-tenant-probe" => Ok(Probe::CrossTenant { memory_ref: config.required_text("probeMemoryRef")? }),
        "redaction-probe" => Ok(Probe::Redaction { secret: config.required_text("byokSecretId")? }),
        other => Err(config.problem("memoryAction", format!("There is no memory action `{other}`."))),
    }
}

/// Something done to the world for conformance tests: announced, made and recorded like any other request.
fn effect(config: &Config<'_>) -> Result<Http, Vec<Problem>> {
    config.only(&["into"])?;
    let tool = ToolSpec {
        id: native::CONFORMANCE_EFFECT.to_owned(),
        description: String::new(),
        input_schema: json!({}),
        transport: Transport::Http,
        tier: SafetyTier::Write,
        outcome_policy: OutcomePolicy::Fail,
        scopes: Vec::new(),
        stub: None,
    };
    let (method, headers) = ("POST".to_owned(), Map::new());
    Ok(Http { method, url: None, headers, body: None, into: config.text("into")?, verify_url: None, tool })
}

/// A test's node that needs what no model has.
fn unattainable(config: &Config<'_>) -> Result<StructuredOutput, Vec<Problem>> {
    config.only(&[])?;
    let raw = json!({"provider": UNSETTLED, "model": UNSETTLED, "messages": []});
    let request = SemanticRequest::read(raw.as_object().unwrap_or(&Map::new()));
    let request = request.map_err(|error| config.problem("", error.why.to_string()))?;
    let needs = ModelNeeds { required: vec![UNATTAINABLE.to_owned()], fallback: None };
    let preference = ModelPreference { needs, ..ModelPreference::default() };
    let schema = Schema::compile(&json!({}), config.strictness).map_err(|error| config.problem("", error))?;
    Ok(StructuredOutput { preference, request, system_prompt: None, schema, shape: "unattainable".to_owned() })
}
