//! Calls that are never heard of again. That is on the log, the tool's policy decides, and where it says so a human
//! does: also after a restart, and once.

use crate::agents;
use crate::common;

use std::sync::Arc;

use agents::{AGENT, Brain, Calls, Sink, UNKNOWN, armed, asks, call_again, options, says, task, told, wants};
use baton_model::event::DrainPolicy;
use baton_model::tool::SafetyTier;
use baton_model::{OutcomePolicy, RunId, RunStatus, ToolSpec, code};
use baton_runtime::{ErrorKind, Options, PauseRun};
use baton_store::Disk;
use baton_testkit::Flow;
use baton_tool::egress::Guard;
use baton_tool::http::{HttpClient, HttpEffect, HttpOptions};
use baton_tool::{NoSecrets, Tool};
use common::{World, in_time, who};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;

const PAY: &str = "mcp:srv.pay";
const NOTE: &str = "mcp:srv.note";

/// Calls every tool it has, once, all in one breath.
fn brain(arguments: Value) -> Arc<Brain> {
    Brain::new(move |request| match told(request) {
        0 => {
            let names: Vec<&str> = request.semantic.tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
            wants(&names.iter().map(|name| (*name, arguments.clone())).collect::<Vec<_>>())
        }
        _ => says("done"),
    })
}

fn with(brain: &Arc<Brain>, sinks: &[&Arc<Sink>]) -> Options {
    let tools: Vec<Arc<dyn Tool>> = sinks.iter().map(|sink| Arc::clone(sink) as _).collect();
    let ids: Vec<String> = sinks.iter().map(|sink| sink.spec().id.clone()).collect();
    let card = armed(AGENT, &ids.iter().map(String::as_str).collect::<Vec<_>>());
    options(vec![card], brain, tools, 512)
}

async fn open(brain: &Arc<Brain>, sinks: &[&Arc<Sink>]) -> World {
    let world = World::open(Disk::default(), Arc::default(), with(brain, sinks)).await;
    world.register(asks("asks", AGENT)).await;
    world
}

async fn done(world: &World, run: &RunId, context: &str) {
    world.completed_with(run, &json!("done"), context).await;
    world.audit_agents(context).await;
    assert!(world.open_interrupts().await.is_empty(), "{context}");
}

#[tokio::test]
async fn a_tool_that_may_be_called_again_is_a_few_times_and_under_one_name() {
    for (lost, calls, error) in [(1, 2, None), (3, 4, None), (9, 4, Some(code::EFFECT_OUTCOME_UNKNOWN.to_owned()))] {
        let (brain, sink) = (brain(json!({})), Sink::new(PAY, OutcomePolicy::Retry));
        sink.lose(lost);
        let world = open(&brain, &[&sink]).await;
        sink.witness.watch(&world.store);
        let run = world.start("asks").await;
        done(&world, &run, "retried").await;
        assert_eq!((sink.count(), sink.names().len()), (calls, 1), "{lost} lost");
        let unknown = lost.min(4);
        let told = Calls { announced: 1, unknown, again: calls - 1, returned: 1, answered: 0 };
        assert_eq!(world.calls_of(&run, PAY).await, told, "{lost} lost");
        assert_eq!(world.outcomes_of(&run).await[0].2, error, "{lost} lost: the model is told");
        sink.witness.satisfied("retried");
    }
}

#[tokio::test]
async fn a_tool_that_counts_as_failed_is_called_once() {
    let (brain, sink) = (brain(json!({})), Sink::new(PAY, OutcomePolicy::Fail));
    sink.lose(1);
    let world = open(&brain, &[&sink]).await;
    let run = world.start("asks").await;
    done(&world, &run, "failed").await;
    assert_eq!(sink.count(), 1);
    assert_eq!(world.calls_of(&run, PAY).await, Calls { announced: 1, unknown: 1, returned: 1, ..Calls::default() });
    assert!(brain.heard().contains(code::EFFECT_OUTCOME_UNKNOWN), "{}", brain.heard());
}

