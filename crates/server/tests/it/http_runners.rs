//! Runners over HTTP: what opens what, a step from the stream to the log with nothing but requests, and what discovery and
//! the test endpoints say.

use crate::support;

use axum::body::Body;
use axum::http::Request;
use baton_model::AgentCard;
use serde_json::{Value, json};
use std::sync::Arc;
use support::agents::{EDITOR, Model, calls, editor, only, says, staffed};
use support::{FULL, Frames, JSON, OTHER, READER, Site, host_options};

const TOKENS: &str = "/v1/host/baton/runner-tokens";
const RUNNERS: &str = "/v1/host/baton/runners";

async fn site() -> (Site, Arc<Model>) {
    let mut options = host_options();
    let tools = vec!["runner:py".to_owned()];
    let model = staffed(&mut options, [AgentCard { tools, ..editor() }]);
    (Site::configured(|own| *own = options).await, model)
}

async fn token(site: &Site) -> (String, String) {
    let made = site.post(TOKENS, json!({"name": "laptop"})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    assert_eq!(made["subject"], "tenant:acme");
    (made["tokenId"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned())
}

struct Channel<'a> {
    site: &'a Site,
    bearer: String,
}

impl Channel<'_> {
    async fn send(&self, method: &str, path: &str, body: Value) -> support::Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.site.send(method, path, &[("authorization", &self.bearer), JSON], body).await
    }

    async fn sign_in(&self, id: &str) {
        let frame = json!({"runnerId": id, "subject": "tenant:acme", "capabilities": {"tools": ["py.work"]}});
        assert_eq!(self.send("POST", RUNNERS, frame.clone()).await.status, 201);
        assert_eq!(self.send("POST", RUNNERS, frame).await.status, 200, "known");
    }

    async fn stream(&self, id: &str, after: Option<&str>) -> Frames {
        let mut request =
            Request::builder().uri(format!("{RUNNERS}/{id}/dispatch")).header("authorization", &self.bearer);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        Frames::new(self.site.raw(request.body(Body::empty()).unwrap()).await)
    }
}

