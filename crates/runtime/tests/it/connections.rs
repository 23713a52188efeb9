//! Links to what is outside: agents wait for tools of a server that was just started, and nobody else does; how providers
//! answered last is known.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{AGENT, Brain, Sink, armed, asks, card, options, says};
use baton_model::{ConnectionState, OutcomePolicy, RunStatus};
use baton_provider::ProviderFault;
use baton_store::Disk;
use baton_tool::{Tool, ToolSet, ToolSource, Toolbox};
use common::{World, in_time};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

const OTHER: &str = "local.test.other";

/// A server that says what it has when it is told to.
struct Slow {
    tool: Arc<Sink>,
    up: watch::Sender<bool>,
    /// How many wait for it.
    waiting: watch::Sender<usize>,
}

impl ToolSource for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if *self.up.borrow() { vec![Arc::clone(&self.tool) as _] } else { Vec::new() }
    }

    fn pending(&self) -> Option<BoxFuture<'static, ()>> {
        if *self.up.borrow() {
            return None;
        }
        let mut up = self.up.subscribe();
        self.waiting.send_modify(|count| *count += 1);
        Some(async move { drop(up.wait_for(|up| *up).await) }.boxed())
    }
}

fn slow() -> Arc<Slow> {
    let tool = Sink::new("mcp:slow.act", OutcomePolicy::Ask);
    Arc::new(Slow { tool, up: watch::Sender::new(false), waiting: watch::Sender::new(0) })
}

#[tokio::test]
async fn an_agent_waits_for_the_tools_of_a_server_that_was_just_started_and_nobody_else_does() {
    let (brain, slow) = (Brain::new(|_| says("done")), slow());
    let mut options = options(vec![armed(AGENT, &["mcp:slow"]), card(OTHER)], &brain, Vec::new(), 512);
    options.tools = Toolbox::new(ToolSet::default().source(Arc::clone(&slow) as _).unwrap());
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("armed", AGENT)).await;
    world.register(asks("plain", OTHER)).await;
    // Acknowledged, and so durable, though its agent cannot begin.
    let waiting = in_time("the start", world.start("armed")).await;
    in_time("the wait", slow.waiting.subscribe().wait_for(|count| *count > 0)).await.unwrap();
    let plain = world.start("plain").await;
    assert_eq!(in_time("the other", world.ended(&plain)).await.status, RunStatus::Completed);
    assert_eq!((brain.count(), world.status(&waiting).await), (1, RunStatus::Running));
    // One that is cancelled while it waits ends at once.
    let cancelled = world.start("armed").await;
    world.host.cancel(&common::who(), &cancelled, None).await.unwrap();
    assert_eq!(in_time("the cancelled", world.ended(&cancelled)).await.status, RunStatus::Cancelled);

    slow.up.send_replace(true);
    assert_eq!(in_time("the agent", world.ended(&waiting)).await.status, RunStatus::Completed);
    assert_eq!(brain.count(), 2, "each agent was asked once, and the cancelled one never");
    let offered = brain.asked.lock().last().unwrap().semantic.tools.clone();
    assert_eq!(offered.len(), 1, "{offered:?}");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_server_that_agents_wait_for() {
    let (brain, slow) = (Brain::new(|_| says("done")), slow());
    let mut options = options(vec![armed(AGENT, &["mcp:slow"])], &brain, Vec::new(), 512);
    options.tools = Toolbox::new(ToolSet::default().source(Arc::clone(&slow) as _).unwrap());
    let world = World::open(Disk::default(), Arc::default(), options.clone()).await;
    world.register(asks("armed", AGENT)).await;
    let run = world.start("armed").await;
    in_time("the wait", slow.waiting.subscribe().wait_for(|count| *count > 0)).await.unwrap();
    let disk = in_time("the stop", world.stop()).await;
    // The next life finds it where it was.
    slow.up.send_replace(true);
    let world = World::open(disk, Arc::default(), options).await;
    assert_eq!(in_time("the agent", world.ended(&run)).await.status, RunStatus::Completed);
    assert_eq!(brain.count(), 1);
}

#[tokio::test]
async fn how_a_provider_answered_last_is_known() {
    let brain = Brain::moody(|_| Err(ProviderFault::Unavailable("connection refused".to_owned())));
    let world = World::open(Disk::default(), Arc::default(), options(vec![card(AGENT)], &brain, Vec::new(), 512)).await;
    world.register(asks("plain", AGENT)).await;
    let shown = || world.host.connections().into_iter().find(|one| one.name == "brain").unwrap();
    assert_eq!((shown().state, shown().failures), (ConnectionState::Idle, 0));
    let run = world.start("plain").await;
    assert_eq!(in_time("the run", world.ended(&run)).await.status, RunStatus::Failed);
    assert_eq!((shown().state, shown().failures), (ConnectionState::Failed, brain.count() as u32));
    assert!(shown().reason.unwrap().contains("connection refused"));
}
