//! What becomes of what models and their servers say: no secret of it is kept, what a run says about its models reaches
//! them, and a provider's trouble has a name of its own.

use crate::agents;
use crate::common;
use crate::forking;
use crate::scripted;
use baton_conformance::Conformance;

use std::sync::Arc;

use agents::{AGENT, Brain, armed, asks, says, told, wants};
use baton_model::{ModelReply, RunId, RunStatus, Secret, code};
use baton_provider::ProviderFault;
use baton_runtime::{ErrorKind, ForkRun, Models, Options, StartRun};
use baton_store::Disk;
use baton_store::reads::*;
use baton_testkit::Flow;
use common::{World, request, who};
use forking::branch_at;
use scripted::Scripted;
use serde_json::{Map, Value, json};

const SECRET: &str = "sk-live-1234-secret";

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn started(world: &World, flow: &str, configurable: Value) -> RunId {
    let start = StartRun { configurable: map(configurable), ..request(flow) };
    world.host.start_run(&who(), start, None).await.unwrap().run_id
}

#[tokio::test]
async fn a_secret_is_kept_nowhere_whatever_it_is_said_as() {
    let brain = Brain::new(|request| {
        let model = Some(format!("m-{SECRET}"));
        match told(request) {
            0 => ModelReply { model, ..wants(&[(SECRET, json!({ SECRET: SECRET }))]) },
            _ => ModelReply { model, reasoning: Some(SECRET.to_owned()), ..says(format!("It is {SECRET}.")) },
        }
    });
    let options = agents::options(vec![armed(AGENT, &[])], &brain, Vec::new(), 512);
    let options = Options { secrets: vec![Secret::new("key", SECRET)], ..options };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("asks", AGENT)).await;
    let run = world.start("asks").await;
    let end = world.ended(&run).await;
    assert_eq!(end.status, RunStatus::Completed, "{end:?}");
    let records = world.store.records(&run, 0, 1000).await.unwrap();
    let bodies: Vec<&str> = records.iter().map(|record| record.body.as_str()).collect();
    for body in &bodies {
        assert!(!body.contains(SECRET), "{body}");
    }
    let shown = serde_json::to_string(&end).unwrap();
    assert!(!shown.contains(SECRET) && shown.contains("m-[REDACTED:key]"), "{shown}");
    // The control: it was said, and stands there by its id.
    let returned = records.iter().find(|record| record.kind == "agent.toolReturned").unwrap();
    assert!(returned.body.contains(r#""toolName":"[REDACTED:key]""#), "{}", returned.body);
    assert!(!brain.heard().contains(SECRET), "nor is it told to the model again");
}

/// What the latest request said about temperature and room.
fn manner(brain: &Brain) -> (Option<f64>, Option<u64>) {
    let asked = brain.asked.lock();
    let semantic = &asked.last().unwrap().semantic;
    (semantic.temperature.as_ref().and_then(serde_json::Number::as_f64), semantic.max_output_tokens)
}

#[tokio::test]
async fn what_a_run_says_reaches_its_models_where_the_node_says_nothing() {
    let brain = Brain::new(|request| match &request.semantic.response_format {
        Some(_) => says(r#"{"valid":true}"#),
        None => says("done"),
    });
    let options = agents::options(vec![armed(AGENT, &[])], &brain, Vec::new(), 512);
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("plain", AGENT)).await;
    let own = json!({"agentId": AGENT, "temperature": 0.9, "maxTokens": 77});
    world.register(Flow::new("own").node_with("work", "vendor.baton.agent", own, agents::task("Do it."))).await;
    let shaped = json!({"outputSchema": {"type": "object", "required": ["valid"]}});
    let prompt = json!({"inputs": {"prompt": {"type": "static", "value": "Is it?"}}});
    world.register(Flow::new("shaped").node_with("work", "core.ai.structuredOutput", shaped, prompt)).await;
    let child = json!({"workflowId": "plain"});
    world.register(Flow::new("parent").node("child", "core.subWorkflow", child)).await;
    for (flow, said, expected) in [
        ("plain", json!({}), (None, None)),
        ("plain", json!({"temperature": 0.25, "maxTokens": 40}), (Some(0.25), Some(40))),
        ("plain", json!({"ai": {"temperature": 0.5}, "ai.maxTokens": 41}), (Some(0.5), Some(41))),
        ("plain", json!({"ai.temperature": 0.5, "temperature": 0.25}), (Some(0.5), None)),
        ("own", json!({"temperature": 0.25, "maxTokens": 40}), (Some(0.9), Some(77))),
        ("shaped", json!({"temperature": 0.25, "maxTokens": 40}), (Some(0.25), Some(40))),
        ("parent", json!({"temperature": 0.25, "maxTokens": 40}), (Some(0.25), Some(40))),
    ] {
        let run = started(&world, flow, said.clone()).await;
        let end = world.ended(&run).await;
        assert_eq!(end.status, RunStatus::Completed, "{flow} {said}: {end:?}");
        assert_eq!(manner(&brain), expected, "{flow} {said}");
    }
    // Requests that differ in it are not the same request.
    let asked = brain.asked.lock();
    assert_ne!(asked[0].semantic.cache_key(), asked[1].semantic.cache_key());
}

#[tokio::test]
async fn what_no_model_would_be_told_is_refused_for_new_runs_and_branches() {
    let brain = Brain::new(|_| says("done"));
    let options = agents::options(vec![armed(AGENT, &[])], &brain, Vec::new(), 512);
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("asks", AGENT)).await;
    let source = world.start("asks").await;
    world.ended(&source).await;
    for (said, kind, code) in [
        (json!({"ai": {"credentialRef": "secret:mine"}}), ErrorKind::Unprocessable, code::CREDENTIAL_FORBIDDEN),
        (json!({"temperature": 3}), ErrorKind::Invalid, code::VALIDATION_ERROR),
        (json!({"reasoningVerbosity": "bogus"}), ErrorKind::Invalid, code::VALIDATION_ERROR),
    ] {
        let start = StartRun { configurable: map(said.clone()), ..request("asks") };
        let error = world.host.start_run(&who(), start, None).await.unwrap_err();
        assert_eq!((error.kind, error.code), (kind, code), "{said}");
        let branch = ForkRun { configurable: map(said.clone()), ..branch_at(1) };
        let error = world.host.fork(&who(), &source, branch, None).await.unwrap_err();
        assert_eq!((error.kind, error.code), (kind, code), "{said}");
    }
    assert_eq!(world.rows().await.len(), 1, "nothing began");
}

