//! Small runs of every kind, played with time and chance in hand, so that each comes out the same to the byte.

mod team;

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_model::{ForkMode, NodeId, Principal, RunId, Scopes, SideEffects, TenantId};
use baton_runtime::{Clock as _, ForkRun, Host, StartRun, Via};
use baton_store::{InterruptFilter, MemoryStore, RunFilter, RunRow};
use baton_testkit::{Flow, SeededIds, SimClock};
use serde_json::{Map, Value, json};

const PUT: &str = "vendor.baton.memory.put";
const LIST: &str = "vendor.baton.memory.list";
const DELETE: &str = "vendor.baton.memory.delete";
const WRITE: &str = "vendor.baton.workspace.put";
const READ: &str = "vendor.baton.workspace.get";
const TOOL: &str = "vendor.baton.tool";
const MAP: &str = "vendor.baton.map";

pub struct Journal {
    pub name: &'static str,
    /// The first one is started.
    flows: Vec<Flow>,
    inputs: Value,
    configurable: Value,
    /// Where a branch goes off, if the journal is about one.
    branch: Option<u64>,
}

fn journal(name: &'static str, flows: Vec<Flow>) -> Journal {
    Journal { name, flows, inputs: json!({}), configurable: json!({}), branch: None }
}

pub fn all() -> Vec<Journal> {
    vec![
        Journal { inputs: json!({"n": 7}), ..journal("pipeline", vec![pipeline("pipeline")]) },
        journal("conditions", vec![conditions()]),
        journal("retries-and-delays", vec![patient()]),
        journal("supervisor-mapping", vec![mapping(), pipeline("pipeline"), gated("gated")]),
        journal("held-decision", vec![unsure(), pipeline("pipeline")]),
        journal("parallel-join", vec![parallel(), pipeline("pipeline"), gated("gated")]),
        journal("failing-child", vec![caller("caller", json!({"workflowId": "failing"})), failing()]),
        journal("memory-and-workspace", vec![editor(), clerk()]),
        journal("merge-gate", vec![merging(), pipeline("pipeline")]),
        Journal { branch: Some(9), ..journal("branch", vec![notes("notes")]) },
        journal("agent-tools", vec![team::asks("tooled", team::CLERK)]),
        journal("agent-question", vec![team::asks("asking", team::ASKER)]),
        journal("agent-handoff", vec![team::handed_on()]),
        journal("agent-unsure", vec![team::asks("unsure", team::UNSURE)]),
        journal("live-supervisor", vec![team::led(), team::asks("researching", team::CLERK), gated("gated")]),
        journal("model-answers", vec![team::answers()]),
        journal("model-cut-off", vec![team::cut_off()]),
        journal("model-refusal", vec![team::refusal()]),
        Journal {
            configurable: json!({"budget": {"maxTokens": 400, "thresholdPercent": 50}}),
            ..journal("budget", vec![team::spender()])
        },
        Journal { branch: Some(12), ..journal("agent-branch", vec![team::asks("tooled", team::CLERK)]) },
        journal("tool-steps", vec![tool_steps()]),
        journal("map-of-calls", vec![map_of_calls()]),
        journal("map-of-runs", vec![map_of_runs("each"), pipeline("pipeline"), failing()]),
        journal("map-of-agents", vec![map_of_agents()]),
    ]
}

fn set(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

fn pipeline(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("first", "core.noop", json!({})),
            ("one", "core.setVariable", set("n", "variables.n + 1")),
            ("two", "core.setVariable", set("m", "variables.n * 10")),
        ],
    )
    .variable("n", "number", json!(1))
}

fn gated(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("after", "core.setVariable", json!({"name": "m", "value": 5})),
        ],
    )
}

fn conditions() -> Flow {
    Flow::new("conditions")
        .node("size", "core.conditional", json!({"expression": "variables.n > 3"}))
        .node("large", "core.setVariable", json!({"name": "size", "value": "large"}))
        .node("small", "core.setVariable", json!({"name": "size", "value": "small"}))
        .node("join", "core.noop", json!({}))
        .edge_with("size", "large", json!({"sourceOutput": "true"}))
        .edge_with("size", "small", json!({"sourceOutput": "false"}))
        .edge_with("large", "join", json!({"triggerRule": "any_success"}))
        .edge_with("small", "join", json!({"triggerRule": "any_success"}))
        .variable("n", "number", json!(4))
}

fn patient() -> Flow {
    let settings = json!({"settings": {"maxRetries": 2, "retryDelayMs": 100}});
    Flow::new("patient")
        .node("wait", "core.delay", json!({"ms": 5000}))
        .node_with("flaky", "core.fail", json!({"code": "upstream_busy"}), settings)
        .edge("wait", "flaky")
}