/// The question, its answers, and a restart in between.
#[tokio::test]
async fn a_human_says_what_became_of_a_call() {
    let answers = [
        (json!({"action": "retry"}), 2, "\"did\""),
        (json!({"action": "done", "result": {"receipt": 17}}), 1, "\"receipt\":17"),
        (json!({"action": "fail"}), 1, code::EFFECT_OUTCOME_UNKNOWN),
        (json!("retry"), 2, "\"did\""),
    ];
    for restart in [false, true] {
        for (answer, calls, heard) in &answers {
            let (brain, sink) = (brain(json!({"amount": 5})), Sink::new(PAY, OutcomePolicy::Ask));
            sink.lose(1);
            let mut world = open(&brain, &[&sink]).await;
            let run = world.start("asks").await;
            assert_eq!(world.waiting(&run).await.status, RunStatus::WaitingApproval);
            if restart {
                world = world.next(1, with(&brain, &[&sink])).await;
                world.settle().await;
            }
            let [question] = &world.open_interrupts().await[..] else { panic!("one question") };
            assert_eq!((question.kind.as_str(), question.node.as_str()), (UNKNOWN, "work"));
            assert_eq!(question.data["toolName"], PAY);
            assert_eq!(question.data["inputs"], json!({"amount": 5}));
            assert_eq!(question.data["actions"], json!(["retry", "done", "fail"]));
            for nonsense in [json!({"action": "accept"}), json!({}), json!(7)] {
                assert_eq!(world.resolve(&run, "work", nonsense).await.unwrap_err().kind, ErrorKind::Invalid);
            }
            assert_eq!((sink.count(), world.open_interrupts().await.len()), (1, 1), "nothing happens by itself");
            world.resolve(&run, "work", answer.clone()).await.unwrap();
            let again = world.resolve(&run, "work", answer.clone()).await.unwrap_err();
            assert_eq!(again.kind, ErrorKind::Conflict, "an answer counts once: {again}");
            done(&world, &run, "answered").await;
            assert_eq!((sink.count(), sink.names().len()), (*calls, 1), "{answer}, restart: {restart}");
            assert!(brain.heard().contains(heard), "{answer}: {}", brain.heard());
            assert_eq!(brain.count(), 2, "the model is asked once more, and not before");
        }
    }
}

/// Lost again after a human said to call it again: asked about again.
#[tokio::test]
async fn a_call_that_is_lost_twice_is_asked_about_twice() {
    let (brain, sink) = (brain(json!({})), Sink::new(PAY, OutcomePolicy::Ask));
    sink.lose(2);
    let world = open(&brain, &[&sink]).await;
    let run = world.start("asks").await;
    world.drive_saying(call_again).await;
    done(&world, &run, "twice").await;
    assert_eq!((sink.count(), sink.names().len()), (3, 1));
    let told = Calls { announced: 1, unknown: 2, again: 2, returned: 1, answered: 2 };
    assert_eq!(world.calls_of(&run, PAY).await, told);
}

/// One of two calls is lost and a human is asked. The other one is still under way, and goes on.
#[tokio::test]
async fn a_question_about_one_call_does_not_hang_up_on_another() {
    let (brain, pay, note) =
        (brain(json!({})), Sink::new(PAY, OutcomePolicy::Ask), Sink::new(NOTE, OutcomePolicy::Ask));
    pay.lose(1);
    note.let_return(false);
    let world = open(&brain, &[&pay, &note]).await;
    let run = world.start("asks").await;
    world.waiting(&run).await;
    world.settle().await;
    assert_eq!((note.count(), note.abandoned()), (1, 0), "nobody hung up");
    note.let_return(true);
    world.settle().await;
    assert_eq!(world.calls_of(&run, NOTE).await.returned, 1, "what came back is on the log");
    assert_eq!((world.status(&run).await, brain.count()), (RunStatus::WaitingApproval, 1));
    world.drive_saying(call_again).await;
    done(&world, &run, "two calls").await;
    assert_eq!((pay.count(), note.count()), (2, 1));
    assert_eq!(world.calls_of(&run, NOTE).await.unknown, 0);
}