#[tokio::test]
async fn a_step_goes_out_and_its_result_comes_back_with_nothing_but_requests() {
    let (site, model) = site().await;
    let (_, token) = token(&site).await;
    let channel = Channel { site: &site, bearer: format!("Bearer {token}") };
    channel.sign_in("r1").await;
    let own = channel.send("GET", &format!("{TOKENS}/self"), Value::Null).await.json();
    assert_eq!((&own["subject"], &own["name"]), (&json!("tenant:acme"), &json!("laptop")));
    let listed = site.get("/v1/tools").await.json();
    let tool = listed.as_array().unwrap().iter().find(|tool| tool["toolId"] == "runner:py.work").unwrap().clone();
    assert_eq!((&tool["source"], &tool["safetyTier"]), (&json!("host-extension"), &json!("write")));
    assert_eq!((&tool["egress"], &tool["replayPolicy"]), (&json!("host-owned"), &json!("non-deterministic")));
    assert_eq!(site.send("GET", "/v1/tools/runner:py.work", &[OTHER], "").await.status, 404, "another tenant");
    let mut stream = channel.stream("r1", None).await;
    model.program(vec![
        calls(&[("runner:py.work", json!({"key": "sk-ant-api03-0123456789abcdef"}))]),
        says(&json!({"answer": "x"})),
    ]);
    let started = site.post("/v1/runs", json!({"agentId": EDITOR, "inputs": {"task": "t"}})).await.json();
    let run = started["runId"].as_str().unwrap().to_owned();
    let context = stream.any().await.unwrap();
    assert_eq!((context.event.as_str(), &context.data["leaseMs"]), ("baton.context", &json!(30_000)));
    let step = stream.any().await.unwrap();
    assert_eq!(step.event, "dispatch");
    let members: Vec<&String> = step.data.as_object().unwrap().keys().collect();
    assert_eq!(members, ["inputs", "kind", "runId", "seq", "stepId", "tool"], "the frame is closed");
    assert_eq!((&step.data["runId"], &step.data["tool"]), (&json!(run), &json!("py.work")));
    assert_eq!(step.data["inputs"]["key"], "sk-ant-api03-0123456789abcdef", "as it was asked, letter by letter");
    let result =
        |output: Value| json!({"runId": run, "stepId": step.data["stepId"], "seq": step.data["seq"], "output": output});
    let results = format!("{RUNNERS}/r1/results");
    channel.send("POST", &results, json!({"runId": run})).await.refused(400, "validation_error");
    let mut more = result(json!({}));
    more["credential"] = "x".into();
    channel.send("POST", &results, more).await.refused(400, "validation_error");
    let taken = channel.send("POST", &results, result(json!({"well": "done"}))).await;
    assert_eq!((taken.status.as_u16(), taken.json()), (200, json!({"accepted": true, "duplicate": false})));
    site.reach(&run, "completed").await;
    let log = site.log(&run).await;
    assert_eq!(only(&log, "agent.toolReturned")["payload"]["outcome"], json!({"well": "done"}));
    assert_eq!(only(&log, "agent.toolReturned")["contentTrust"], "untrusted");
    assert!(model.last().contains("<UNTRUSTED"), "{}", model.last());
    let both = json!({"results": [result(json!({"well": "done"})), result(json!({"badly": "done"}))]});
    let taken = channel.send("POST", &results, both).await.json();
    assert_eq!(taken["results"][0], json!({"accepted": true, "duplicate": true}));
    assert_eq!(taken["results"][1]["error"]["code"], "result_conflict");
    channel.send("POST", &results, result(json!({"badly": "done"}))).await.refused(409, "result_conflict");
    let unknown = json!({"runId": run, "stepId": "x", "seq": 0, "output": {}});
    channel.send("POST", &results, unknown).await.refused(409, "step_not_leased");
    let runners = site.get(RUNNERS).await.json();
    assert_eq!((&runners["runners"][0]["runnerId"], &runners["runners"][0]["inFlight"]), (&json!("r1"), &json!(0)));
    assert_eq!(site.send("GET", RUNNERS, &[OTHER], "").await.json(), json!({"runners": []}));
    let mut second = channel.stream("r1", step.data["seq"].as_u64().map(|seq| seq.to_string()).as_deref()).await;
    assert_eq!(stream.any().await.unwrap().event, "superseded");
    assert_eq!(stream.any().await, None);
    assert_eq!(channel.send("DELETE", &format!("{RUNNERS}/r1"), Value::Null).await.status, 204);
    assert_eq!(second.any().await, None, "it signed off");
    assert_eq!(site.get("/v1/tools/runner:py.work").await.status, 404);
}

