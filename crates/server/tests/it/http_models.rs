//! Model calls through the mock provider: what is on the log, what a replay makes of it, and the keys of calls.

use crate::support;
use baton_conformance::Conformance;

use axum::body::Body;
use serde_json::{Map, Value, json};
use support::{FULL, READER, Site};

const PROGRAM: &str = "/v1/host/sample/test/mock-ai/program";
const CACHE_KEY: &str = "/v1/host/sample/test/llm-cache-key";
const NODE: &str = "structured-call";
const DIVERGENCE: &str = "conformance-phase4-replay-divergence";
const NONDETERMINISTIC: &str = "conformance-phase4-nondet-tool";

fn valid() -> Value {
    json!({"content": r#"{"valid":true}"#, "stopReason": "end_turn", "inputTokens": 11, "outputTokens": 4})
}

fn refusal() -> Value {
    json!({"content": "no-no-no", "stopReason": "safety", "refusalText": "no-no-no"})
}

async fn program(site: &Site, entries: Vec<Value>) {
    let count = entries.len();
    let answer = site.post(PROGRAM, json!({"nodeId": NODE, "program": entries})).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({"ok": true, "count": count})));
}

async fn run(site: &Site, workflow: &str, status: &str) -> String {
    let run = site.start(workflow).await;
    site.reach(&run, status).await;
    run
}

fn types(log: &[Value]) -> Vec<&str> {
    log.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn payload<'a>(log: &'a [Value], kind: &str) -> &'a Value {
    let mut found = log.iter().filter(|event| event["type"] == kind);
    let event = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "more than one {kind}");
    assert_eq!(event["nodeId"], NODE);
    &event["payload"]
}

