//! What an agent's model thinks reaches the log while it thinks: in pieces, without secrets, and never twice.

use crate::agents;
use crate::common;
use crate::forking;

use std::sync::Arc;

use agents::agent_audit::Audit;
use agents::{AGENT, Brain, asks, card, options, says};
use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest, RunId, RunStatus, Secret};
use baton_provider::{Delta, DeltaSink, Provider, ProviderFault};
use baton_runtime::{Models, Options, StartRun};
use baton_store::Disk;
use common::{World, in_time, request, who};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

/// What a model does next.
enum Next {
    Thinks(&'static str),
    Answers(&'static str),
}

/// A model that thinks aloud when it is told to.
struct Muse {
    next: Mutex<mpsc::Receiver<Next>>,
    calls: Count,
}

/// How often it was asked.
type Count = std::sync::atomic::AtomicUsize;

impl Muse {
    fn new() -> (Arc<Self>, mpsc::Sender<Next>) {
        let (tell, next) = mpsc::channel(64);
        (Arc::new(Self { next: Mutex::new(next), calls: Count::new(0) }), tell)
    }

    fn calls(&self) -> usize {
        self.calls.load(std::sync::atomic::Ordering::SeqCst)
    }
}

#[async_trait]
impl Provider for Muse {
    async fn call(&self, _: &ModelRequest, ear: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let mut thought = String::new();
        let mut next = self.next.lock().await;
        loop {
            match next.recv().await {
                Some(Next::Thinks(words)) => {
                    thought.push_str(words);
                    words.split_inclusive(' ').for_each(|word| ear.push(Delta::Reasoning(word.to_owned())));
                }
                Some(Next::Answers(text)) => {
                    ear.push(Delta::Text(text.to_owned()));
                    let reasoning = Some(thought).filter(|thought| !thought.is_empty());
                    return Ok(ModelReply { reasoning, ..says(text) });
                }
                None => std::future::pending().await,
            }
        }
    }
}

fn thinking(muse: &Arc<Muse>) -> Options {
    let nobody = Brain::new(|_| says("never asked"));
    Options {
        models: Models::default().with("brain", Arc::clone(muse) as _),
        secrets: vec![Secret::new("key", "sk-live-1234")],
        ..options(vec![card(AGENT)], &nobody, Vec::new(), 512)
    }
}

async fn started(world: &World, verbosity: &str) -> RunId {
    world.register(asks("asks", AGENT)).await;
    let configurable = json!({"reasoningVerbosity": verbosity}).as_object().unwrap().clone();
    let start = StartRun { configurable, ..request("asks") };
    world.host.start_run(&who(), start, None).await.unwrap().run_id
}

/// Pieces and wholes that are on disk, in order.
async fn told(world: &World, run: &RunId) -> Vec<String> {
    let records = world.reader.records(run, 0, 1000).await.unwrap();
    let shown = records.iter().filter_map(|stored| {
        let body: Value = serde_json::from_str(&stored.body).unwrap();
        let payload = &body["payload"];
        match stored.kind.as_str() {
            "agent.reasoning.delta" => Some(format!("{} {}", payload["sequence"], payload["delta"].as_str().unwrap())),
            "agent.reasoned" => Some(format!("= {}", payload["reasoning"].as_str().unwrap())),
            _ => None,
        }
    });
    shown.collect()
}

/// Time passes until so much has been told.
async fn until_told(world: &World, run: &RunId, count: usize) -> Vec<String> {
    in_time("the thought", async {
        loop {
            let told = told(world, run).await;
            if told.len() >= count {
                return told;
            }
            world.clock.advance(50);
            tokio::task::yield_now().await;
        }
    })
    .await
}

async fn asked(muse: &Muse, times: usize) {
    in_time("the call", async {
        while muse.calls() < times {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

async fn audited(world: &World, run: &RunId) {
    let records = world.reader.records(run, 0, 1000).await.unwrap();
    let log: Vec<_> = records.iter().map(|stored| stored.decode(run).unwrap()).collect();
    Audit::check(&log);
}

#[tokio::test]
async fn thoughts_are_on_the_log_before_the_answer_and_a_replay_has_the_same() {
    let (muse, tell) = Muse::new();
    let world = World::open(Disk::default(), Arc::default(), thinking(&muse)).await;
    let run = started(&world, "full").await;
    asked(&muse, 1).await;
    tell.try_send(Next::Thinks("First I look at ")).unwrap();
    tell.try_send(Next::Thinks("the question. ")).unwrap();
    assert_eq!(until_told(&world, &run, 1).await, ["0 First I look at the question. "], "words are gathered");
    assert_eq!(world.status(&run).await, RunStatus::Running, "and the model has not answered yet");
    // The beginning of a secret waits for the rest of it.
    tell.try_send(Next::Thinks("It says sk-li")).unwrap();
    assert_eq!(until_told(&world, &run, 2).await[1], "1 It says ");
    tell.try_send(Next::Thinks("ve-1234 somewhere. ")).unwrap();
    assert_eq!(until_told(&world, &run, 3).await[2], "2 [REDACTED:key] somewhere. ");
    tell.try_send(Next::Thinks("So be it.")).unwrap();
    tell.try_send(Next::Answers("Done.")).unwrap();
    world.completed_with(&run, &json!("Done."), "the end").await;
    let all = told(&world, &run).await;
    let pieces: String = all[..all.len() - 1].iter().map(|piece| piece.split_once(' ').unwrap().1).collect();
    assert_eq!(pieces, "First I look at the question. It says [REDACTED:key] somewhere. So be it.");
    assert_eq!(all.last().unwrap(), &format!("= {pieces}"), "the whole is what the pieces make");
    audited(&world, &run).await;
    // Nobody is asked, and nothing comes out otherwise.
    world.verified(&run, "a thought").await;
    let replay = world.replayed(&run, 0).await;
    assert_eq!((told(&world, &replay).await, muse.calls()), (all, 1));
    // A branch from the middle of a thought asks anew and tells nothing until it knows all.
    let place = world.reader.records(&run, 0, 1000).await.unwrap();
    let place = place.iter().rposition(|stored| stored.kind == "agent.reasoning.delta").unwrap() as u64;
    let branch = world.fork(&run, forking::branch_at(place)).await;
    asked(&muse, 2).await;
    tell.try_send(Next::Thinks("Otherwise.")).unwrap();
    tell.try_send(Next::Answers("Done otherwise.")).unwrap();
    world.completed_with(&branch, &json!("Done otherwise."), "the branch").await;
    let own = told(&world, &branch).await;
    assert!(!own.iter().any(|piece| piece.ends_with(" Otherwise.") && !piece.starts_with('=')), "{own:?}");
    assert_eq!(own.last().unwrap(), "= Otherwise.");
}

#[tokio::test]
async fn a_thought_that_is_over_at_once_is_told_as_a_whole() {
    let (muse, tell) = Muse::new();
    let world = World::open(Disk::default(), Arc::default(), thinking(&muse)).await;
    for (verbosity, expected) in [("summary", vec!["= Quickly done.".to_owned()]), ("off", Vec::new())] {
        tell.try_send(Next::Thinks("Quickly done.")).unwrap();
        tell.try_send(Next::Answers("Done.")).unwrap();
        let run = started(&world, verbosity).await;
        world.completed_with(&run, &json!("Done."), "the end").await;
        assert_eq!(told(&world, &run).await, expected, "{verbosity}");
        audited(&world, &run).await;
    }
}

#[tokio::test]
async fn a_call_that_is_made_again_after_a_crash_does_not_go_on_with_the_thought_of_another() {
    let (muse, tell) = Muse::new();
    let world = World::open(Disk::default(), Arc::default(), thinking(&muse)).await;
    let run = started(&world, "summary").await;
    asked(&muse, 1).await;
    tell.try_send(Next::Thinks("Before the crash, ")).unwrap();
    assert_eq!(until_told(&world, &run, 1).await, ["0 Before the crash, "]);
    let clock = Arc::clone(&world.clock);
    let disk = world.store.disk();
    drop(world);
    let (other, tell) = Muse::new();
    let world = World::open(disk, clock, thinking(&other)).await;
    asked(&other, 1).await;
    tell.try_send(Next::Thinks("After it. ")).unwrap();
    for _ in 0..40 {
        world.clock.advance(250);
        world.settle().await;
    }
    assert_eq!(told(&world, &run).await, ["0 Before the crash, "], "pieces of two answers make no thought");
    tell.try_send(Next::Answers("Done.")).unwrap();
    world.completed_with(&run, &json!("Done."), "the end").await;
    assert_eq!(told(&world, &run).await, ["0 Before the crash, ", "= After it. "]);
    audited(&world, &run).await;
    world.verified(&run, "after a crash").await;
}
