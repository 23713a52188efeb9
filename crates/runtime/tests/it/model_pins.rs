//! Which model a node asks that asks one by itself, and whether that model can do what the node needs: settled when its
//! run starts, from the host's configuration.

use crate::agents;
use crate::common;
use crate::forking;

use std::collections::BTreeSet;
use std::sync::Arc;

use agents::{AGENT, Brain, asks, card, model, options, says};
use async_trait::async_trait;
use baton_model::{ModelChoice, ModelClass, ModelReply, ModelRequest, RunId, RunStatus};
use baton_provider::{DeltaSink, Provider, ProviderFault};
use baton_runtime::{ForkRun, ModelTable, Models, Options, StartRun};
use baton_store::Disk;
use baton_testkit::Flow;
use common::{World, request, who};
use forking::branch_at;
use serde_json::{Map, Value, json};

/// A provider whose models can do what their names say.
struct Able(Arc<Brain>);

#[async_trait]
impl Provider for Able {
    async fn call(&self, request: &ModelRequest, ear: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.0.call(request, ear).await
    }

    fn capabilities(&self, model: &str) -> BTreeSet<String> {
        model.split('+').map(str::to_owned).collect()
    }
}

fn with(brain: &Arc<Brain>) -> Options {
    let able = |name: &str| ModelChoice { provider: "able".to_owned(), model: name.to_owned() };
    Options {
        models: Models::default().with("brain", Arc::clone(brain) as _).with("able", Arc::new(Able(Arc::clone(brain)))),
        model_table: ModelTable::default().otherwise(model("big")).class(ModelClass::Coding, able("reasoning")),
        ..options(vec![card(AGENT)], brain, Vec::new(), 512)
    }
}

fn flow(id: &str, more: Value) -> Flow {
    let mut config = json!({"outputSchema": {"type": "object", "required": ["valid"]}});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let inputs = json!({"inputs": {"prompt": {"type": "static", "value": "Is it?"}}});
    Flow::new(id).node_with("ask", "core.ai.structuredOutput", config, inputs)
}

fn configured(workflow: &str, configurable: Value) -> StartRun {
    StartRun { configurable: configurable.as_object().unwrap().clone(), ..request(workflow) }
}

async fn world() -> (World, Arc<Brain>) {
    let brain = Brain::new(|_| says(r#"{"valid":true}"#));
    (World::open(Disk::default(), Arc::default(), with(&brain)).await, brain)
}

async fn started(world: &World, request: StartRun) -> RunId {
    world.host.start_run(&who(), request, None).await.unwrap().run_id
}

fn last(brain: &Brain) -> String {
    let asked = brain.asked.lock();
    let semantic = &asked.last().unwrap().semantic;
    format!("{}/{}", semantic.provider, semantic.model)
}

#[tokio::test]
async fn a_node_that_names_no_model_asks_the_hosts() {
    let (world, brain) = world().await;
    world.register(flow("plain", json!({}))).await;
    world.register(flow("codes", json!({"modelClass": "coding"}))).await;
    world.register(flow("elsewhere", json!({"provider": "elsewhere", "model": "m"}))).await;
    for (workflow, configurable, expected) in [
        ("plain", json!({}), "brain/big"),
        ("codes", json!({}), "able/reasoning"),
        ("plain", json!({"ai.provider": "able", "ai.model": "m"}), "able/m"),
        ("codes", json!({"ai": {"model": "m"}}), "able/m"),
    ] {
        let run = started(&world, configured(workflow, configurable.clone())).await;
        assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "{workflow} {configurable}");
        assert_eq!(last(&brain), expected, "{workflow} {configurable}");
        world.verified(&run, workflow).await;
    }
    // A provider that is not here is found out before anything begins.
    for request in [request("elsewhere"), configured("plain", json!({"ai.provider": "elsewhere"}))] {
        let refused = world.refusal_of(request).await;
        assert_eq!(refused.details["provider"], "elsewhere");
        assert_eq!(refused.details["supported"], json!(["able", "brain"]));
    }
    // And so is a host that has no model at all.
    let nobody = Options { model_table: ModelTable::default(), ..with(&brain) };
    let bare = World::open(Disk::default(), Arc::default(), nobody).await;
    bare.register(flow("plain", json!({}))).await;
    assert!(bare.refusal_of(request("plain")).await.message.contains("[models] general"));
    // The table may change while a run is under way; the run stays with what it began with.
    let gated = flow("gated", json!({})).node("gate", "core.approvalGate", json!({"title": "Go?"})).edge("gate", "ask");
    world.register(gated).await;
    let run = world.start("gated").await;
    world.waiting(&run).await;
    let other = Options { model_table: ModelTable::default().otherwise(model("other")), ..with(&brain) };
    let world = world.next(1, other).await;
    world.resolve(&run, "gate", common::accept()).await.unwrap();
    world.ended(&run).await;
    assert_eq!(last(&brain), "brain/big");
}

#[tokio::test]
async fn what_a_model_can_do_is_the_providers_word() {
    let (world, brain) = world().await;
    let needs = json!({
        "requiredModelCapabilities": ["vision-input"],
        "fallbackModel": {"provider": "able", "model": "vision-input+reasoning"},
    });
    world.register(flow("sees", needs.clone())).await;
    world.register(flow("blind", json!({"requiredModelCapabilities": ["vision-input"]}))).await;
    let run = world.start("sees").await;
    assert_eq!(
        (world.ended(&run).await.status, last(&brain).as_str()),
        (RunStatus::Completed, "able/vision-input+reasoning")
    );
    let run = started(&world, configured("blind", json!({"ai.provider": "able", "ai.model": "vision-input"}))).await;
    assert_eq!((world.ended(&run).await.status, last(&brain).as_str()), (RunStatus::Completed, "able/vision-input"));
    let asked = brain.count();
    let run = world.start("blind").await;
    let end = world.ended(&run).await;
    assert_eq!((end.status, end.error.unwrap().code.as_str()), (RunStatus::Failed, "capability_not_provided"));
    assert_eq!(brain.count(), asked, "nobody was asked");
    world.verified(&run, "a refusal").await;
    // A branch may name a model that can.
    let configurable: Map<String, Value> =
        json!({"ai.provider": "able", "ai.model": "vision-input"}).as_object().unwrap().clone();
    for from in [0, 1] {
        let branch = world.fork(&run, ForkRun { configurable: configurable.clone(), ..branch_at(from) }).await;
        assert_eq!(world.ended(&branch).await.status, RunStatus::Completed, "from {from}");
    }
    // Agents are no different.
    world.register(asks("agent", AGENT)).await;
    let mut definition = asks("picky", AGENT).build();
    definition["nodes"][0]["config"].as_object_mut().unwrap().extend(needs.as_object().unwrap().clone());
    world.host.register_workflow(&common::tenant(), definition).await.unwrap();
    let run = world.start("picky").await;
    world.ended(&run).await;
    assert_eq!(last(&brain), "able/vision-input+reasoning");
    world.verified(&run, "an agent").await;
}
