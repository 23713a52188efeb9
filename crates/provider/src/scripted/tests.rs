#![allow(clippy::unwrap_used)]

use std::time::Duration;

use baton_model::cache_key::Message;
use baton_model::{ModelReply, ModelRequest, StopReason, Usage};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Script, ScriptedProvider, Step};
use crate::testing::{request, text};
use crate::{Delta, DeltaSink, NoSink, Provider as _, ProviderFault};

struct Notes(Mutex<Vec<Delta>>);

impl DeltaSink for Notes {
    fn push(&self, delta: Delta) {
        self.0.lock().push(delta);
    }
}

/// A supervisor that sends somebody out, looks at what came back, and ends; a worker that fetches a page and sums it up.
const TEAM: &str = r#"{
  "rules": [
    {"when": {"system": "You lead", "any": "sum it up"}, "reply": {"json": {"kind": "terminate", "said": "{{last}}"}}},
    {"when": {"system": "You lead"}, "reply": {"json": {"kind": "next-worker"}, "reasoning": "somebody must go"}},
    {"when": {"system": ["You work", "quickly"], "call": 1},
     "reply": {"tools": [{"name": "openwop:http.fetch", "arguments": {"url": "x", "why": "{{last}}"}}, {"name": "b", "id": "mine"}]}},
    {"when": {"tool": "openwop:http.fetch", "last": "404"}, "reply": {"refusal": "Nothing there.", "safetyCategory": "none"}},
    {"when": {"tool": "openwop:http.fetch"}, "reply": {"text": "to sum it up: {{last}}", "usage": {"inputTokens": 3, "outputTokens": 5}}},
    {"when": {"node": "stalls"}, "reply": {"stall": true}},
    {"when": {"node": "breaks", "model": "m"}, "reply": {"fault": "exhausted"}},
    {"when": {"node": "cut"}, "reply": {"text": "{\"a\":", "stop": "max_tokens"}}
  ],
  "otherwise": {"text": "What?"}
}"#;

fn team() -> ScriptedProvider {
    ScriptedProvider::new(Script::read(TEAM).unwrap())
}

fn asked(node: &str, messages: Value) -> ModelRequest {
    ModelRequest { node: node.into(), ..request("scripted", json!({"messages": messages})) }
}

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[tokio::test]
async fn a_team_at_work_and_the_same_again_after_a_crash() {
    let ask = async |messages: Value| {
        let request = asked("n", messages);
        let reply = team().call(&request, &NoSink).await.unwrap();
        assert_eq!(team().call(&request, &NoSink).await.unwrap(), reply, "another process says the same");
        reply
    };
    let reply = ask(json!([system("You lead a team."), user("Find out.")])).await;
    assert_eq!(
        (reply.content.as_str(), reply.reasoning.as_deref()),
        (r#"{"kind":"next-worker"}"#, Some("somebody must go"))
    );

    let work = [system("You work quickly."), user("Find out.")];
    let reply = ask(json!(work)).await;
    assert_eq!(reply.stop, StopReason::ToolUse);
    let calls: Vec<_> = reply.tools.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
    assert_eq!(calls, [("call_1_0", "openwop:http.fetch"), ("mine", "b")]);
    assert_eq!(reply.tools[0].arguments, json!({"url": "x", "why": "Find out."}));

    let after = |answer: &str| json!([work[0], work[1], Message::said(&reply), Message::tool(&reply.tools[0], answer)]);
    let worked = ask(after("200 fine")).await;
    assert_eq!(worked.content, "to sum it up: 200 fine");
    assert_eq!(worked.usage, Usage { input_tokens: 3, output_tokens: 5, ..Usage::default() });
    let refused = ask(after("404")).await;
    assert!(refused.is_refusal());
    assert_eq!(refused.safety_category.as_deref(), Some("none"));

    let reply = ask(json!([system("You lead a team."), user(&worked.content)])).await;
    assert_eq!(reply.content, r#"{"kind":"terminate","said":"to sum it up: 200 fine"}"#);
    assert_eq!(ask(json!([user("hello")])).await.content, "What?");
}

#[tokio::test(start_paused = true)]
async fn faults_stalls_and_answers_that_break_off() {
    let team = team();
    let fault = team.call(&asked("breaks", json!([])), &NoSink).await.unwrap_err();
    assert_eq!(fault, ProviderFault::Exhausted);
    let cut = team.call(&asked("cut", json!([])), &NoSink).await.unwrap();
    assert!(cut.is_cut_off() && cut.content == "{\"a\":");
    let stalled = asked("stalls", json!([]));
    let patient = tokio::time::timeout(Duration::from_secs(86_400), team.call(&stalled, &NoSink));
    assert!(patient.await.is_err(), "it never answers");
    let bounded = ModelRequest { timeout_ms: Some(1000), ..stalled };
    assert_eq!(team.call(&bounded, &NoSink).await, Err(ProviderFault::TimedOut));
}

#[tokio::test]
async fn a_queue_goes_first_and_then_the_script() {
    let team = team();
    let garbage = ModelReply::text("}{ garbage", Usage::default());
    let steps = vec![Step::Reply(garbage.clone()), Step::Fault(ProviderFault::TimedOut)];
    team.program("n".into(), steps.clone());
    let ask = async || team.call(&asked("n", json!([])), &NoSink).await;
    assert_eq!(ask().await, Ok(garbage));
    assert_eq!(ask().await, Err(ProviderFault::TimedOut));
    assert_eq!(ask().await.unwrap().content, "What?");
    team.program("n".into(), steps);
    team.reset();
    assert_eq!(ask().await.unwrap().content, "What?");
}

#[tokio::test]
async fn it_is_heard_word_by_word() {
    let notes = Notes(Mutex::default());
    let reply = ModelReply { reasoning: Some("hm".into()), ..ModelReply::text("two words", Usage::default()) };
    let provider = ScriptedProvider::default();
    provider.program("n".into(), vec![Step::Reply(reply)]);
    provider.call(&asked("n", json!([])), &notes).await.unwrap();
    assert_eq!(notes.0.into_inner(), [Delta::Reasoning("hm".into()), text("two "), text("words")]);
    assert_eq!(
        provider.call(&asked("n", json!([])), &NoSink).await.unwrap().content,
        "mock",
        "without a script, the smallest answer"
    );
}

#[test]
fn a_script_that_contradicts_itself_is_refused_with_the_place() {
    let wrong = |reply: &str| {
        let script = format!(r#"{{"rules": [{{"reply": {{"text": "fine"}}}}, {{"reply": {reply}}}]}}"#);
        Script::read(&script).unwrap_err().to_string()
    };
    for reply in [
        "{}",
        r#"{"text": "a", "json": {}}"#,
        r#"{"text": "a", "stall": true}"#,
        r#"{"fault": "exhausted", "stall": true}"#,
        r#"{"refusal": "no", "tools": [{"name": "a"}]}"#,
        r#"{"text": "a", "delayMs": 60001}"#,
    ] {
        assert!(wrong(reply).contains("`rules/1/reply`"), "{reply}: {}", wrong(reply));
    }
    for reply in [r#"{"fault": "tired"}"#, r#"{"txt": "a"}"#, r#"{"text": "a", "stop": "whenever"}"#] {
        assert!(wrong(reply).contains("line 1"), "{reply}: {}", wrong(reply));
    }
}
