//! The workflows that simulated clients start: between them they use every way a run depends on a disk, on time, on
//! others and on humans.

use baton_model::{AgentCard, MemoryShape, ModelClass, TenantId};
use baton_testkit::Flow;
use serde_json::{Value, json};

use crate::peers::{LOOK, SEND};

pub(crate) const AGENT: &str = "local.test.helper";
/// A step of a run of this workflow panics when the run goes on by itself.
pub(crate) const POISON: &str = "poison";
/// Storage does not take records of runs of this workflow, from time to time.
pub(crate) const REFUSED: &str = "refused";
/// What a tree may spend in tokens where it has a budget: nothing, a call or two, most of it, more than enough.
pub(crate) const BUDGETS: &[u64] = &[1, 1_000, 3_000, 10_000, 30_000];

/// Those that clients start.
pub(crate) const ROOTS: &[&str] = &[
    "noop",
    "pipeline",
    "branches",
    "gated",
    "delayed",
    "retrying",
    "parent",
    "absorbing",
    "looping",
    "team",
    "race",
    "minded",
    "deep",
    "siblings",
    "agent",
    "agents",
    "asks",
    "forgetful",
    POISON,
    REFUSED,
];

/// Whose they are.
pub(crate) fn tenants() -> [TenantId; 2] {
    [TenantId::new("acme"), TenantId::new("rival")]
}

fn noop() -> Value {
    json!({})
}

