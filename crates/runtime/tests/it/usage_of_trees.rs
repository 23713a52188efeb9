//! What models have used is added up over a tree of runs: each run counts once for everything above it, wherever the
//! process dies.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{Brain, armed, asks, heard, options, says, says_json};
use baton_model::{Event, RunId, RunSummary, Tokens, UsageSummary};
use baton_runtime::Options;
use baton_store::Disk;
use baton_testkit::{Flow, SimClock};
use common::{World, in_time};
use serde::Deserialize as _;
use serde_json::{Value, json};

const LEAD: &str = "local.test.lead";
const WORKER: &str = "local.test.worker";
/// More crashes than the tree has commits: past this, something commits for ever.
const MOST_CRASHES: u64 = 200;

/// Sends the same worker twice at once, and is done.
fn brain() -> Arc<Brain> {
    Brain::new(|request| {
        let text = heard(request);
        let Some((_, told)) = text.split_once("The situation, as the host recorded it:\n") else {
            return says("found");
        };
        let told = Value::deserialize(&mut serde_json::Deserializer::from_str(told)).unwrap();
        says_json(&match told["iteration"].as_u64() {
            Some(1) => json!({"kind": "next-worker", "nextWorkerIds": ["working", "also-working"]}),
            _ => json!({"kind": "terminate", "reason": "found"}),
        })
    })
}

fn with(brain: &Arc<Brain>, ahead: usize) -> Options {
    options(vec![armed(LEAD, &[]), armed(WORKER, &[])], brain, Vec::new(), ahead)
}

/// A run that asks no model, above one whose supervisor does, above two whose agents do.
async fn registered() -> Disk {
    let world = World::open(Disk::default(), Arc::default(), with(&brain(), 1)).await;
    let workers = json!([{"id": "working", "does": "works"}, {"id": "also-working", "does": "works"}]);
    let lead = json!({"agentId": LEAD, "workers": workers});
    let nodes = [
        ("lead", "core.orchestrator.supervisor", lead),
        ("dispatch", "core.dispatch", json!({"fanOutPolicy": "parallel"})),
    ];
    let team = Flow::chain("team", &nodes).edge("dispatch", "lead");
    let top = Flow::chain("top", &[("call", "core.subWorkflow", json!({"workflowId": "team"}))]);
    for flow in [top, team, asks("working", WORKER), asks("also-working", WORKER)] {
        world.register(flow).await;
    }
    world.stop().await
}

/// What a run's own log says was used.
async fn logged(world: &World, run: &RunId) -> Tokens {
    world.events_of(run).await.iter().fold(Tokens::default(), |sum, event| match event {
        Event::ProviderUsage(event) => {
            Tokens { input: sum.input + event.input_tokens, output: sum.output + event.output_tokens }
        }
        _ => sum,
    })
}

/// Every run shows what it and everything below it have used, as their logs have it.
async fn adds_up(world: &World, context: &str) {
    let rows = world.rows().await;
    assert_eq!(rows.len(), 4, "{context}");
    for row in &rows {
        let mut all = Tokens::default();
        for other in &rows {
            let below = other.parent.as_ref() == Some(&row.id) || other.root.as_ref() == Some(&row.id);
            if other.id == row.id || below {
                let used = logged(world, &other.id).await;
                all = Tokens { input: all.input + used.input, output: all.output + used.output };
            }
        }
        let metrics = world.snapshot(&row.id).await.metrics.unwrap();
        assert_eq!(metrics.tree_cost.map(|cost| cost.tokens), Some(all), "{context}: {}", row.workflow);
        let own = logged(world, &row.id).await;
        let shown = metrics.openwop_cost.map(|cost| cost.tokens).unwrap_or_default();
        assert_eq!(shown, own, "{context}: {} itself", row.workflow);
    }
    assert!(world.snapshot(&rows[0].id).await.metrics.unwrap().openwop_cost.is_none(), "{context}: asked nobody");
}

#[tokio::test]
async fn each_run_counts_once_wherever_the_process_dies() {
    let disk = registered().await;
    for ahead in [1, 512] {
        for commits in 0.. {
            let context = format!("{ahead} ahead, crashed after {commits}");
            assert!(commits < MOST_CRASHES, "{context}: never ends");
            let (brain, clock) = (brain(), Arc::new(SimClock::default()));
            let life = World::open(disk.clone(), Arc::clone(&clock), with(&brain, ahead)).await;
            life.store.crash_after(commits);
            let lived = async {
                life.start("top").await;
                life.drive(0).await;
            };
            let died = tokio::select! {
                () = lived => false,
                () = life.store.crashed() => true,
            };
            if !died {
                adds_up(&life, "undisturbed").await;
                life.stop().await;
                assert!(commits >= if ahead == 1 { 20 } else { 3 }, "{context}: too few places to crash at");
                break;
            }
            let world = World::open(life.stop().await, clock, with(&brain, ahead)).await;
            if world.rows().await.is_empty() {
                world.start("top").await;
            }
            in_time(&context, world.drive(0)).await;
            adds_up(&world, &context).await;
            world.stop().await;
        }
    }
}

#[test]
fn prices_add_up_where_there_are_any() {
    let used = |cost_usd| UsageSummary { input_tokens: 3, output_tokens: 2, cost_usd };
    let summary = |usage, usage_below| RunSummary { usage, usage_below, ..RunSummary::default() };
    let both = summary(Some(used(None)), Some(used(Some(0.5)))).usage_of_tree();
    assert_eq!(both, Some(UsageSummary { input_tokens: 6, output_tokens: 4, cost_usd: Some(0.5) }));
    assert_eq!(summary(None, Some(used(None))).usage_of_tree(), Some(used(None)));
    assert_eq!(summary(None, None).usage_of_tree(), None);
}
