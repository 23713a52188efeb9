//! Settings of a supervisor: rules, or the agent that decides in their place.

use std::sync::LazyLock;

use baton_model::workflow::{Definition, Node};
use baton_model::{ContextBounds, Decision, code};
use serde_json::{Value, json};

use super::agent::AgentOptions;
use super::config::Config;
use super::decision::read_decision;
use crate::expr::{Expression, Strictness};
use crate::nodes::conformance::read_script;
use crate::plan::problem::Problem;

/// `core.orchestrator.supervisor`: decides, once per turn, what happens next.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) decider: Decider,
    pub(crate) agent_id: String,
    /// The one version of it that will do, where the node says so.
    pub(crate) version: Option<String>,
    /// How its agent is asked, where it has one.
    pub(crate) options: AgentOptions,
    /// How sure the agent behind the decision says it is; the agents' own rule, not the decision's.
    pub(crate) agent_confidence: Option<f64>,
    /// Whom it may call, as it is told.
    pub(crate) workers: Option<Value>,
    /// A held decision that nobody ratifies within this time is rejected.
    pub(crate) hold_timeout_ms: Option<u64>,
    /// How many characters of what happened before it wants to be told at most.
    pub(crate) transcript_chars: Option<u32>,
    /// Whether its rules look at what is remembered, and at files.
    pub(crate) reads_memory: bool,
    pub(crate) reads_workspace: bool,
    /// Whether its rules look at what happened before. An agent is told without them.
    pub(crate) reads_transcript: bool,
}

#[derive(Debug)]
pub(crate) enum Decider {
    /// The first rule whose condition holds decides.
    Rules { rules: Vec<(Expression, Decision)>, otherwise: Decision },
    /// Turn n takes the n-th decision; past the end, the run terminates. Conformance mode only.
    Script(Vec<Decision>),
    /// A live agent decides; the shell asks it.
    Agent,
}

/// Settings that make a supervisor a scripted one.
const SCRIPT_SETTINGS: [&str; 4] = ["mockDispatchPlan", "mockDecisions", "mockConfidence", "mockPendingDecision"];

impl Supervisor {
    pub(crate) fn compile(
        config: &Config<'_>,
        node: &Node,
        definition: &Definition,
        test_types: bool,
        live_agents: bool,
    ) -> Result<Self, Vec<Problem>> {
        let named = node.agent.as_ref().and_then(|agent| agent.get("agentId")).and_then(Value::as_str);
        let agent_id = match named {
            Some(id) => Some(id.to_owned()),
            None => config.text("agentId")?,
        };
        let script_key = SCRIPT_SETTINGS.iter().find(|key| config.get(key).is_some());
        if let Some(key) = script_key.filter(|_| !test_types) {
            return Err(
                config.problem(key, format!("`{key}` works only in conformance mode and conformance workflows."))
            );
        }
        let decider = if config.get("rules").is_some() {
            read_rules(config)?
        } else if script_key.is_some() || (test_types && config.map.is_empty()) {
            Decider::Script(read_script(config)?)
        } else if agent_id.is_some() && live_agents {
            Decider::Agent
        } else if agent_id.is_some() {
            let mut problem =
                config.problem("agentId", "This host has no live agents yet; give the supervisor `rules`.");
            problem[0].code = code::CAPABILITY_REQUIRED;
            problem[0].details.insert("requiredCapability".into(), "agents.liveRuntime".into());
            problem[0].details.insert("offendingTypeId".into(), node.type_id.clone().into());
            problem[0].details.insert("nodeId".into(), node.id.as_str().into());
            return Err(problem);
        } else {
            return Err(config.problem("rules", "A supervisor decides by `rules` and `otherwise`."));
        };
        let agent_id = agent_id.unwrap_or_else(|| format!("supervisor-{}", node.id));
        if !(3..=256).contains(&agent_id.chars().count()) {
            return Err(config.problem("agentId", "An agent id has 3 to 256 characters."));
        }
        let others = definition.nodes.iter().filter(|n| n.type_id == node.type_id && n.id != node.id).count();
        if others > 0 {
            return Err(config.problem("", "A run has one orchestrator: use one supervisor per workflow."));
        }
        let reads = |name: &str| match &decider {
            Decider::Rules { rules, .. } => rules.iter().any(|(when, _)| when.reads(name)),
            Decider::Script(_) | Decider::Agent => false,
        };
        let live = matches!(decider, Decider::Agent);
        Ok(Self {
            reads_memory: live || reads("memory"),
            reads_workspace: live || reads("workspace"),
            reads_transcript: reads("transcript"),
            options: if live { AgentOptions::compile(config)? } else { AgentOptions::default() },
            decider,
            agent_id,
            version: super::agent::version(node),
            workers: config.get("workers").cloned(),
            agent_confidence: config.get("mockConfidence").and_then(Value::as_f64),
            transcript_chars: read_context(config)?,
            hold_timeout_ms: config.whole("escalationTimeoutMs", 1, 31_536_000_000)?,
        })
    }

