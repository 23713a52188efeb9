//! Workflows that between them use every way a run can depend on a disk: steps, branches, children, humans, time, and
//! what they remember and write.

use baton_model::RunStatus::{self, Completed, Failed};
use baton_testkit::Flow;
use serde_json::{Value, json};

use super::versioned_stores::{DELETE, FILES, LIST, PUT, WRITE, file, files, list, note};

pub struct Scenario {
    pub name: &'static str,
    /// How the root ends, and how many runs there are then.
    pub ends: (RunStatus, usize),
    /// The first one is started.
    pub flows: Vec<Flow>,
}

impl Scenario {
    fn new(name: &'static str, ends: (RunStatus, usize), flows: impl IntoIterator<Item = Flow>) -> Self {
        Self { name, ends, flows: flows.into_iter().collect() }
    }
}

pub fn noop() -> Value {
    json!({})
}

fn set(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

pub fn pipeline(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("first", "core.noop", noop()),
            ("one", "core.setVariable", set("n", "variables.n + 1")),
            ("two", "core.setVariable", set("m", "variables.n * 10")),
            ("last", "core.noop", noop()),
        ],
    )
    .variable("n", "number", json!(1))
}

pub fn gate(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("before", "core.noop", noop()),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("after", "core.setVariable", set("done", "true")),
        ],
    )
}

pub fn delayed(id: &str, ms: u64) -> Flow {
    Flow::chain(
        id,
        &[("a", "core.noop", noop()), ("wait", "core.delay", json!({"ms": ms})), ("b", "core.noop", noop())],
    )
}

pub fn call(child: &str) -> Value {
    json!({"workflowId": child, "inputMapping": {"n": "n"}, "outputMapping": {"m": "m"}})
}

/// Calls `child` between two steps of its own.
pub fn parent(id: &str, config: Value) -> Flow {
    Flow::chain(
        id,
        &[
            ("before", "core.noop", noop()),
            ("call", "core.subWorkflow", config),
            ("after", "core.setVariable", set("seen", "has(variables.m) ? variables.m : -1")),
        ],
    )
    .variable("n", "number", json!(4))
}