fn failing() -> Flow {
    Flow::chain("failing", &[("before", "core.noop", json!({})), ("bad", "core.fail", json!({"code": "on_purpose"}))])
}

fn caller(id: &str, config: Value) -> Flow {
    Flow::chain(
        id,
        &[("before", "core.noop", json!({})), ("call", "core.subWorkflow", config), ("after", "core.noop", json!({}))],
    )
    .variable("n", "number", json!(4))
}

fn merging() -> Flow {
    let config = json!({
        "workflowId": "pipeline", "inputMapping": {"n": "n"}, "outputMapping": {"m": "m"},
        "outputAttestation": {"checksum": true, "requireApproval": true}
    });
    caller("merging", config)
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

fn done() -> Value {
    json!({"kind": "terminate", "reason": "goal-reached"})
}

fn led(id: &str, rules: Value, dispatch: Value) -> Flow {
    let rules = json!({"rules": rules, "otherwise": done()});
    Flow::chain(id, &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
        .edge("dispatch", "lead")
        .variable("n", "number", json!(4))
}

fn mapping() -> Flow {
    let rules = json!([
        {"when": "iteration == 1", "decide": next(&["pipeline", "gated"])},
        {"when": "iteration == 2 && variables.n == 5", "decide": next(&["pipeline"])},
        {"when": "iteration == 3", "decide": {"kind": "ask-user", "prompt": "Which way?"}}
    ]);
    led("mapping", rules, json!({"inputMapping": {"n": "n"}, "outputMapping": {"n": "m"}}))
}

fn unsure() -> Flow {
    let decide = json!({"kind": "next-worker", "nextWorkerIds": ["pipeline"], "confidence": 0.3});
    led("unsure", json!([{"when": "iteration == 1", "decide": decide}]), json!({}))
}

fn parallel() -> Flow {
    let rules = json!([{"when": "iteration == 1", "decide": next(&["pipeline", "gated", "pipeline"])}]);
    let dispatch = json!({
        "fanOutPolicy": "parallel", "maxConcurrency": 2, "joinPolicy": {"mode": "wait-all"}, "outputMapping": {"n": "m"}
    });
    led("parallel", rules, dispatch)
}

/// Goes on until it remembers enough; what the first worker said has expired by the end.
fn editor() -> Flow {
    let rules = json!([
        {"when": "size(workspace) == 0", "decide": next(&["clerk"])},
        {"when": "workspace['log.md'].version < 3 && size(memory) > 0", "decide": next(&["clerk"])}
    ]);
    led("editor", rules, json!({}))
}

fn clerk() -> Flow {
    Flow::chain(
        "clerk",
        &[
            ("brief", PUT, json!({"content": "for an hour", "tags": ["brief"], "ttlSeconds": 3600})),
            ("note", PUT, json!({"content": "for ever"})),
            ("write", WRITE, json!({"path": "log.md", "content": "noted"})),
            ("wait", "core.delay", json!({"ms": 2_400_000})),
            ("seen", LIST, json!({"into": "seen"})),
            ("read", READ, json!({"path": "log.md", "into": "text"})),
            ("forget", DELETE, json!({"idExpression": "variables.seen[0].id"})),
        ],
    )
}

fn notes(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("one", PUT, json!({"content": "one"})),
            ("plan", WRITE, json!({"path": "plan.md", "content": "first"})),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("two", PUT, json!({"content": "two"})),
            ("seen", LIST, json!({"into": "seen"})),
        ],
    )
}

/// Calls of tools without an agent: what one writes the next reads, and the last one is not there.
fn tool_steps() -> Flow {
    let text = "{'content': 'noted ' + string(variables.n), 'tags': ['step']}";
    Flow::chain(
        "tool-steps",
        &[
            ("write", TOOL, json!({"tool": "openwop:memory.put", "argumentsExpression": text, "into": "kept"})),
            ("read", TOOL, json!({"tool": "openwop:memory.list", "arguments": {"tag": "step"}, "into": "seen"})),
            ("wrong", TOOL, json!({"tool": "openwop:memory.get", "arguments": {}})),
        ],
    )
    .variable("n", "number", json!(4))
}

fn map_of_calls() -> Flow {
    let each = json!({
        "items": ["one", "two", 3, "four"], "as": "word", "tool": "openwop:memory.put", "maxConcurrency": 2,
        "argumentsExpression": "{'content': word, 'tags': [string(index)]}", "onItemError": "collect", "into": "kept"
    });
    Flow::chain("map-of-calls", &[("each", MAP, each), ("after", "core.noop", json!({}))])
}