fn set(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

fn call(child: &str) -> Value {
    json!({"workflowId": child, "inputMapping": {"n": "n"}, "outputMapping": {"m": "m"}})
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

fn delay(ms: u64) -> Value {
    json!({"ms": ms})
}

fn gate() -> Value {
    json!({"title": "Go on?"})
}

/// A supervisor with these rules.
fn led(id: &str, rules: Value, dispatch: Value) -> Flow {
    Flow::chain(id, &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
        .variable("n", "number", json!(4))
}

fn turns(turns: &[Value]) -> Value {
    let rules =
        turns.iter().zip(1..).map(|(decide, turn)| json!({"when": format!("iteration == {turn}"), "decide": decide}));
    let end = json!({"kind": "terminate", "reason": "done"});
    json!({"rules": rules.collect::<Vec<_>>(), "otherwise": end})
}

fn mapped(policy: &str) -> Value {
    json!({"fanOutPolicy": policy, "inputMapping": {"n": "n"}, "outputMapping": {"n": "m"}})
}

fn retrying(id: &str, kind: &str, config: Value) -> Flow {
    let settings = json!({"settings": {"maxRetries": 2, "retryDelayMs": 700}});
    Flow::new(id).node("before", "core.noop", noop()).node_with("flaky", kind, config, settings).edge("before", "flaky")
}

fn agent(flow: Flow, node: &str) -> Flow {
    let inputs = json!({"inputs": {"task": {"type": "static", "value": "Do it."}}});
    flow.node_with(node, "vendor.baton.agent", json!({"agentId": AGENT}), inputs)
}

fn ask(flow: Flow, node: &str) -> Flow {
    let schema = json!({"type": "object", "required": ["valid"]});
    let config = json!({"provider": "brain", "model": "m-1", "maxTokens": 400, "outputSchema": schema});
    let inputs = json!({"prompt": {"type": "static", "value": "Is it?"}});
    let settings = json!({"maxRetries": 3, "retryDelayMs": 500});
    flow.node_with(node, "core.ai.structuredOutput", config, json!({"inputs": inputs, "settings": settings}))
}

fn branches() -> Flow {
    let sum = set("sum", "variables.a + variables.b + variables.c");
    let flow = Flow::new("branches").node("start", "core.noop", noop()).node("join", "core.setVariable", sum);
    ["a", "b", "c"].into_iter().zip(1..).fold(flow, |flow, (name, i)| {
        let (first, second) = (format!("{name}1"), format!("{name}2"));
        flow.node(&first, "core.setVariable", json!({"name": name, "value": i}))
            .node(&second, "core.delay", delay(i * 300))
            .edge("start", &first)
            .edge(&first, &second)
            .edge(&second, "join")
    })
}

fn looping() -> Flow {
    Flow::new("looping")
        .node("sum", "core.setVariable", json!({"name": "sum", "value": 0}))
        .node("loop", "core.loop", json!({"items": "[1, 2, 3]", "into": "item"}))
        .node("add", "core.setVariable", set("sum", "variables.sum + variables.item"))
        .node("call", "core.subWorkflow", call("pipeline"))
        .node("after", "core.noop", noop())
        .edge("sum", "loop")
        .edge_with("loop", "add", json!({"sourceOutput": "body"}))
        .edge("add", "call")
        .edge("call", "loop")
        .edge("loop", "after")
        .variable("n", "number", json!(4))
}

fn siblings() -> Flow {
    Flow::new("siblings")
        .node("start", "core.noop", noop())
        .node("left", "core.subWorkflow", call("gated"))
        .node("right", "core.subWorkflow", call("delayed"))
        .node("join", "core.noop", noop())
        .edge("start", "left")
        .edge("start", "right")
        .edge("left", "join")
        .edge("right", "join")
        .variable("n", "number", json!(4))
}

fn remembering() -> [Flow; 3] {
    let note = |content: &str| json!({"content": content});
    let file = |path: &str| json!({"path": path, "content": "x"});
    let (put, write) = ("vendor.baton.memory.put", "vendor.baton.workspace.put");
    [
        Flow::chain(
            "minded",
            &[
                ("put", put, note("the task")),
                ("lead", "core.orchestrator.supervisor", turns(&[next(&["scribe", "scribe"]), next(&["scribe"])])),
                ("dispatch", "core.dispatch", json!({"fanOutPolicy": "parallel"})),
            ],
        )
        .edge("dispatch", "lead"),
        Flow::chain(
            "scribe",
            &[
                ("put", put, note("noted")),
                ("write", write, file("log.md")),
                ("list", "vendor.baton.memory.list", json!({"into": "seen"})),
                ("files", "vendor.baton.workspace.list", json!({"into": "files"})),
            ],
        ),
        Flow::chain(
            "forgetful",
            &[
                ("one", put, note("one")),
                ("wait", "core.delay", delay(1500)),
                ("drop", "vendor.baton.memory.delete", json!({"idExpression": "nodes.one.entry.id"})),
                ("write", write, file("sum.md")),
            ],
        ),
    ]
}

/// Every workflow, workers first.
pub(crate) fn all() -> Vec<Value> {
    let flows = [
        Flow::chain("noop", &[("a", "core.noop", noop()), ("b", "core.noop", noop())]),
        Flow::chain(
            "pipeline",
            &[
                ("first", "core.noop", noop()),
                ("one", "core.setVariable", set("n", "variables.n + 1")),
                ("two", "core.setVariable", set("m", "variables.n * 10")),
            ],
        )
        .variable("n", "number", json!(1)),
        Flow::chain("failing", &[("before", "core.noop", noop()), ("bad", "core.fail", json!({"code": "on_purpose"}))]),
        Flow::chain(
            "gated",
            &[("before", "core.noop", noop()), ("gate", "core.approvalGate", gate()), ("after", "core.noop", noop())],
        ),
        Flow::chain(
            "delayed",
            &[("a", "core.noop", noop()), ("wait", "core.delay", delay(4000)), ("b", "core.noop", noop())],
        ),
        agent(Flow::new("agent"), "work"),
        branches(),
        retrying("retrying", "core.fail", json!({})),
        Flow::chain(
            "parent",
            &[
                ("before", "core.noop", noop()),
                ("call", "core.subWorkflow", call("delayed")),
                ("b", "core.noop", noop()),
            ],
        )
        .variable("n", "number", json!(4)),
        retrying("absorbing", "core.subWorkflow", json!({"workflowId": "failing", "onChildFailure": "absorb"})),
        looping(),
        siblings(),
        led(
            "team",
            turns(&[
                next(&["pipeline", "gated", "delayed"]),
                next(&["failing"]),
                json!({"kind": "ask-user", "prompt": "Which way?"}),
            ]),
            mapped("parallel"),
        ),
        led(
            "race",
            turns(&[next(&["pipeline", "gated", "delayed", "gated"])]),
            json!({"fanOutPolicy": "parallel", "maxConcurrency": 3, "joinPolicy": {"mode": "first"}}),
        ),
        led("deep", turns(&[next(&["child"])]), mapped("sequential")),
        led("child", turns(&[next(&["gated"])]), mapped("sequential")),
        led("agents", turns(&[next(&["agent", "asks", "agent"])]), json!({"fanOutPolicy": "parallel"})),
        ask(ask(Flow::new("asks"), "ask0"), "ask1").edge("ask0", "ask1"),
        Flow::chain(POISON, &[("wait", "core.delay", delay(2000)), ("b", "core.noop", noop())]),
        Flow::chain(
            REFUSED,
            &[("a", "core.noop", noop()), ("wait", "core.delay", delay(3000)), ("b", "core.noop", noop())],
        ),
    ];
    flows.into_iter().chain(remembering()).map(Flow::build).collect()
}

/// The agent that they use.
pub(crate) fn card() -> AgentCard {
    AgentCard {
        agent_id: AGENT.to_owned(),
        persona: "Helper".to_owned(),
        label: "Helper".to_owned(),
        description: None,
        pack_name: "local.test".to_owned(),
        pack_version: "1.0.0".to_owned(),
        model_class: ModelClass::General,
        system_prompt: "You help.".to_owned(),
        tools: vec![SEND.to_owned(), LOOK.to_owned()],
        memory: MemoryShape::default(),
        threshold: None,
        task_schema: None,
        return_schema: None,
        prompt_overrides: Default::default(),
        prompt_library: None,
    }
}
