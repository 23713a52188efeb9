//! Calls of models that go well and go wrong, as the protocol's own checks see them: the mock provider is told what to
//! say, the workflows are those of conformance mode, the binary is the real one.

use crate::support;

use serde_json::{Value, json};
use support::Running;
use support::test_server::{conformance_host, test_server};
use support::web::{Web, of_type, place};

const SAMPLE: &str = "/v1/host/sample";
/// The node that every one of these workflows asks its model in.
const NODE: &str = "structured-call";
/// What a model says that must not get onto the log.
const SAID: &str = "raspberry-marmalade";

/// A host of its own: programs are kept by node, and others reset them.
struct Stage {
    web: Web,
    _host: Running,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let host = conformance_host(folder.path(), &[]);
        Self { web: Web::new(&host.url, Some("alpha")), _host: host, _folder: folder }
    }

    /// Runs a workflow of which the model answers as told.
    fn run(&self, workflow: &str, program: Value, status: &str) -> (Value, Vec<Value>) {
        let body = json!({"nodeId": NODE, "program": program});
        self.web.post(&format!("{SAMPLE}/test/mock-ai/program"), body).expect(200);
        let (snapshot, events) = self.web.ended(&self.web.start(workflow), status);
        // What did not count is nobody's to read.
        let outputs = of_type(&events, "node.completed");
        assert!(outputs.iter().all(|event| !event.to_string().contains(SAID)));
        assert!(!json!([snapshot, events]).to_string().contains(SAID), "{events:?}");
        (snapshot, events)
    }

    /// The room that the last call left for its answer.
    fn room(&self) -> Value {
        let path = format!("{SAMPLE}/test/mock-ai/last-dispatch-budget?nodeId={NODE}");
        self.web.get(&path).expect(200)["maxTokens"].clone()
    }
}

fn valid() -> Value {
    json!({"content": "{\"valid\":true}", "stopReason": "end_turn"})
}

fn invalid() -> Value {
    json!({"content": format!("{{\"valid\":\"{SAID}\"}}"), "stopReason": "end_turn"})
}

fn cut_off() -> Value {
    json!({"content": format!("{{\"valid\":\"{SAID}"), "stopReason": "max_tokens", "outputTokens": 50})
}

/// envelope-retry-attempted.
#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let stage = Stage::new();
    let (_, events) = stage.run("conformance-envelope-retry-attempted", json!([invalid(), valid()]), "completed");
    let again = of_type(&events, "envelope.retry.attempted");
    assert_eq!(again.len(), 1);
    assert_eq!((&again[0]["payload"]["attempt"], &again[0]["payload"]["nodeId"]), (&json!(2), &json!(NODE)));
    assert_eq!(again[0]["payload"]["reason"], "schema-violation");
    assert_eq!(of_type(&events, "provider.usage").len(), 2, "each call is counted");
}

/// envelope-retry-exhausted.
#[test]
fn asking_comes_to_an_end() {
    let stage = Stage::new();
    let (snapshot, events) = stage.run(
        "conformance-envelope-retry-exhausted",
        json!([invalid(), invalid(), invalid(), invalid()]),
        "failed",
    );
    assert_eq!(of_type(&events, "envelope.retry.exhausted").len(), 1);
    assert!(place(&events, "envelope.retry.exhausted") < place(&events, "cap.breached"));
    assert!(place(&events, "cap.breached") < place(&events, "node.failed"));
    assert_eq!(snapshot["error"]["code"], "envelope_invalid");
    let document = stage.web.get("/.well-known/openwop").expect(200);
    let most = document["envelopes"]["reliability"]["maxRetryAttempts"].as_u64().unwrap();
    assert_eq!(of_type(&events, "provider.usage").len() as u64, most);
}

/// envelope-truncated, envelope-completion-distinguishes-truncation.
#[test]
fn what_was_cut_off_gets_more_room_and_what_was_wrong_does_not() {
    let stage = Stage::new();
    let (_, events) = stage.run("conformance-envelope-truncated", json!([cut_off(), valid()]), "completed");
    let cut = of_type(&events, "envelope.truncated");
    assert_eq!((cut.len(), &cut[0]["payload"]["stopReason"]), (1, &json!("max_tokens")));
    assert_eq!(cut[0]["payload"]["partialPayloadAvailable"], true, "something was said before the end");
    assert_eq!(of_type(&events, "envelope.retry.attempted")[0]["payload"]["reason"], "truncation");
    assert!(stage.room().as_u64().unwrap() > 50);
    let (_, events) = stage.run("conformance-envelope-truncated", json!([invalid(), valid()]), "completed");
    assert!(of_type(&events, "envelope.truncated").is_empty());
    assert_eq!(stage.room(), 50);
}