#[tokio::test]
async fn a_runners_token_opens_the_channel_only_and_a_key_does_not_open_it() {
    let (site, _) = site().await;
    let (id, token) = token(&site).await;
    let bearer = format!("Bearer {token}");
    for (method, path) in
        [("GET", "/v1/runs"), ("POST", "/v1/runs"), ("GET", RUNNERS), ("GET", TOKENS), ("GET", "/v1/tools")]
    {
        let answer = site.send(method, path, &[("authorization", &bearer)], "{}").await;
        answer.refused(403, "forbidden");
    }
    let frame = json!({"runnerId": "r1", "subject": "tenant:acme", "capabilities": {}}).to_string();
    for (method, path) in [
        ("POST", RUNNERS.to_owned()),
        ("PUT", format!("{RUNNERS}/r1/tools")),
        ("GET", format!("{RUNNERS}/r1/dispatch")),
        ("POST", format!("{RUNNERS}/r1/results")),
        ("POST", format!("{RUNNERS}/r1/reports")),
        ("DELETE", format!("{RUNNERS}/r1")),
    ] {
        site.send(method, &path, &[FULL], frame.clone()).await.refused(403, "forbidden");
        site.send(method, &path, &[], frame.clone()).await.refused(401, "unauthenticated");
        let made_up = [("authorization", "Bearer br_0123")];
        site.send(method, &path, &made_up, frame.clone()).await.refused(401, "unauthenticated");
    }
    site.send("POST", TOKENS, &[READER], r#"{"name":"x"}"#).await.refused(403, "forbidden");
    site.post(TOKENS, json!({"name": "x", "subject": "bob"})).await.refused(403, "forbidden");
    site.post(TOKENS, json!({"name": ""})).await.refused(400, "validation_error");
    let listed = site.get(TOKENS).await;
    assert!(!listed.text.contains(&token) && listed.json()["tokens"][0]["tokenId"] == json!(id), "{}", listed.text);
    site.send("DELETE", &format!("{TOKENS}/{id}"), &[OTHER], "").await.refused(404, "not_found");

    let channel = Channel { site: &site, bearer };
    let foreign = json!({"runnerId": "r1", "subject": "bob", "capabilities": {}});
    channel.send("POST", RUNNERS, foreign).await.refused(403, "forbidden");
    channel.send("GET", &format!("{RUNNERS}/r1/dispatch"), Value::Null).await.refused(404, "not_found");
    channel.sign_in("r1").await;
    channel
        .send("PUT", &format!("{RUNNERS}/r1/tools"), json!({"pool": "a.b", "tools": []}))
        .await
        .refused(400, "validation_error");
    let mut stream = channel.stream("r1", None).await;
    assert_eq!(site.delete(&format!("{TOKENS}/{id}")).await.status, 204);
    assert_eq!(stream.any().await, None, "cut off at once");
    channel.send("POST", RUNNERS, json!({})).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn discovery_says_what_runners_may_do() {
    let (site, _) = site().await;
    let found = site.get("/.well-known/openwop").await.json();
    let family = json!({"supported": true, "dispatchKinds": ["tool"]});
    assert_eq!((&found["selfHostedRunner"], &found["capabilities"]["selfHostedRunner"]), (&family, &family));
}

#[tokio::test]
async fn a_host_that_takes_no_runners_says_nothing_of_them() {
    let site = Site::configured(|own| own.runner_channel = false).await;
    let found = site.get("/.well-known/openwop").await.json();
    assert_eq!((&found["selfHostedRunner"], &found["capabilities"]["selfHostedRunner"]), (&Value::Null, &Value::Null));
    site.post(TOKENS, json!({"name": "x"})).await.refused(404, "not_found");
    let frame = json!({"runnerId": "r1", "subject": "tenant:acme", "capabilities": {}});
    site.post(RUNNERS, frame).await.refused(404, "not_found");
}

#[tokio::test]
async fn the_test_endpoints_drive_the_registry() {
    let site = Site::conforming().await;
    let dispatch = |subject: &str| {
        let frame = json!({"subject": subject, "runId": "run_x", "stepId": "step_1", "seq": 0, "kind": "model",
            "provider": "anthropic", "model": "claude", "inputs": {"messages": []}});
        site.post("/v1/host/sample/runner/dispatch", frame)
    };
    let register = |subject: &str| {
        let frame = json!({"runnerId": "r", "subject": subject, "capabilities": {"providers": ["anthropic"]}});
        site.post("/v1/host/sample/runner/register", frame)
    };
    assert_eq!(register("b").await.status, 200);
    let refused = dispatch("a").await;
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.refused(503, "runner_unavailable")["retriable"], true);
    assert_eq!(register("a").await.status, 200);
    let first = dispatch("a").await.json();
    assert_eq!((&first["deduped"], &first["result"]["role"]), (&json!(false), &json!("assistant")), "{first}");
    let second = dispatch("a").await.json();
    assert_eq!((&second["deduped"], &second["result"]), (&json!(true), &first["result"]));
}
