//! Agents that are installed in the tests' world, the tools it offers, and what an agent works from.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{Command, Effect, Features, InvokeRequest, Plan, Returned, RunState, Start, ToolCall, outstanding};
use baton_model::native::ENVELOPE;
use baton_model::tool::{SafetyTier, Transport};
use baton_model::{
    AgentCard, Event, InvocationContext, MemoryEntry, MemoryShape, ModelChoice, ModelClass, ModelReply, NodeId,
    OutcomePolicy, PromptLayer, Prompted, StopReason, ToolOutcome, ToolSpec, ToolUse,
};
use serde_json::{Value, json};

use super::models::{Asked, asked, said};
use super::{World, start_command, workflow};

pub const AGENT: &str = "vendor.baton.agent";
/// Answers with words.
pub const FREE: &str = "test.agents.free";
/// Answers with `{"verdict": string, "confidence"?: number}`.
pub const STRICT: &str = "test.agents.strict";
/// Wants `{"diff": string}`.
pub const PICKY: &str = "test.agents.picky";
/// Decides for a supervisor.
pub const PLANNER: &str = "test.agents.planner";
/// The same, and its manifest lets it do nothing but terminate.
pub const ENDER: &str = "test.agents.ender";

/// Its manifest names tools that nobody here has.
pub const LACKING: &str = "test.agents.lacking";

pub fn card(agent_id: &str) -> AgentCard {
    let strict = json!({
        "title": "Review", "type": "object", "required": ["verdict"],
        "properties": {
            "verdict": {"type": "string"}, "confidence": {"type": "number"}, "reasoning": {"type": "string"}
        },
        "additionalProperties": false
    });
    AgentCard {
        agent_id: agent_id.to_owned(),
        persona: "Tester".to_owned(),
        label: "Tester".to_owned(),
        description: None,
        pack_name: "test.agents".to_owned(),
        pack_version: "1.2.3".to_owned(),
        model_class: ModelClass::General,
        system_prompt: "Be careful.".to_owned(),
        tools: match agent_id {
            LACKING => ["mcp:look", "openwop:core.rag.finder", "mcp:gone.x"].map(str::to_owned).to_vec(),
            _ => catalogue().into_iter().filter(|tool| tool.id != NOT_ALLOWED).map(|tool| tool.id).collect(),
        },
        memory: MemoryShape { long_term: true, ..MemoryShape::default() },
        threshold: None,
        task_schema: (agent_id == PICKY).then(|| json!({"type": "object", "required": ["diff"]})),
        return_schema: match agent_id {
            STRICT => Some(strict),
            ENDER => Some(json!({
                "type": "object", "required": ["kind"],
                "properties": {"kind": {"const": "terminate"}, "reason": {"type": "string"}, "confidence": {"type": "number"}},
                "additionalProperties": false
            })),
            _ => None,
        },
        prompt_overrides: BTreeMap::new(),
        prompt_library: None,
    }
}

/// The question about a call of which nobody knows.
pub const UNKNOWN_EFFECT: &str = "x-host-baton-effect-unknown";

/// Offered by the host, and on no agent's list.
pub const NOT_ALLOWED: &str = "mcp:shell";

/// Every tool the host offers: one for each way of dealing with an unknown outcome, and those in the process.
pub fn catalogue() -> Vec<ToolSpec> {
    let tool = |id: &str, transport, tier, outcome_policy| ToolSpec {
        id: id.to_owned(),
        description: format!("The tool {id}."),
        input_schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
        transport,
        tier,
        outcome_policy,
        scopes: Vec::new(),
        stub: None,
    };
    let abroad = |id: &str, tier, policy| tool(id, Transport::Mcp, tier, policy);
    let native = |id: &str| ToolSpec {
        input_schema: json!({"type": "object"}),
        ..tool(id, Transport::Native, SafetyTier::Write, OutcomePolicy::Retry)
    };
    vec![
        abroad("mcp:look", SafetyTier::Read, OutcomePolicy::Retry),
        abroad("mcp:store", SafetyTier::Write, OutcomePolicy::Retry),
        abroad("mcp:pay", SafetyTier::Write, OutcomePolicy::Verify),
        abroad("mcp:mail", SafetyTier::Write, OutcomePolicy::Ask),
        abroad("mcp:post", SafetyTier::Write, OutcomePolicy::Fail),
        abroad(NOT_ALLOWED, SafetyTier::Exec, OutcomePolicy::Ask),
        native("openwop:memory.put"),
        native("openwop:memory.get"),
        native("openwop:memory.list"),
        native("openwop:workspace.put"),
        native("openwop:workspace.get"),
        native("openwop:workspace.list"),
        native(ENVELOPE),
    ]
}