#[tokio::test]
async fn a_providers_trouble_has_a_name_and_says_what_happened() {
    let why = || "it says so".to_owned();
    for (fault, code, calls, message) in [
        (ProviderFault::Unavailable(why()), "provider_unavailable", 2, "the provider failed: it says so"),
        (ProviderFault::TimedOut, "provider_unavailable", 2, "the provider did not answer in time"),
        (ProviderFault::Unusable(why()), "provider_unavailable", 2, "cannot be used as it is set up: it says so"),
        (ProviderFault::Exhausted, "provider_quota_exhausted", 2, "takes no more calls for now"),
        (ProviderFault::UnknownModel(why()), "model_not_supported", 1, "does not have this model: it says so"),
        (ProviderFault::TooLong(why()), "content_too_long", 1, "too long for the provider: it says so"),
        (ProviderFault::Rejected(why()), "validation_error", 1, "does not take this request: it says so"),
    ] {
        let provider = Scripted::prompt();
        provider.first(Err(fault.clone()));
        provider.first(Err(fault.clone()));
        let models = Models::default().with("mock", Arc::clone(&provider) as _);
        let options = Options { test_hooks: Conformance::hooks(), models, ..common::options(512) };
        let world = World::open(Disk::default(), Arc::default(), options).await;
        let config = json!({"provider": "mock", "model": "m", "outputSchema": {"type": "object"}});
        let more = json!({"inputs": {"prompt": {"type": "static", "value": "Is it?"}},
            "settings": {"maxRetries": 1, "retryDelayMs": 10}});
        world.register(Flow::new("conformance-asks").node_with("ask", "core.ai.structuredOutput", config, more)).await;
        let run = world.start("conformance-asks").await;
        world.drive(0).await;
        let error = world.ended(&run).await.error.unwrap();
        assert_eq!((error.code.as_str(), provider.keys().len()), (code, calls), "{fault:?}");
        assert!(error.message.contains(message), "{}", error.message);
        let details = error.details.unwrap();
        assert_eq!(details["provider"], "mock");
        assert_eq!(details.contains_key("model"), code == "model_not_supported");
    }
}