    /// The decisions that its rules spell out, each with its place in the configuration.
    pub(crate) fn rule_decisions(&self) -> Vec<(String, &Decision)> {
        let Decider::Rules { rules, otherwise } = &self.decider else { return Vec::new() };
        let listed = rules.iter().enumerate().map(|(i, (_, decision))| (format!("rules/{i}/decide"), decision));
        listed.chain([("otherwise".to_owned(), otherwise)]).collect()
    }

    /// Whether a live agent has to be asked.
    pub(crate) fn is_agent(&self) -> bool {
        matches!(self.decider, Decider::Agent)
    }

    /// How sure the agent is in this turn. The end of an exhausted script is the host's own word, not an agent's.
    pub(crate) fn agent_confidence(&self, turn: u64) -> Option<f64> {
        let scripted = match &self.decider {
            Decider::Script(plan) => turn <= plan.len() as u64,
            Decider::Rules { .. } | Decider::Agent => true,
        };
        self.agent_confidence.filter(|_| scripted)
    }
}

/// `context: {transcriptChars}`: a supervisor may ask to be told less than the host would tell.
fn read_context(config: &Config<'_>) -> Result<Option<u32>, Vec<Problem>> {
    let Some(context) = config.get("context") else { return Ok(None) };
    // It was nobody's business before it meant something.
    if config.strictness == Strictness::Recorded {
        let chars = context.get("transcriptChars").and_then(Value::as_u64).and_then(|chars| u32::try_from(chars).ok());
        return Ok(chars.filter(|chars| ContextBounds::CHARS.contains(chars)));
    }
    let known = context.as_object().filter(|map| map.keys().all(|key| key == "transcriptChars"));
    let known = known.ok_or_else(|| config.problem("context", "`context` is an object with `transcriptChars`."))?;
    let Some(chars) = known.get("transcriptChars") else { return Ok(None) };
    let read = chars.as_u64().and_then(|chars| u32::try_from(chars).ok());
    let (least, most) = ContextBounds::CHARS.into_inner();
    read.filter(|chars| ContextBounds::CHARS.contains(chars)).map(Some).ok_or_else(|| {
        let message = format!("`transcriptChars` is a whole number from {least} to {most}.");
        config.problem("context/transcriptChars", message)
    })
}

fn read_rules(config: &Config<'_>) -> Result<Decider, Vec<Problem>> {
    let list = config.get("rules").and_then(Value::as_array);
    let list = list.ok_or_else(|| config.problem("rules", "`rules` lists {when: CEL, decide: decision}."))?;
    let mut rules = Vec::with_capacity(list.len());
    for (i, rule) in list.iter().enumerate() {
        let place = format!("rules/{i}/when");
        let when = rule.get("when").and_then(Value::as_str);
        let when = when.ok_or_else(|| config.problem(&place, "A rule needs `when`, a CEL condition."))?;
        let when = config.cel(&place, when)?;
        rules.push((when, read_decision(config, &format!("rules/{i}/decide"), rule.get("decide"))?));
    }
    Ok(Decider::Rules { rules, otherwise: read_decision(config, "otherwise", config.get("otherwise"))? })
}

/// What a live supervisor answers: the fields of a decision side by side, which every vendor's structured output can
/// promise, and how sure the agent is of itself.
///
/// How sure it is may be absent and is never null: none says nothing, and nobody can tell it from a slip. Vendors that
/// want every member there are shown one that may be null, and such a null is taken out of their answers.
pub(crate) fn decision_schema(rule: u32) -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| written_schema(json!("number")));
    static OLDER: LazyLock<Value> = LazyLock::new(|| written_schema(json!(["number", "null"])));
    if rule < 4 { &OLDER } else { &SCHEMA }
}

fn written_schema(sureness: Value) -> Value {
    json!({
        "type": "object",
        "required": ["kind"],
        "properties": {
            "reasoning": {"type": ["string", "null"]},
            "kind": {"enum": ["next-worker", "ask-user", "terminate"]},
            "nextWorkerIds": {"type": ["array", "null"], "items": {"type": "string"}},
            "nextWorkerInputs": {"type": ["array", "null"], "items": {"type": "object"}},
            "prompt": {"type": ["string", "null"]},
            "reason": {"type": ["string", "null"]},
            "confidence": {"type": sureness, "minimum": 0, "maximum": 1},
            "agentConfidence": {"type": sureness, "minimum": 0, "maximum": 1}
        },
        "additionalProperties": false
    })
}