/// What a shell would have the agent work from.
pub fn brief(request: &InvokeRequest, memory: Vec<MemoryEntry>) -> InvocationContext {
    let card = card(&request.agent_id);
    let granted = |id: &String| request.grants.iter().all(|grant| grant.contains(id));
    let tools = catalogue().into_iter().filter(|tool| card.tools.contains(&tool.id) && granted(&tool.id)).collect();
    let there = |id: &String| catalogue().iter().any(|tool| tool.id == *id);
    let missing = card.tools.iter().filter(|id| request.tell_missing && !there(id) && granted(id)).cloned();
    let missing_tools = missing.collect();
    let layer = |layer: &str, source: Option<String>| PromptLayer {
        layer: layer.to_owned(),
        applied: source.is_some(),
        reason: source.is_none().then(|| "none here".to_owned()),
        source,
    };
    let prompt = Prompted {
        kind: "system".to_owned(),
        chain: vec![layer("node", None), layer("agent-intrinsic", Some(card.prompt_ref()))],
        resolved: Some(card.prompt_ref()),
        text: Some(card.system_prompt.clone()),
        variable_hashes: BTreeMap::new(),
        untrusted: false,
    };
    let model = ModelChoice { provider: "somewhere".to_owned(), model: "large".to_owned() };
    InvocationContext {
        card,
        model: request.model.clone().unwrap_or(model),
        task: request.task.clone(),
        tools,
        missing_tools,
        memory,
        situation: Default::default(),
        prompts: vec![prompt],
        bounds: Default::default(),
        show_prompts: false,
        origins: request.origins.clone(),
        history: Vec::new(),
    }
}

pub fn features() -> Features {
    Features { conformance: true, live_agents: true, ..Features::default() }
}

/// For generated definitions: a quorum that nobody can reach is refused in new ones, and runs of older ones meet it.
pub fn lenient() -> Features {
    Features { recorded: true, ..features() }
}

pub fn plan(definition: Value) -> Arc<Plan> {
    Arc::new(Plan::compile(definition, features()).expect("the definition compiles"))
}

/// A workflow of one agent node, with these settings of the node.
pub fn one(agent: &str, config: Value, settings: Value) -> Value {
    let mut config = config;
    config["agentId"] = agent.into();
    let mut definition = workflow(&[("work", AGENT, config)], &[]);
    definition["nodes"][0]["settings"] = settings;
    definition["nodes"][0]["outputRole"] = "primary".into();
    definition
}

pub fn started(definition: Value) -> World {
    started_with(definition, start_command(json!({"text": "Do it."})))
}

pub fn started_with(definition: Value, start: Start) -> World {
    World::started(plan(definition), start)
}

/// A run of one agent.
pub fn working(agent: &str) -> World {
    started(one(agent, json!({}), json!({})))
}

pub fn wants(tools: &[(&str, Value)]) -> ModelReply {
    let tools = tools.iter().enumerate().map(|(i, (name, arguments))| ToolUse {
        id: format!("t{i}"),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    });
    ModelReply { tools: tools.collect(), stop: StopReason::ToolUse, ..said("Let me see.") }
}

pub fn cut_off(content: &str) -> ModelReply {
    ModelReply { stop: StopReason::MaxTokens, ..said(content) }
}

pub fn ok(value: Value) -> Returned {
    Returned::Outcome { outcome: ToolOutcome::ok(value).took(7), written: Vec::new() }
}