/// The second item has two attempts and fails; the others are done.
fn map_of_runs(id: &str) -> Flow {
    let good = json!({
        "itemsExpression": "[1, 2, 3, variables.n]", "workflow": "pipeline", "inputsExpression": "{'n': item}",
        "output": "m", "maxConcurrency": 3, "into": "tens"
    });
    let bad = json!({"items": [1, 2, 3], "workflow": "failing", "maxConcurrency": 2});
    let settings = json!({"settings": {"maxRetries": 1, "retryDelayMs": 100}});
    Flow::new(id)
        .node("good", MAP, good)
        .node_with("bad", MAP, bad, settings)
        .node("handled", "core.noop", json!({}))
        .edge("good", "bad")
        .edge_with("bad", "handled", json!({"triggerRule": "any_failed"}))
        .variable("n", "number", json!(4))
}

fn map_of_agents() -> Flow {
    let each = json!({"items": ["tides", "rivers"], "agent": team::CLERK, "maxConcurrency": 1, "into": "answers"});
    Flow::chain("map-of-agents", &[("each", MAP, each)])
}

pub fn who() -> Principal {
    Principal {
        tenant: TenantId::new("acme"),
        subject: "key".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: false,
    }
}

/// A host over a store in memory.
pub struct Stage {
    pub host: Host,
    store: Arc<MemoryStore>,
    clock: Arc<SimClock>,
}

impl Stage {
    pub async fn open(seed: u64) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(SimClock::default()));
        let ids = Arc::new(SeededIds::new(seed));
        let host = Host::open_with(Arc::clone(&store) as _, team::options(), Arc::clone(&clock) as _, ids);
        Self { host: host.await.unwrap(), store, clock }
    }

    pub async fn rows(&self) -> Vec<RunRow> {
        let filter = RunFilter { limit: usize::MAX, ..RunFilter::default() };
        self.host.runs(&filter).await.unwrap().items
    }

    /// Lets everything happen that can happen at this instant.
    async fn settle(&self) {
        let (mut quiet, mut commits) = (0, self.store.commits());
        while quiet < 100 {
            tokio::task::yield_now().await;
            let now = self.store.commits();
            quiet = if now == commits { quiet + 1 } else { 0 };
            commits = now;
        }
    }

    /// Answers what is asked and moves time until every run has ended.
    async fn play(&self) {
        loop {
            self.settle().await;
            let rows = self.rows().await;
            if rows.iter().all(|row| row.status.is_terminal()) {
                return;
            }
            let open = InterruptFilter { limit: 1, ..InterruptFilter::default() };
            if let Some(question) = self.host.interrupts(&open).await.unwrap().pop() {
                let answer = match question.kind.as_str() {
                    "clarification" => json!({"answers": {"answer": "left"}}),
                    _ => json!({"action": "accept"}),
                };
                let via = Via::Bearer { subject: "key".to_owned() };
                let node = NodeId::new(question.node.as_str());
                self.clock.advance(1000);
                self.host.resolve(&who().tenant, &question.run, &node, answer, via).await.unwrap();
                continue;
            }
            let wake = rows.iter().filter_map(|row| row.wake_at).min().unwrap_or_else(|| panic!("stuck: {rows:#?}"));
            self.clock.advance_to(wake.max(self.clock.now().plus_millis(1)));
        }
    }

    pub async fn export(&self, run: &RunId) -> String {
        let mut export = self.host.export(&who().tenant, run).await.unwrap();
        let mut text = Vec::new();
        while let Some(page) = export.next().await.unwrap() {
            text.extend(page);
        }
        String::from_utf8(text).unwrap()
    }

    pub async fn import(&self, text: &str) -> Result<(), baton_runtime::Error> {
        let mut import = self.host.import(&who())?;
        import.take(text.as_bytes()).await?;
        import.finish().await.map(|_| ())
    }
}

impl Journal {
    /// Plays it and writes it down.
    pub async fn write(&self, seed: u64) -> String {
        let stage = Stage::open(seed).await;
        for flow in self.flows.clone() {
            stage.host.register_workflow(&who().tenant, flow.build()).await.unwrap();
        }
        let workflow_id = self.flows[0].clone().build()["id"].as_str().unwrap().to_owned();
        let inputs = self.inputs.as_object().cloned().unwrap_or_default();
        let configurable = self.configurable.as_object().cloned().unwrap_or_default();
        let request = StartRun { workflow_id, inputs, configurable, ..StartRun::default() };
        let mut run = stage.host.start_run(&who(), request, None).await.unwrap().run_id;
        stage.play().await;
        if let Some(from_seq) = self.branch {
            let fork = ForkRun {
                mode: ForkMode::Branch,
                from_seq,
                inputs: Map::new(),
                variables: BTreeMap::from([("laid".to_owned(), json!("over"))]).into_iter().collect(),
                configurable: Map::new(),
                side_effects: SideEffects::default(),
            };
            run = stage.host.fork(&who(), &run, fork, None).await.unwrap().run_id;
            stage.play().await;
        }
        stage.export(&run).await
    }
}