/// Both are lost: asked about one after the other, each with its own answer.
#[tokio::test]
async fn two_lost_calls_are_two_questions() {
    let (brain, pay, note) =
        (brain(json!({})), Sink::new(PAY, OutcomePolicy::Ask), Sink::new(NOTE, OutcomePolicy::Ask));
    pay.lose(1);
    note.lose(1);
    let world = open(&brain, &[&pay, &note]).await;
    let run = world.start("asks").await;
    let mut asked = Vec::new();
    while !world.status(&run).await.is_terminal() {
        world.settle().await;
        if let Some(question) = world.open_interrupts().await.first() {
            let tool = question.data["toolName"].as_str().unwrap().to_owned();
            let answer = if tool == PAY { json!({"action": "retry"}) } else { json!({"action": "done"}) };
            world.resolve(&run, "work", answer).await.unwrap();
            asked.push(tool);
        }
    }
    asked.sort();
    assert_eq!(asked, [NOTE, PAY]);
    done(&world, &run, "two questions").await;
    assert_eq!((pay.count(), note.count()), (2, 1));
}

/// A place where calls can be looked up. It knows one answer, and gives it when it is let.
struct Place {
    url: String,
    open: watch::Sender<bool>,
    asked: watch::Receiver<Vec<String>>,
}