fn branches() -> Flow {
    let flow = Flow::new("branches").node("start", "core.noop", noop()).node(
        "join",
        "core.setVariable",
        set("sum", "variables.a + variables.b + variables.c"),
    );
    ["a", "b", "c"].into_iter().enumerate().fold(flow, |flow, (i, name)| {
        let (first, second) = (format!("{name}1"), format!("{name}2"));
        flow.node(&first, "core.setVariable", json!({"name": name, "value": i}))
            .node(&second, "core.noop", noop())
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

fn failing(id: &str) -> Flow {
    Flow::chain(id, &[("before", "core.noop", noop()), ("bad", "core.fail", json!({"code": "on_purpose"}))])
}

fn retrying(id: &str, node: (&str, Value)) -> Flow {
    let settings = json!({"settings": {"maxRetries": 2, "retryDelayMs": 100}});
    Flow::new(id)
        .node("before", "core.noop", noop())
        .node_with("flaky", node.0, node.1, settings)
        .edge("before", "flaky")
}

fn siblings() -> Flow {
    Flow::new("siblings")
        .node("start", "core.noop", noop())
        .node("left", "core.subWorkflow", call("gated"))
        .node("right", "core.subWorkflow", call("pipeline"))
        .node("join", "core.noop", noop())
        .edge("start", "left")
        .edge("start", "right")
        .edge("left", "join")
        .edge("right", "join")
        .variable("n", "number", json!(4))
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

/// A supervisor with these rules and workers that pass a number on.
pub fn led(id: &str, rules: Value, policy: &str) -> Flow {
    let dispatch = json!({
        "fanOutPolicy": policy, "inputMapping": {"n": "n"}, "outputMapping": {"n": "m"}
    });
    Flow::chain(id, &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
        .variable("n", "number", json!(4))
}

/// Two turns of workers, one of them with a question, then the end.
fn supervisor(policy: &str) -> Flow {
    let rules = json!({
        "rules": [
            {"when": "iteration == 1", "decide": next(&["pipeline", "gated"])},
            {"when": "iteration == 2", "decide": next(&["pipeline"])}
        ],
        "otherwise": {"kind": "terminate", "reason": "goal-reached"}
    });
    led("team", rules, policy)
}

/// Five turns with everything in them: workers side by side, one of which asks a human; one that fails; a decision the
/// supervisor is not sure of; a question to the user, whose answer the last turn reads.
fn team() -> Flow {
    let rules = json!({
        "rules": [
            {"when": "iteration == 1", "decide": next(&["pipeline", "gated"])},
            {"when": "iteration == 2", "decide": next(&["failing"])},
            {
                "when": "iteration == 3",
                "decide": {"kind": "next-worker", "nextWorkerIds": ["pipeline"], "confidence": 0.3}
            },
            {"when": "iteration == 4", "decide": {"kind": "ask-user", "prompt": "Which way?"}},
            {"when": "nodes.dispatch.answers.answer == 'left'", "decide": {"kind": "terminate", "reason": "left"}}
        ],
        "otherwise": {"kind": "terminate", "reason": "lost"}
    });
    led("team", rules, "parallel")
}

/// Four workers side by side, of which the first to complete is enough.
pub fn race(id: &str) -> Flow {
    let rules = json!({
        "rules": [{"when": "iteration == 1", "decide": next(&["pipeline", "gated", "pipeline", "gated"])}],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    let dispatch = json!({"fanOutPolicy": "parallel", "maxConcurrency": 3, "joinPolicy": {"mode": "first"}});
    Flow::chain(id, &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
}

/// Hands everything to one worker, then ends.
pub fn delegate(id: &str, worker: &str) -> Flow {
    let rules = json!({
        "rules": [{"when": "iteration == 1", "decide": next(&[worker])}],
        "otherwise": {"kind": "terminate", "reason": "done"}
    });
    led(id, rules, "sequential")
}

/// Four generations, the youngest of which asks a human.
pub fn deep() -> [Flow; 4] {
    [delegate("root", "child"), delegate("child", "grandchild"), delegate("grandchild", "gated"), gate("gated")]
}

pub fn all() -> Vec<Scenario> {
    let absorb = |child: &str| json!({"workflowId": child, "onChildFailure": "absorb"});
    let delayed = delayed("delayed", 5000);
    vec![
        Scenario::new("pipeline", (Completed, 1), [pipeline("pipeline")]),
        Scenario::new("branches that join", (Completed, 1), [branches()]),
        Scenario::new("a child", (Completed, 2), [parent("parent", call("pipeline")), pipeline("pipeline")]),
        Scenario::new(
            "a child of a child",
            (Completed, 3),
            [parent("top", call("middle")), parent("middle", call("pipeline")), pipeline("pipeline")],
        ),
        Scenario::new(
            "a failing child ends its parent",
            (Failed, 2),
            [parent("parent", call("failing")), failing("failing")],
        ),
        Scenario::new(
            "a failing child is absorbed",
            (Completed, 2),
            [parent("parent", absorb("failing")), failing("failing")],
        ),
        Scenario::new(
            "a failing grandchild is absorbed at the top",
            (Completed, 3),
            [parent("top", absorb("middle")), parent("middle", call("failing")), failing("failing")],
        ),
        Scenario::new("an approval", (Completed, 1), [gate("gated")]),
        Scenario::new("an approval in a child", (Completed, 2), [parent("parent", call("gated")), gate("gated")]),
        Scenario::new("a delay", (Completed, 1), [delayed.clone()]),
        Scenario::new("a delay in a child", (Completed, 2), [parent("parent", call("delayed")), delayed]),
        Scenario::new("retries", (Failed, 1), [retrying("retrying", ("core.fail", json!({})))]),
        Scenario::new(
            "a child tried again",
            (Failed, 4),
            [retrying("retrying", ("core.subWorkflow", call("failing"))), failing("failing")],
        ),
        Scenario::new("a loop over a child", (Completed, 4), [looping(), pipeline("pipeline")]),
        Scenario::new("a supervisor", (Completed, 4), [supervisor("sequential"), gate("gated"), pipeline("pipeline")]),
        Scenario::new(
            "a supervisor of parallel workers",
            (Completed, 4),
            [supervisor("parallel"), gate("gated"), pipeline("pipeline")],
        ),
        Scenario::new("a team", (Completed, 5), [team(), gate("gated"), pipeline("pipeline"), failing("failing")]),
        Scenario::new("a question four generations deep", (Completed, 4), deep()),
        Scenario::new("two children at once", (Completed, 3), [siblings(), gate("gated"), pipeline("pipeline")]),
    ]
    .into_iter()
    .chain(remembering())
    .collect()
}

/// Scenarios in which runs read and write memory and workspace.
fn remembering() -> [Scenario; 5] {
    [
        Scenario::new("a loop whose workers remember", (Completed, 5), [minded("{}"), scribe("scribe", "noted")]),
        Scenario::new(
            "parallel workers that remember",
            (Completed, 5),
            [minded(r#"{"fanOutPolicy": "parallel"}"#), clerk("scribe")],
        ),
        Scenario::new(
            "an isolated worker that remembers",
            (Completed, 5),
            [minded(r#"{"memoryScopeIsolation": "isolated"}"#), scribe("scribe", "mine alone")],
        ),
        Scenario::new(
            "a child that shares its parent's memory",
            (Completed, 2),
            [sharing("sharing", "scribe"), scribe("scribe", "from below")],
        ),
        Scenario::new("one run that remembers and forgets", (Completed, 1), [forgetful("forgetful")]),
    ]
}

/// Three turns, each of which decides by what it sees; an isolated worker leaves it nothing to see but files.
fn minded(dispatch: &str) -> Flow {
    let dispatch: Value = serde_json::from_str(dispatch).unwrap();
    let entries = if dispatch.get("memoryScopeIsolation").is_some() { [1, 1] } else { [3, 5] };
    let sees = |turn: usize, entries: usize, version: usize| {
        format!("iteration == {turn} && size(memory) == {entries} && workspace['log.md'].version == {version}")
    };
    let rules = json!({
        "rules": [
            {"when": "iteration == 1 && size(memory) == 1 && size(workspace) == 0", "decide": next(&["scribe", "scribe"])},
            {"when": sees(2, entries[0], 2), "decide": next(&["scribe", "scribe"])},
            {"when": sees(3, entries[1], 4), "decide": {"kind": "terminate", "reason": "saw it all"}}
        ],
        "otherwise": next(&["nobody has this name"])
    });
    Flow::chain(
        "minded",
        &[
            ("put", PUT, note("the task")),
            ("lead", "core.orchestrator.supervisor", rules),
            ("dispatch", "core.dispatch", dispatch),
        ],
    )
    .edge("dispatch", "lead")
}

/// Leaves a note and a file, and looks at both kinds.
fn scribe(id: &str, content: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("put", PUT, note(content)),
            ("write", WRITE, file("log.md", content)),
            ("list", LIST, list()),
            ("files", FILES, files()),
        ],
    )
}

/// Writes without looking: who of several was first is not its business.
fn clerk(id: &str) -> Flow {
    Flow::chain(id, &[("write", WRITE, file("log.md", "x")), ("put", PUT, note("x"))])
}

fn sharing(id: &str, child: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("put", PUT, json!({"content": "brief", "ttlSeconds": 7200})),
            ("call", "core.subWorkflow", json!({"workflowId": child, "outputMapping": {"below": "seen"}})),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("list", LIST, list()),
            ("write", WRITE, file("sum.md", "done")),
        ],
    )
}

fn forgetful(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("one", PUT, note("one")),
            ("two", PUT, note("two")),
            ("wait", "core.delay", json!({"ms": 5000})),
            ("drop", DELETE, json!({"idExpression": "nodes.one.entry.id"})),
            ("three", PUT, json!({"contentExpression": "'after ' + nodes.two.entry.content"})),
            ("list", LIST, list()),
        ],
    )
}
