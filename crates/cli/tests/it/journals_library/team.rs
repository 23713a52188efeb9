//! Agents whose model follows a script, and the workflows they work in.

use std::sync::Arc;

use baton_model::{AgentCard, MemoryShape, ModelChoice, ModelClass};
use baton_provider::{Script, ScriptedProvider};
use baton_runtime::{AgentRegistry, ModelTable, Models, Options};
use baton_testkit::Flow;
use baton_tool::{ToolSet, Toolbox};
use serde_json::{Value, json};

pub const CLERK: &str = "local.journal.clerk";
pub const ASKER: &str = "local.journal.asker";
pub const UNSURE: &str = "local.journal.unsure";
const LEAD: &str = "local.journal.lead";
const WRITER: &str = "local.journal.writer";
const REMEMBER: &str = "openwop:memory.put";
const ENVELOPE: &str = "openwop:envelope";
const AGENT: &str = "vendor.baton.agent";
const STRUCTURED: &str = "core.ai.structuredOutput";

/// A host with the agents, the model and the tools of the journals.
pub fn options() -> Options {
    let script = Script::read(&script().to_string()).unwrap();
    let cards = [
        card(CLERK, "You are the clerk.", &[REMEMBER]),
        card(ASKER, "You ask first.", &[ENVELOPE]),
        card(WRITER, "You write.", &[]),
        card(LEAD, "You lead.", &[]),
        AgentCard { threshold: Some(0.9), ..card(UNSURE, "You doubt.", &[]) },
    ];
    let set = baton_tool::native::tools().fold(ToolSet::default(), |set, tool| set.tool(tool).unwrap());
    Options {
        models: Models::default().with("script", Arc::new(ScriptedProvider::new(script))),
        model_table: ModelTable::default()
            .otherwise(ModelChoice { provider: "script".to_owned(), model: "any".to_owned() }),
        agent_registry: cards
            .into_iter()
            .fold(AgentRegistry::default(), |agent_registry, card| agent_registry.with(None, card)),
        tools: Toolbox::new(set),
        ..Options::default()
    }
}

fn card(id: &str, prompt: &str, tools: &[&str]) -> AgentCard {
    AgentCard {
        agent_id: id.to_owned(),
        persona: id.to_owned(),
        label: id.to_owned(),
        description: None,
        pack_name: "local.journal".to_owned(),
        pack_version: "1.0.0".to_owned(),
        model_class: ModelClass::General,
        system_prompt: prompt.to_owned(),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        memory: MemoryShape::default(),
        threshold: None,
        task_schema: None,
        return_schema: None,
        prompt_overrides: Default::default(),
        prompt_library: None,
    }
}

/// What the model says, by who asks.
fn script() -> Value {
    let question = json!({
        "type": "clarification.request",
        "payload": {"questions": [{"id": "answer", "question": "Which way?"}]},
    });
    json!({"rules": [
        {"when": {"system": "You are the clerk.", "call": 1}, "reply": {
            "reasoning": "It is worth remembering.",
            "tools": [
                {"id": "c1", "name": REMEMBER, "arguments": {"content": "noted"}},
                {"id": "c2", "name": "openwop:nothing", "arguments": {}},
            ],
        }},
        {"when": {"system": "You are the clerk."}, "reply": {"text": "It is noted.", "reasoning": "Done."}},
        {"when": {"system": "You ask first.", "call": 1},
            "reply": {"tools": [{"id": "q1", "name": ENVELOPE, "arguments": question}]}},
        {"when": {"system": "You ask first."}, "reply": {"text": "As you say."}},
        {"when": {"system": "You doubt."}, "reply": {"json": {"result": "perhaps", "confidence": 0.4}}},
        {"when": {"system": "You lead.", "any": "Turn 2 came to"}, "reply": {"json": {
            "kind": "terminate", "reason": "goal-reached", "agentConfidence": 0.9}}},
        {"when": {"system": "You lead.", "any": "Turn 1 came to"}, "reply": {"json": {
            "kind": "next-worker", "nextWorkerIds": ["gated", "researching"], "agentConfidence": 0.2}}},
        {"when": {"system": "You lead."}, "reply": {"json": {
            "reasoning": "First things first.", "kind": "next-worker", "nextWorkerIds": ["researching"],
            "nextWorkerInputs": [{"topic": "rivers"}], "confidence": 0.9, "agentConfidence": 0.9}}},
        {"when": {"node": "cut"}, "reply": {"text": "{\"n\": ", "stop": "max_tokens"}},
        {"when": {"node": "wrong", "last": "could not be used"}, "reply": {"text": "Here you are:\n```json\n{\"n\": 2}\n```"}},
        {"when": {"node": "wrong"}, "reply": {"json": {"n": "two"}}},
        {"when": {"node": "prose", "last": "Put that answer"}, "reply": {"json": {"n": 3}}},
        {"when": {"node": "prose"}, "reply": {"text": "The answer is three."}},
        {"when": {"node": "never"}, "reply": {"refusal": "I would rather not.", "safetyCategory": "other"}},
        {"when": {"node": "spend"}, "reply": {"json": {"n": 1}, "usage": {"inputTokens": 90, "outputTokens": 60}}},
    ], "otherwise": {"text": "Done."}})
}

fn task(text: &str) -> Value {
    json!({"inputs": {"task": {"type": "static", "value": text}}})
}

/// A workflow that is one agent.
pub fn asks(id: &str, agent: &str) -> Flow {
    Flow::new(id).node_with("work", AGENT, json!({"agentId": agent}), task("Do it."))
}

/// One agent's work goes to another.
pub fn handed_on() -> Flow {
    Flow::new("handed-on")
        .node_with("work", AGENT, json!({"agentId": CLERK}), task("Note it."))
        .node_with("write", AGENT, json!({"agentId": WRITER}), task("Write it."))
        .edge("work", "write")
}

/// An agent that leads. Its second decision is held until somebody accepts it.
pub fn led() -> Flow {
    let workers = json!([{"id": "researching", "does": "finds out"}, {"id": "gated", "does": "asks"}]);
    let dispatch = json!({"fanOutPolicy": "parallel", "outputMapping": {"found": "result"}});
    let lead = json!({"agentId": LEAD, "workers": workers});
    Flow::chain("led", &[("lead", "core.orchestrator.supervisor", lead), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
}

fn structured(node: Flow, id: &str, prompt: &str) -> Flow {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let config = json!({"provider": "script", "model": "any", "outputSchema": schema, "maxTokens": 100});
    node.node_with(id, STRUCTURED, config, json!({"inputs": {"prompt": {"type": "static", "value": prompt}}}))
}

/// Answers of the wrong shape, and prose.
pub fn answers() -> Flow {
    let flow = structured(Flow::new("answers"), "wrong", "Count on.");
    structured(flow, "prose", "Say it.").edge("wrong", "prose")
}

/// An answer that is cut off however much room it gets.
pub fn cut_off() -> Flow {
    structured(Flow::new("cut-off"), "cut", "Count.")
}

pub fn refusal() -> Flow {
    structured(Flow::new("refusal"), "never", "Say what you may not.")
}

/// Goes round until there is nothing left to spend.
pub fn spender() -> Flow {
    let each = json!({"count": 9, "maxIterations": 9});
    let flow = Flow::new("spender").node("each", "core.loop", each);
    structured(flow, "spend", "Count.")
        .edge_with("each", "spend", json!({"sourceOutput": "body"}))
        .edge("spend", "each")
}