/// envelope-truncation-cap-exhaustion.
#[test]
fn room_comes_to_an_end() {
    let stage = Stage::new();
    let program = json!(vec![cut_off(); 20]);
    let (snapshot, events) = stage.run("conformance-envelope-truncation-cap-exhaustion", program, "failed");
    let exhausted = of_type(&events, "envelope.retry.exhausted");
    assert_eq!((exhausted.len(), &exhausted[0]["payload"]["finalReason"]), (1, &json!("truncation")));
    assert_eq!(snapshot["error"]["code"], "envelope_truncation_unrecoverable");
    assert!(of_type(&events, "provider.usage").len() <= 4);
}

/// envelope-refusal-shape.
#[test]
fn a_refusal_is_final_and_not_repeated() {
    let stage = Stage::new();
    let refusal = json!({"content": "", "stopReason": "safety", "refusalText": format!("no {SAID} for you")});
    let (snapshot, events) = stage.run("conformance-envelope-refusal", json!([refusal]), "failed");
    assert_eq!(of_type(&events, "envelope.refusal").len(), 1);
    assert!(events.iter().all(|event| !event["type"].as_str().unwrap().starts_with("envelope.retry.")));
    assert_eq!(snapshot["error"]["code"], "envelope_refusal");
    assert_eq!(snapshot["error"]["details"]["provider"], "mock");
    assert_eq!(of_type(&events, "provider.usage").len(), 1);
}

/// envelope-recovery-applied.
#[test]
fn an_answer_in_wrapping_is_unwrapped_without_asking_again() {
    let stage = Stage::new();
    let wrapped = json!({"content": "```json\n{\"result\":\"x\"}\n```", "stopReason": "end_turn"});
    let (_, events) = stage.run("conformance-envelope-recovery-applied", json!([wrapped]), "completed");
    let recovered = of_type(&events, "envelope.recovery.applied");
    assert_eq!((recovered.len(), &recovered[0]["payload"]["path"]), (1, &json!("markdown-fence")));
    assert!(of_type(&events, "envelope.retry.attempted").is_empty());
}

/// envelope-nl-to-format-engaged.
#[test]
fn prose_is_put_into_shape_as_a_last_resort() {
    let stage = Stage::new();
    let prose = json!({"content": format!("I like {SAID} best."), "stopReason": "end_turn"});
    let shaped = json!({"content": "{\"result\":\"coerced\"}", "stopReason": "end_turn"});
    let program = json!([prose, prose, prose, shaped]);
    let (_, events) = stage.run("conformance-envelope-nl-to-format-engaged", program, "completed");
    assert_eq!(of_type(&events, "envelope.nlToFormat.engaged").len(), 1);
    assert!(of_type(&events, "node.completed")[0].to_string().contains("coerced"));
}

/// provider-usage, cost-attribution: what is counted is rolled up, and nothing else is said about it.
#[test]
fn what_was_used_is_rolled_up() {
    let stage = Stage::new();
    let counted =
        json!({"content": "{\"valid\":true}", "stopReason": "end_turn", "inputTokens": 11, "outputTokens": 4});
    let wrong = json!({"content": "{}", "stopReason": "end_turn", "inputTokens": 11, "outputTokens": 2});
    let (snapshot, events) = stage.run("conformance-envelope-retry-attempted", json!([wrong, counted]), "completed");
    let cost = &snapshot["metrics"]["openwopCost"];
    assert_eq!(cost["tokens"], json!({"input": 22, "output": 6}), "{snapshot}");
    let known = [
        "provider",
        "model",
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "costEstimateUsd",
        "currency",
        "cacheHit",
        "cacheReadTokens",
        "cacheWriteTokens",
        "nodeId",
        "traceId",
    ];
    for usage in of_type(&events, "provider.usage") {
        assert!(usage["payload"].as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{usage}");
        assert_eq!(usage["nodeId"], NODE);
    }
    assert!(place(&events, "provider.usage") < place(&events, "node.completed"));
}

/// stream-text is in `scenarios_streams`; here: a mock is for test keys and for those that exist.
#[test]
fn a_mock_that_is_not_there_is_refused() {
    let test_server = test_server();
    let body =
        json!({"workflowId": "conformance-stream-text", "configurable": {"mockProvider": {"id": "no-such-mock"}}});
    test_server.web().post("/v1/runs", body).refused(400, "unsupported_mock_provider");
    let body = json!({"workflowId": "conformance-noop", "configurable": {"ai.provider": "nobody"}});
    test_server.web().post("/v1/runs", body).refused(400, "validation_error");
}