/// An event without what two runs may have otherwise, at any depth.
fn observable(value: &Value) -> Value {
    const OWN: &[&str] = &["eventId", "runId", "observedAt", "timestamp", "occurredAt", "emittedAt", "id"];
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
            Value::Object(kept.map(|(key, value)| (key.clone(), observable(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(observable).collect(),
        scalar => scalar.clone(),
    }
}

#[tokio::test]
async fn an_answer_is_counted_and_becomes_the_nodes_output() {
    let site = Site::conforming().await;
    program(&site, vec![valid()]).await;
    let run = run(&site, DIVERGENCE, "completed").await;
    let log = site.log(&run).await;
    assert_eq!(types(&log), ["run.started", "node.started", "provider.usage", "node.completed", "run.completed"]);
    let usage = json!({
        "provider": "mock", "model": "mock-mini", "inputTokens": 11, "outputTokens": 4, "totalTokens": 15, "nodeId": NODE
    });
    assert_eq!(*payload(&log, "provider.usage"), usage);
    assert_eq!(payload(&log, "node.completed")["outputs"], json!({"data": {"valid": true}}));
}

#[tokio::test]
async fn a_refusal_fails_the_node_without_repeating_what_was_said() {
    let site = Site::conforming().await;
    program(&site, vec![refusal(), valid()]).await;
    let run = run(&site, DIVERGENCE, "failed").await;
    let log = site.log(&run).await;
    assert_eq!(
        types(&log),
        ["run.started", "node.started", "provider.usage", "envelope.refusal", "node.failed", "run.failed"]
    );
    assert_eq!(*payload(&log, "envelope.refusal"), json!({"nodeId": NODE, "provider": "mock", "model": "mock-mini"}));
    let snapshot = site.get(&format!("/v1/runs/{run}")).await;
    assert_eq!(snapshot.json()["error"]["code"], "envelope_refusal");
    for text in [&snapshot.text, &json!(log).to_string()] {
        assert!(!text.contains("no-no-no"), "{text}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_fails_with_a_code_of_its_own_and_is_not_repeated() {
    let site = Site::conforming().await;
    let cases = [
        (json!({"content": "secret prose"}), "envelope_invalid"),
        (json!({"content": r#"{"valid":"secret prose"}"#}), "envelope_invalid"),
        (json!({"content": r#"{"secret prose":1}"#}), "envelope_invalid"),
        (json!({"content": r#"{"valid":tr"#, "stopReason": "max_tokens"}), "envelope_truncation_unrecoverable"),
        (json!({"mode": "refusal"}), "envelope_refusal"),
    ];
    for (entry, code) in cases {
        // More often than anybody asks.
        program(&site, vec![entry.clone(); 8]).await;
        let run = run(&site, DIVERGENCE, "failed").await;
        let snapshot = site.get(&format!("/v1/runs/{run}")).await;
        assert_eq!(snapshot.json()["error"]["code"], code, "{entry}");
        let log = json!(site.log(&run).await).to_string();
        assert!(!log.contains("secret prose") && !snapshot.text.contains("secret prose"), "{log}");
    }
    program(&site, vec![json!({"mode": "envelope", "payload": {"valid": false}})]).await;
    let run = run(&site, DIVERGENCE, "completed").await;
    assert_eq!(payload(&site.log(&run).await, "node.completed")["outputs"], json!({"data": {"valid": false}}));
}

/// Answers once, then answers otherwise to the replay.
async fn diverged(first: Value, status: &str, second: Value, kinds: (&str, &str)) {
    let site = Site::conforming().await;
    let claimed = site.get("/.well-known/openwop").await.json()["multiAgent"]["executionModel"].clone();
    assert_eq!(claimed["replayDeterminism"]["refusalDivergenceEmission"], true, "what is shown here");
    program(&site, vec![first]).await;
    let source = run(&site, DIVERGENCE, status).await;
    program(&site, vec![second]).await;
    let fork = site.forked(&source, json!({"mode": "replay", "fromSeq": 0}), "failed").await;
    let log = site.log(&fork).await;
    assert_eq!(types(&log), ["run.started", "node.started", "replay.divergedAtRefusal", "node.failed", "run.failed"]);
    let told = payload(&log, "replay.divergedAtRefusal");
    let original = &site.log(&source).await[2];
    assert_eq!(
        *told,
        json!({
            "sourceRunId": source, "atSequence": 2, "nodeId": NODE, "originalEventId": original["eventId"],
            "originalEnvelopeKind": kinds.0, "replayEnvelopeKind": kinds.1,
        })
    );
    assert_eq!(original["type"], "provider.usage");
    let snapshot = site.get(&format!("/v1/runs/{fork}")).await;
    assert_eq!(snapshot.json()["error"]["code"], "replay_diverged_at_refusal");
    assert_eq!(payload(&log, "node.failed")["error"]["code"], "replay_diverged_at_refusal");
    assert!(!snapshot.text.contains("no-no-no"));
}

#[tokio::test]
async fn a_replay_that_is_refused_what_its_source_was_told_fails() {
    diverged(valid(), "completed", refusal(), ("valid", "refusal")).await;
}

#[tokio::test]
async fn a_replay_that_is_told_what_its_source_was_refused_fails() {
    diverged(refusal(), "failed", valid(), ("refusal", "valid")).await;
}

#[tokio::test]
async fn a_replay_compares_the_kind_and_keeps_the_recorded_answer() {
    let site = Site::conforming().await;
    program(&site, vec![valid()]).await;
    let source = run(&site, DIVERGENCE, "completed").await;
    let other = json!({"content": r#"{"valid":false}"#, "inputTokens": 99, "outputTokens": 99});
    // Neither another answer nor one that claims nothing is a difference.
    for entry in [other, json!({"content": "prose"})] {
        program(&site, vec![entry, valid()]).await;
        let fork = site.forked(&source, json!({"mode": "replay"}), "completed").await;
        assert_eq!(observable(&json!(site.log(&fork).await)), observable(&json!(site.log(&source).await)));
        // It was asked, once: the rest of its program is left for the next.
        let next = run(&site, DIVERGENCE, "completed").await;
        assert_eq!(payload(&site.log(&next).await, "provider.usage")["inputTokens"], 11);
    }
    let refused = {
        program(&site, vec![refusal(), refusal()]).await;
        run(&site, DIVERGENCE, "failed").await
    };
    let fork = site.forked(&refused, json!({"mode": "replay"}), "failed").await;
    assert_eq!(observable(&json!(site.log(&fork).await)), observable(&json!(site.log(&refused).await)));
}

#[tokio::test]
async fn what_is_shared_history_is_not_asked_about_again() {
    let site = Site::conforming().await;
    program(&site, vec![valid()]).await;
    let source = run(&site, DIVERGENCE, "completed").await;
    program(&site, vec![refusal()]).await;
    site.forked(&source, json!({"mode": "replay", "fromSeq": 3}), "completed").await;
    // Proving a log writes nothing and asks nobody.
    let proof = site.post(&format!("/v1/host/baton/runs/{source}/verify"), json!({})).await;
    assert_eq!(proof.status, 200, "{}", proof.text);
    run(&site, DIVERGENCE, "failed").await;
}

#[tokio::test]
async fn a_branch_asks_the_model_anew() {
    let site = Site::conforming().await;
    program(&site, vec![valid(), json!({"content": r#"{"valid":false}"#})]).await;
    let source = run(&site, DIVERGENCE, "completed").await;
    let branch = site.forked(&source, json!({"mode": "branch", "fromSeq": 2}), "completed").await;
    assert_eq!(payload(&site.log(&branch).await, "node.completed")["outputs"], json!({"data": {"valid": false}}));
}

#[tokio::test]
async fn a_replay_of_chance_is_its_source_event_by_event() {
    let site = Site::conforming().await;
    assert!(site.post("/v1/host/sample/test/reset", json!({})).await.status.is_success());
    let source = run(&site, NONDETERMINISTIC, "completed").await;
    let fork = site.forked(&source, json!({"mode": "replay", "fromSeq": 0}), "completed").await;
    let (source, fork) = (site.log(&source).await, site.log(&fork).await);
    assert_eq!(observable(&json!(fork)), observable(&json!(source)));
    let of = |log: &[Value]| log.iter().filter(|event| event["nodeId"] == "nondet-tool").count();
    assert_eq!((of(&source), of(&fork)), (2, 2));
}

#[tokio::test]
async fn a_reset_forgets_programs() {
    let site = Site::conforming().await;
    program(&site, vec![refusal()]).await;
    site.post("/v1/host/sample/test/reset", json!({})).await;
    run(&site, DIVERGENCE, "completed").await;
}

#[tokio::test]
async fn keys_of_calls() {
    let site = Site::conforming().await;
    let with = |fields: Value| {
        let mut request =
            json!({"provider": "anthropic", "model": "claude-x", "messages": [{"role": "user", "content": "hello"}]});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        request
    };
    let key = async |fields: Value| {
        let answer = site.post(CACHE_KEY, with(fields)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()["cacheKey"].as_str().unwrap().to_owned()
    };
    let plain = key(json!({})).await;
    assert_eq!(plain, "c92498949e9cc0e38bb2887e88e55b6936932e219b8344f0a7059b1de960073d");
    assert_eq!(key(json!({"seed": 7})).await, "fb942dce9de88688c89d048499f4a4e5a19427775da08d0d5a7ad709c10b42d0");
    let transport = json!({
        "stream": true, "metadata": {"traceId": "x"}, "user": "u", "x-request-id": "r", "traceparent": "00-a-b-01",
        "tenantId": "t", "runId": "r", "timeoutMs": 30_000,
    });
    assert_eq!(key(transport).await, plain);
    for (a, b) in [
        (json!({"temperature": 0.0}), json!({"temperature": 1.0})),
        (json!({"seed": 42}), json!({"seed": 43})),
        (json!({"stop": ["STOP"]}), json!({"stop": ["HALT"]})),
        (json!({"maxOutputTokens": 100}), json!({"maxOutputTokens": 1000})),
        (json!({"providerOptions": {"vendor.x.y": 1}}), json!({"providerOptions": {"vendor.x.y": 2}})),
    ] {
        assert_ne!(key(a.clone()).await, key(b).await, "{a}");
    }
    for field in ["provider", "model", "messages"] {
        let details = site.post(CACHE_KEY, with(json!({field: null}))).await.refused(400, "invalid_argument");
        assert_eq!(details["pointer"], format!("/{field}"));
    }
}

#[tokio::test]
async fn the_seams_ask_for_a_key_a_program_and_conformance_mode() {
    let site = Site::conforming().await;
    let body = json!({"nodeId": NODE, "program": [valid()]});
    for path in [PROGRAM, CACHE_KEY] {
        assert_eq!(site.send("POST", path, &[], body.to_string()).await.status, 401, "{path}");
    }
    assert_eq!(site.send("POST", PROGRAM, &[READER], body.to_string()).await.status, 403);
    let details = site.post(PROGRAM, json!({"program": []})).await.refused(400, "invalid_argument");
    assert_eq!(details["pointer"], "/nodeId");
    site.post(PROGRAM, json!({"nodeId": NODE})).await.refused(400, "invalid_argument");
    assert_eq!(site.send("POST", PROGRAM, &[FULL], Body::from("{")).await.status, 400);
    let plain = Site::open().await;
    for path in [PROGRAM, CACHE_KEY] {
        assert_eq!(plain.post(path, body.clone()).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_model_that_is_not_here_is_not_asked() {
    let call = |id: &str, provider: &str| {
        let config = json!({"provider": provider, "model": "m", "outputSchema": {"type": "object"}});
        json!({
            "id": id, "name": id, "version": "1", "edges": [], "triggers": [], "variables": [], "metadata": {},
            "settings": {}, "nodes": [{"id": "n", "typeId": "core.ai.structuredOutput", "name": "n",
                "position": {"x": 0, "y": 0}, "config": config, "inputs": {}}],
        })
    };
    let (site, plain) = (Site::conforming().await, Site::open().await);
    // The mock is for tests.
    for (site, id, provider) in [(&site, "mine", "mock"), (&plain, "conformance-x", "mock")] {
        let details = site.post("/v1/workflows", call(id, provider)).await.refused(422, "capability_required");
        assert_eq!(details["requiredCapability"], "aiProviders", "{id} {provider}");
    }
    assert!(site.post("/v1/workflows", call("conformance-x", "mock")).await.status.is_success());
    // A vendor may be configured later than the workflow; until then no run of it begins.
    let mut later = call("later", "anthropic");
    later["nodes"][0]["inputs"]["prompt"] = json!({"type": "static", "value": "x"});
    assert!(plain.post("/v1/workflows", later).await.status.is_success());
    let details = plain.post("/v1/runs", json!({"workflowId": "later"})).await.refused(400, "validation_error");
    assert_eq!(details["provider"], "anthropic");
}

#[tokio::test]
async fn the_gate_is_the_one_that_runs_go_through() {
    const GATE: &str = "/v1/host/sample/test/evaluate-model-capability-gate";
    let site = Site::configured(|options| options.test_hooks = Conformance::hooks()).await;
    let judged = async |module: Value, active: [&str; 2], substitution: bool, supported: &[&str]| {
        let answer = site
            .post(
                GATE,
                json!({
                    "module": module, "activeProvider": active[0], "activeModel": active[1], "nodeId": "writer",
                    "substitutionSupported": substitution, "supportedProviders": supported,
                }),
            )
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    };
    let stranger = ["unknown-vendor", "unknown-model"];
    let all = ["anthropic", "unknown-vendor", "unknown-vendor-2"];
    let opus = json!({"provider": "anthropic", "model": "claude-opus-4-7"});
    let able = json!({"requiredModelCapabilities": ["structured-output", "function-calling"]});
    let answer = judged(able, ["anthropic", "claude-3-5-sonnet"], true, &all).await;
    assert_eq!(answer, json!({"outcome": {"route": "dispatch"}, "event": null}));
    let module = json!({"requiredModelCapabilities": ["structured-output", "long-context"], "fallbackModel": opus});
    let answer = judged(module.clone(), stranger, true, &all).await;
    assert_eq!(
        (&answer["outcome"]["route"], &answer["event"]["type"]),
        (&json!("substitute"), &json!("model.capability.substituted"))
    );
    assert_eq!(
        answer["event"]["payload"],
        json!({
            "nodeId": "writer", "originalProvider": "unknown-vendor", "originalModel": "unknown-model",
            "fallbackProvider": "anthropic", "fallbackModel": "claude-opus-4-7",
            "missingCapabilities": ["structured-output", "long-context"],
        })
    );
    let needs = ["structured-output"];
    let with = |provider: &str| json!({"requiredModelCapabilities": needs, "fallbackModel": {"provider": provider, "model": "m"}});
    for (module, substitution, attempted) in [
        (json!({"requiredModelCapabilities": needs}), true, false),
        (module, false, false),
        (with("not-here"), true, true),
        (with("unknown-vendor-2"), true, true),
    ] {
        let answer = judged(module.clone(), stranger, substitution, &all).await;
        assert_eq!(answer["outcome"]["route"], "refuse", "{module}");
        assert_eq!(answer["outcome"]["fallbackAttempted"], attempted, "{module}");
        assert_eq!(answer["event"]["type"], "model.capability.insufficient");
        assert_eq!(answer["event"]["payload"]["fallbackAttempted"], attempted);
        assert_eq!(answer["event"]["payload"]["provider"], "unknown-vendor");
    }
    // And end to end.
    let run = run(&site, "conformance-model-capability-insufficient", "failed").await;
    let log = site.log(&run).await;
    let kinds = ["run.started", "node.started", "model.capability.insufficient", "node.failed", "run.failed"];
    assert_eq!(types(&log), kinds);
    assert_eq!(log[4]["payload"]["error"]["code"], "capability_not_provided");
    assert_eq!(log[2]["payload"]["missingCapabilities"].as_array().unwrap().len(), 1);
}