pub fn broken() -> Returned {
    Returned::Outcome { outcome: ToolOutcome::failed("external_call_failed", "It broke."), written: Vec::new() }
}

pub fn unknown() -> Returned {
    Returned::Unknown { reason: "The line went dead.".to_owned() }
}

/// Every call of a tool the run waits for.
pub fn tool_calls(state: &RunState) -> Vec<ToolCall> {
    let calls = outstanding(state).into_iter().filter_map(|effect| match effect {
        Effect::CallTool(call) => Some(*call),
        _ => None,
    });
    calls.collect()
}

pub fn returned(call: &ToolCall, returned: Returned) -> Command {
    Command::ToolReturned { node: call.node.clone(), call_id: call.call_id.clone(), returned }
}

/// An agent that has asked for this tool, once.
pub fn calling(tool: &str) -> (World, ToolCall) {
    calling_within(tool, json!({}))
}

pub fn calling_within(tool: &str, settings: Value) -> (World, ToolCall) {
    let mut world = started(one(FREE, json!({}), settings));
    world.says(wants(&[(tool, json!({"n": 1}))]));
    let call = world.tool();
    (world, call)
}

impl World {
    /// Answers the only call of a model the run waits for.
    pub fn says(&mut self, reply: ModelReply) -> Asked {
        let call = self.call();
        assert!(self.reply(&call, Ok(reply)), "an answer that is waited for counts");
        call
    }

    /// The only call of a tool the run waits for.
    pub fn tool(&self) -> ToolCall {
        let calls = tool_calls(&self.state);
        assert_eq!(calls.len(), 1, "{calls:?}");
        calls[0].clone()
    }

    /// Tells what came of a call, open or not. Returns whether it changed anything.
    pub fn returns(&mut self, call: &ToolCall, what: Returned) -> bool {
        let before = self.log.len();
        self.command(&returned(call, what)).expect("a result is never refused");
        self.log.len() > before
    }

    /// Names of the agent events, in order.
    /// The same run, as if its log had been begun under this rule.
    pub fn under_rule(&mut self, rule: u32) {
        let Event::RunStarted(began) = &mut self.log[0].event else { panic!("{:?}", self.log[0]) };
        began.private.engine_rule = rule;
        self.state = self.refolded();
    }

    pub fn agent_types(&self) -> Vec<&str> {
        self.types().into_iter().filter(|kind| kind.starts_with("agent.")).collect()
    }

    /// How each bracket ended, in order.
    pub fn outcomes(&self) -> Vec<String> {
        let ended = self.payloads("agent.invocation.completed");
        ended.iter().map(|payload| payload["outcome"].as_str().unwrap().to_owned()).collect()
    }

    /// Whatever is waited for, nobody else is: neither model nor tool.
    pub fn is_quiet(&self) -> bool {
        asked(&self.state).is_empty() && tool_calls(&self.state).is_empty()
    }

    pub fn node(&self, id: &str) -> NodeId {
        NodeId::new(id)
    }

    /// The events about calls and their outcomes, in order.
    pub fn story(&self) -> Vec<String> {
        let told = self.log.iter().filter_map(|record| match &record.event {
            Event::AgentToolCalled(_) => Some("called".to_owned()),
            Event::AgentToolReturned(event) => Some(match &event.error {
                Some(error) => format!("returned {}", error.code),
                None => "returned".to_owned(),
            }),
            Event::EffectUnknown(event) => Some(format!("unknown, {}", json!(event.policy).as_str().unwrap())),
            Event::EffectRetried(event) => Some(if event.verify { "looked up" } else { "again" }.to_owned()),
            Event::InterruptRequested(event) if event.kind == UNKNOWN_EFFECT => Some("asked".to_owned()),
            Event::InterruptResolved(event) => Some(format!("{:?}", event.outcome).to_lowercase()),
            _ => None,
        });
        told.collect()
    }

    /// Places and causes of the records of one type.
    pub fn causes(&self, kind: &str) -> Vec<(u64, Option<u64>)> {
        let of_kind = self.log.iter().filter(|record| record.event.type_name() == kind);
        of_kind.map(|record| (record.seq, record.causation)).collect()
    }
}
