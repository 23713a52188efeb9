//! Supervisor loops: scripted decisions over small workers.

use serde_json::{Value, json};

use super::draft::{Draft, chain, node};

/// A supervisor and its dispatch, drawn as the loop they are.
fn looped(id: &'static str, supervisor: Value, dispatch: Value) -> Draft {
    let mut draft = chain(
        id,
        vec![
            node("supervisor", "core.orchestrator.supervisor", supervisor),
            node("dispatch", "core.dispatch", dispatch),
        ],
    );
    draft.edges.push(json!({"id": "again", "sourceNodeId": "dispatch", "targetNodeId": "supervisor"}));
    draft
}

fn named(mut draft: Draft, agent: &str) -> Draft {
    draft.nodes[0]["agent"] = json!({"agentId": agent, "modelClass": "reasoning"});
    draft
}

fn next(workers: &[&str]) -> Value {
    json!({"kind": "next-worker", "nextWorkerIds": workers})
}

fn done() -> Value {
    json!({"kind": "terminate", "reason": "goal-reached"})
}

fn plan(decisions: &[Value]) -> Value {
    json!({"mockDispatchPlan": decisions})
}

/// A worker that finishes at once and leaves this variable behind.
fn worker(id: &'static str, name: &str, value: Option<Value>) -> Draft {
    chain(id, vec![node("work", "core.noop", json!({}))]).variable(name, "string", value)
}

pub(super) fn workflows() -> Vec<Draft> {
    let mut all = handoffs();
    all.extend(mappings());
    all.extend(judgements());
    all
}

fn handoffs() -> Vec<Draft> {
    vec![
        worker("conformance-multi-agent-handoff-child", "childOutcome", Some(json!("handoff-complete"))),
        looped(
            "conformance-multi-agent-handoff",
            plan(&[next(&["conformance-multi-agent-handoff-child"]), done()]),
            json!({"outputMapping": {"parentResult": "childOutcome"}}),
        )
        .variable("parentResult", "string", Some(json!(""))),
        looped("conformance-dispatch-loop", json!({}), json!({})),
        named(
            looped(
                "conformance-orchestrator-dispatch",
                json!({"mockDecisions": [next(&["conformance-noop"]), done()]}),
                json!({}),
            ),
            "core.conformance.supervisor",
        ),
        named(
            looped("conformance-orchestrator-terminate", json!({"mockDecisions": [done()]}), json!({})),
            "core.conformance.terminate-supervisor",
        ),
        chain(
            "conformance-dispatch-deterministic-fail-child",
            vec![node("fail", "core.fail", json!({"code": "hvmap_1b_failed_fixture", "message": "Fails on purpose."}))],
        )
        .variable("childOutcome", "string", Some(json!("never"))),
        chain(
            "conformance-dispatch-cancellable-child",
            vec![node("wait", "core.delay", json!({"durationMs": 30_000}))],
        )
        .variable("childOutcome", "string", Some(json!("never"))),
    ]
}

fn mappings() -> Vec<Draft> {
    const GREETED: &str = "conformance-dispatch-input-mapping-child";
    const MADE: &str = "conformance-dispatch-output-mapping-child";
    const A: &str = "conformance-dispatch-cross-worker-handoff-child-a";
    const B: &str = "conformance-dispatch-cross-worker-handoff-child-b";
    let greeting = || json!({"inputMapping": {"childGreeting": "parentName"}});
    vec![
        worker(GREETED, "childGreeting", None),
        looped("conformance-dispatch-input-mapping", plan(&[next(&[GREETED]), done()]), greeting()).variable(
            "parentName",
            "string",
            Some(json!("Alice")),
        ),
        looped("conformance-dispatch-input-mapping-no-default", plan(&[next(&[GREETED]), done()]), greeting())
            .variable("parentName", "string", None),
        worker(MADE, "childOutcome", Some(json!("done"))),
        looped(
            "conformance-dispatch-output-mapping",
            plan(&[next(&[MADE]), done()]),
            json!({"outputMapping": {"parentResult": "childOutcome"}}),
        )
        .variable("parentResult", "string", Some(json!(""))),
        worker(A, "output", Some(json!("hello"))).variable("input", "string", None),
        worker(B, "input", None),
        looped(
            "conformance-dispatch-cross-worker-handoff",
            plan(&[next(&[A, B]), done()]),
            json!({
                "perWorkerOutputMappings": {A: {"sharedVar": "output"}},
                "perWorkerInputMappings": {B: {"input": "sharedVar"}}
            }),
        )
        .variable("sharedVar", "string", None),
        looped(
            "conformance-dispatch-per-worker-override",
            plan(&[next(&[A, B]), done()]),
            json!({"inputMapping": {"input": "defaultX"}, "perWorkerInputMappings": {B: {"input": "sharedVar"}}}),
        )
        .variable("defaultX", "string", Some(json!("default-x-value")))
        .variable("sharedVar", "string", Some(json!("shared-value"))),
    ]
}

fn judgements() -> Vec<Draft> {
    let unsure = json!({
        "kind": "next-worker", "nextWorkerIds": ["conformance-multi-agent-handoff-child"], "confidence": 0.3
    });
    vec![
        looped("conformance-multi-agent-confidence-escalation", plan(&[unsure]), json!({})),
        named(
            looped(
                "conformance-orchestrator-low-confidence",
                json!({"mockConfidence": 0.5, "mockPendingDecision": next(&["conformance-noop"])}),
                json!({}),
            ),
            "core.conformance.low-conf-supervisor",
        ),
    ]
}
