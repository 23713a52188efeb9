//! How a mock agent is configured: everything it will say, written down by a test.

use baton_model::event::Verbosity;
use baton_model::workflow::Node;
use serde::Deserialize;
use serde_json::Value;

use crate::plan::Problem;
use crate::plan::node_config::Config;

/// `core.conformance.mock-agent`: shows what an agent's events look like, without an agent. Test workflows only.
#[derive(Debug)]
pub(crate) struct MockAgent {
    pub(crate) agent_id: String,
    reasoning: Option<Reasoning>,
    pub(crate) calls: Vec<MockCall>,
    pub(crate) handoff: Option<MockHandoff>,
    decision: Option<MockDecision>,
    confidence: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Reasoning {
    summary: String,
    trace: Option<String>,
    #[serde(rename = "tokenCount")]
    _token_count: Option<u64>,
    #[serde(default)]
    stream_chunks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MockCall {
    pub(crate) tool_id: String,
    #[serde(default)]
    pub(crate) arguments: Value,
    #[serde(default, deserialize_with = "present")]
    pub(crate) result: Option<Value>,
    pub(crate) error: Option<MockError>,
    pub(crate) duration_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MockError {
    pub(crate) error: String,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MockHandoff {
    pub(crate) to_agent_id: String,
    pub(crate) reason: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) context: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MockDecision {
    decision: Value,
    confidence: Option<f64>,
    #[serde(rename = "reasoning")]
    _reasoning: Option<String>,
}

const SETTINGS: &[&str] =
    &["agentId", "mockReasoning", "mockToolCalls", "mockHandoff", "mockDecision", "mockConfidence"];

impl MockAgent {
    pub(crate) fn compile(config: &Config<'_>, node: &Node) -> Result<Self, Vec<Problem>> {
        config.only(SETTINGS)?;
        let pinned = || node.agent.as_ref()?.get("agentId")?.as_str().map(str::to_owned);
        let agent_id = config.text("agentId")?.or_else(pinned);
        let agent_id = agent_id.unwrap_or_else(|| format!("host:mock-agent:{}", node.id));
        let reasoning = match config.get("mockReasoning") {
            None | Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(Reasoning {
                summary: "Mock reasoning.".to_owned(),
                trace: None,
                _token_count: None,
                stream_chunks: Vec::new(),
            }),
            Some(_) => {
                config.choice("mockReasoning", "true, false, or {summary, trace?, tokenCount?, streamChunks?}")?
            }
        };
        let calls: Option<Vec<MockCall>> =
            config.choice("mockToolCalls", "lists of {toolId, arguments?, result?, error?, durationMs?}")?;
        let calls = calls.unwrap_or_default();
        if let Some(at) = calls.iter().position(|call| call.result.is_some() == call.error.is_some()) {
            let place = format!("mockToolCalls/{at}");
            return Err(config.problem(&place, "A mock tool call has either a `result` or an `error`."));
        }
        if let Some(at) = calls.iter().position(|call| call.tool_id.is_empty()) {
            return Err(config.problem(&format!("mockToolCalls/{at}/toolId"), "A tool has a name."));
        }
        let handoff: Option<MockHandoff> = config.choice("mockHandoff", "{toAgentId, reason?, context?}")?;
        let ids = [("agentId", Some(&agent_id)), ("mockHandoff/toAgentId", handoff.as_ref().map(|to| &to.to_agent_id))];
        for (place, id) in ids {
            if id.is_some_and(|id| !(3..=256).contains(&id.chars().count())) {
                return Err(config.problem(place, "An agent id has 3 to 256 characters."));
            }
        }
        let decision: Option<MockDecision> = config.choice("mockDecision", "{decision, confidence?, reasoning?}")?;
        let confidence: Option<f64> = config.choice("mockConfidence", "numbers from 0 to 1")?;
        let own = decision.as_ref().and_then(|decision| decision.confidence);
        for (place, confidence) in [("mockConfidence", confidence), ("mockDecision/confidence", own)] {
            if confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
                return Err(config.problem(place, "A confidence lies between 0 and 1."));
            }
        }
        Ok(Self { agent_id, reasoning, calls, handoff, decision, confidence })
    }

    /// The pieces of its thinking, and the whole of it.
    pub(crate) fn thinks(&self, verbosity: Verbosity) -> Option<(&[String], String)> {
        let reasoning = self.reasoning.as_ref()?;
        let whole = match (&reasoning.trace, verbosity) {
            _ if !reasoning.stream_chunks.is_empty() => reasoning.stream_chunks.concat(),
            (Some(trace), Verbosity::Full) => trace.clone(),
            _ => reasoning.summary.clone(),
        };
        Some((&reasoning.stream_chunks, whole))
    }

    /// What it decides, and how sure it is.
    pub(crate) fn decides(&self) -> Option<(&Value, Option<f64>)> {
        let decided = self.decision.as_ref()?;
        Some((&decided.decision, self.confidence.or(decided.confidence)))
    }
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