impl Place {
    async fn new(status: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/payments/1", listener.local_addr().unwrap());
        let (open, asked) = (watch::Sender::new(true), watch::Sender::new(Vec::new()));
        let place = Self { url, open: open.clone(), asked: asked.subscribe() };
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (mut request, mut buffer) = (String::new(), [0; 1024]);
                while !request.ends_with("\r\n\r\n") {
                    let count = stream.read(&mut buffer).await.unwrap();
                    request.push_str(std::str::from_utf8(&buffer[..count]).unwrap());
                }
                asked.send_modify(|asked| asked.push(request));
                let _ = open.subscribe().wait_for(|open| *open).await;
                let answer = format!("HTTP/1.1 {status} x\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        place
    }

    async fn was_asked(&self, times: usize) {
        let _ = self.asked.clone().wait_for(|asked| asked.len() >= times).await;
    }

    fn requests(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }
}

fn looks_up(mut options: Options) -> Options {
    let client = HttpClient::new(HttpOptions::new(Guard::new(true), Arc::new(NoSecrets)));
    options.http = Some(HttpEffect::new(client));
    options
}

/// Where a call can be looked up, nobody guesses and nobody is asked: unless the place does not know either.
#[tokio::test]
async fn a_lost_call_is_looked_up() {
    // What the place answers, how often the tool is called, how many questions a human gets, and what the model hears.
    for (status, calls, questions, heard) in [(200, 1, 0, "\"body\""), (404, 2, 0, "\"did\""), (500, 2, 1, "\"did\"")] {
        let place = Place::new(status).await;
        let (brain, sink) = (brain(json!({"verifyUrl": place.url})), Sink::new(PAY, OutcomePolicy::Verify));
        sink.lose(1);
        let world = World::open(Disk::default(), Arc::default(), looks_up(with(&brain, &[&sink]))).await;
        world.register(asks("asks", AGENT)).await;
        let run = world.start("asks").await;
        let settled = world.wait_for(&run, |view| view.status.is_terminal() || view.status.is_waiting()).await;
        assert_eq!(settled.status.is_waiting(), questions > 0, "{status}");
        if questions > 0 {
            world.drive_saying(call_again).await;
        }
        done(&world, &run, "looked up").await;
        assert_eq!((sink.count(), sink.names().len()), (calls, 1), "{status}");
        assert_eq!(world.calls_of(&run, PAY).await.answered, questions, "{status}");
        assert!(brain.heard().contains(heard), "{status}: {}", brain.heard());
        let [lookup] = &place.requests()[..] else { panic!("{status}: looked up once") };
        assert!(lookup.starts_with("GET /payments/1 "), "{lookup}");
    }
}

/// A look-up says that a call did not take place, but meanwhile the run is paused: it is made when the run goes on, and
/// then it is known that nobody made it before.
#[tokio::test]
async fn what_is_taken_up_while_paused_is_called_when_the_run_goes_on() {
    let place = Place::new(404).await;
    place.open.send_replace(false);
    let (brain, sink) = (brain(json!({"verifyUrl": place.url})), Sink::new(PAY, OutcomePolicy::Verify));
    sink.lose(1);
    let world = World::open(Disk::default(), Arc::default(), looks_up(with(&brain, &[&sink]))).await;
    world.register(asks("asks", AGENT)).await;
    let run = world.start("asks").await;
    in_time("the look-up", place.was_asked(1)).await;
    let pause = PauseRun { reason: None, drain: DrainPolicy::Immediate };
    world.host.pause(&who(), &run, pause).await.unwrap();
    let mut log = world.host.subscribe(&run);
    place.open.send_replace(true);
    in_time("its answer", async {
        while world.calls_of(&run, PAY).await.again == 0 {
            log.changed().await;
        }
    })
    .await;
    world.settle().await;
    assert_eq!((world.status(&run).await, sink.count()), (RunStatus::Paused, 1), "a paused run calls nobody");
    world.host.resume(&who(), &run, None).await.unwrap();
    done(&world, &run, "resumed").await;
    assert_eq!((sink.count(), place.requests().len()), (2, 1), "looked up once");
    assert_eq!(world.calls_of(&run, PAY).await.unknown, 1, "no doubt about what nobody has begun");
}

/// The node's time is up while a call is under way that may have changed the world: nobody tries it all again.
#[tokio::test]
async fn a_node_that_runs_out_of_time_does_not_call_again_by_itself() {
    let timed = |id: &str| {
        let mut more = task("Do it.");
        more["settings"] = json!({"timeout": 500, "maxRetries": 2, "retryDelayMs": 10});
        Flow::new(id).node_with("work", "vendor.baton.agent", json!({"agentId": AGENT}), more)
    };
    let (model, sink) = (brain(json!({})), Sink::new(PAY, OutcomePolicy::Ask));
    sink.let_return(false);
    let world = World::open(Disk::default(), Arc::default(), with(&model, &[&sink])).await;
    world.register(timed("timed")).await;
    let run = world.start("timed").await;
    in_time("the call", sink.called(1)).await;
    world.settle().await;
    world.clock.advance(501);
    world.waiting(&run).await;
    let [question] = &world.open_interrupts().await[..] else { panic!("one question") };
    assert_eq!(question.kind, UNKNOWN);
    assert_eq!((sink.count(), world.kinds_of(&run, "node.retried").await.len()), (1, 0));
    // A human may take longer than the node.
    world.clock.advance(3_600_000);
    world.settle().await;
    assert_eq!(world.status(&run).await, RunStatus::WaitingApproval);
    sink.let_return(true);
    world.resolve(&run, "work", json!({"action": "done"})).await.unwrap();
    done(&world, &run, "out of time").await;
    assert_eq!(sink.count(), 1);

    // One that only reads does no harm: the node is tried again as it says, and goes on with what is on its log. That the
    // call came to nothing is told to the model, which may call again.
    let reads = ToolSpec { tier: SafetyTier::Read, ..Sink::spec(PAY, OutcomePolicy::Retry) };
    let (model, sink) = (brain(json!({})), Sink::of(reads));
    sink.let_return(false);
    let world = World::open(Disk::default(), Arc::default(), with(&model, &[&sink])).await;
    world.register(timed("timed")).await;
    let run = world.start("timed").await;
    in_time("the call", sink.called(1)).await;
    world.settle().await;
    world.clock.advance(501);
    world.settle().await;
    assert_eq!((sink.abandoned(), world.kinds_of(&run, "node.retried").await.len()), (1, 1));
    sink.let_return(true);
    world.clock.advance(11);
    done(&world, &run, "tried again").await;
    assert_eq!((sink.count(), world.kinds_of(&run, "agent.toolReturned").await.len()), (1, 1));
}
