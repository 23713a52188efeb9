//! Runners: who may be one, which steps they get, and what becomes of a step whatever becomes of the runner, the host or
//! both.
#![allow(unreachable_pub)]

use crate::agents;
use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;

use agents::{AGENT, Brain, UNKNOWN, armed, asks, options, says, told, wants};
use baton_model::tool::SafetyTier;
use baton_model::{Principal, RunId, RunStatus, Scope, Scopes, TenantId, code};
use baton_runtime::{
    DispatchFrame, ErrorKind, NewToken, Options, ReportedState, ResultFrame, RunnerBearer, RunnerCapabilities,
    RunnerRegistration, RunnerReport, RunnerReports, RunnerStream, RunnerTools, Told,
};
use baton_store::Disk;
use baton_tool::runner::{PoolSettings, RunnerToolSettings};
use common::{World, in_time, tenant, who};
use serde_json::{Map, Value, json};

pub const TOOL: &str = "runner:py.work";
const LEASE_MS: u64 = 30_000;
const WAIT_MS: u64 = 120_000;

/// Calls the tool once, and says what came of it.
pub fn brain() -> Arc<Brain> {
    Brain::new(|request| match told(request) {
        0 if request.semantic.tools.is_empty() => says("no tools"),
        0 => wants(&[(TOOL, json!({"n": 1}))]),
        _ => says("done"),
    })
}

pub fn with(brain: &Arc<Brain>) -> Options {
    options(vec![armed(AGENT, &["runner:py"])], brain, Vec::new(), 512)
}

pub fn tiered(brain: &Arc<Brain>, tier: SafetyTier) -> Options {
    let said = RunnerToolSettings { tier: Some(tier), ..RunnerToolSettings::default() };
    let pool = PoolSettings { tools: [("work".to_owned(), said)].into(), ..PoolSettings::default() };
    Options { runners: BTreeMap::from([("py".to_owned(), pool)]), ..with(brain) }
}

pub async fn open(options: Options) -> World {
    let world = World::open(Disk::default(), Arc::default(), options).await;
    world.register(asks("asks", AGENT)).await;
    world
}

/// A runner as a program would be one.
pub struct Hand {
    pub bearer: RunnerBearer,
    pub id: String,
    pub stream: Option<RunnerStream>,
}

pub fn tools(concurrency: usize) -> RunnerTools {
    let (pool, version) = ("py".to_owned(), Some("1.2.0".to_owned()));
    let tool = json!([{"name": "work", "inputSchema": {"type": "object"}}]);
    RunnerTools { pool, version, max_concurrency: concurrency, tools: serde_json::from_value(tool).unwrap() }
}

pub async fn token(world: &World, who: &Principal) -> (RunnerBearer, String) {
    let new = NewToken { name: "test".to_owned(), subject: None, expires_at: None };
    let (_, token) = world.host.new_runner_token(who, new).await.unwrap();
    (world.host.runner_bearer(&token).await.unwrap().unwrap(), token)
}

impl Hand {
    pub async fn signed_in(world: &World, who: &Principal, id: &str, concurrency: usize) -> Self {
        let (bearer, _) = token(world, who).await;
        let hand = Self { bearer, id: id.to_owned(), stream: None };
        assert!(hand.sign_in(world).await);
        world.host.put_runner_tools(&hand.bearer, id, tools(concurrency)).await.unwrap();
        hand
    }

    pub async fn new(world: &World, who: &Principal, id: &str, concurrency: usize) -> Self {
        let mut hand = Self::signed_in(world, who, id, concurrency).await;
        hand.connect(world, None).await;
        hand
    }

    pub async fn sign_in(&self, world: &World) -> bool {
        let capabilities = RunnerCapabilities::default();
        let (runner_id, subject) = (self.id.clone(), self.bearer.owner.subject.clone());
        let frame = RunnerRegistration { runner_id, subject, capabilities };
        world.host.register_runner(&self.bearer, frame).await.unwrap()
    }

    pub async fn connect(&mut self, world: &World, after: Option<u64>) {
        self.stream = Some(world.host.runner_stream(&self.bearer, &self.id, after).await.unwrap());
    }

    /// The next thing that it is told.
    pub async fn next(&mut self) -> Told {
        let stream = self.stream.as_mut().unwrap();
        in_time("a runner is told something", stream.next()).await.unwrap()
    }

    pub async fn step(&mut self) -> DispatchFrame {
        match self.next().await {
            Told::Dispatch { frame, context } => {
                assert_eq!((&context.run_id, &context.step_id), (&frame.run_id, &frame.step_id));
                *frame
            }
            other => panic!("a step, not {other:?}"),
        }
    }

    /// A step, and what its program may show for it.
    pub async fn step_with_token(&mut self) -> (DispatchFrame, String) {
        match self.next().await {
            Told::Dispatch { frame, context } => {
                let token = context.step_token.expect("every step of a run has a token");
                (*frame, token.reveal().to_owned())
            }
            Told::Cancel { .. } => Box::pin(self.step_with_token()).await,
            other => panic!("a step, not {other:?}"),
        }
    }

    pub fn nothing(&mut self) {
        assert_eq!(self.stream.as_mut().unwrap().ready(), None);
    }

    pub async fn answer(&self, world: &World, step: &DispatchFrame, output: Value) -> Result<bool, &'static str> {
        let output: Map<String, Value> = output.as_object().unwrap().clone();
        let DispatchFrame { run_id, step_id, seq, .. } = step.clone();
        let frame = ResultFrame { run_id, step_id, seq, output };
        world.host.runner_result(&self.bearer, &self.id, frame).await.map_err(|error| error.code)
    }

    pub async fn report(&self, world: &World, step: &DispatchFrame, state: ReportedState) -> baton_runtime::RunnerWork {
        let DispatchFrame { run_id, step_id, seq, .. } = step.clone();
        let (progress, total, message, reason) = (Some(1.0), Some(4.0), Some("a quarter".to_owned()), None);
        let one = RunnerReport { run_id, step_id, seq, state, progress, total, message, reason };
        let reports = RunnerReports { draining: false, reports: vec![one] };
        world.host.runner_report(&self.bearer, &self.id, reports).await.unwrap()
    }

    pub async fn beat(&self, world: &World) -> baton_runtime::RunnerWork {
        world.host.runner_report(&self.bearer, &self.id, RunnerReports::default()).await.unwrap()
    }
}

pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Moves time on, a second at a time, so that everything that looks now and then looks.
pub async fn pass(world: &World, millis: u64) {
    for _ in 0..millis.div_ceil(1000) {
        world.clock.advance(1000);
        world.settle().await;
    }
}

pub async fn done(world: &World, run: &RunId, context: &str) {
    world.completed_with(run, &json!("done"), context).await;
    world.audit_agents(context).await;
}

fn ann() -> Principal {
    Principal { acts_for: Some("ann".to_owned()), ..who() }
}

#[tokio::test]
async fn a_runner_does_a_step_and_the_log_has_what_it_says() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 4).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    assert_eq!((&step.run_id, step.tool.as_deref(), &step.inputs["n"]), (&run, Some("py.work"), &json!(1)));
    assert_eq!(hand.beat(&world).await.leases.len(), 1);
    assert_eq!(hand.answer(&world, &step, text("well done")).await, Ok(false));
    done(&world, &run, "answered").await;
    assert!(brain.heard().contains("well done"), "{}", brain.heard());
    assert_eq!(hand.answer(&world, &step, text("well done")).await, Ok(true), "said twice");
    assert_eq!(hand.answer(&world, &step, text("badly")).await, Err(code::RESULT_CONFLICT));
    assert_eq!(hand.beat(&world).await.leases, []);
    assert_eq!(world.calls_of(&run, TOOL).await.returned, 1);
    let kinds = world.kinds_of(&run, "baton.").await;
    assert!(kinds.is_empty(), "nothing of runners is on the log: {kinds:?}");
}

#[tokio::test]
async fn only_runners_of_the_runs_own_subject_are_told() {
    let brain = brain();
    let world = open(with(&brain)).await;
    world.host.register_workflow(&TenantId::new("rival"), asks("asks", AGENT).build()).await.unwrap();
    let mut others = vec![
        Hand::new(&world, &who(), "r1", 4).await,
        Hand::new(&world, &common::other(), "r1", 4).await,
        Hand::new(&world, &Principal { acts_for: Some("bob".to_owned()), ..who() }, "r1", 4).await,
    ];
    // No runner of ann's: an agent of hers has no such tool.
    let without = world.host.start_run(&ann(), common::request("asks"), None).await.unwrap().run_id;
    world.completed_with(&without, &json!("no tools"), "no runner").await;
    let mut hers = Hand::new(&world, &ann(), "r1", 4).await;
    let run = world.host.start_run(&ann(), common::request("asks"), None).await.unwrap().run_id;
    let step = hers.step().await;
    for other in &mut others {
        other.nothing();
        assert_eq!(other.answer(&world, &step, text("mine")).await, Err(code::STEP_NOT_LEASED));
    }
    assert_eq!(hers.answer(&world, &step, text("hers")).await, Ok(false));
    done(&world, &run, "hers").await;
    assert_eq!(world.snapshot(&run).await.owner.subject.as_deref(), Some("ann"));
    assert_eq!(world.host.runners(&ann()).len(), 1);
    assert_eq!(world.host.runners(&Principal { acts_for: Some("eve".to_owned()), ..who() }), []);
}

#[tokio::test]
async fn a_step_waits_for_a_runner_says_so_once_and_gives_up() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 4).await;
    hand.stream = None;
    let run = world.start("asks").await;
    world.settle().await;
    assert_eq!(world.kinds_of(&run, "baton.").await, [""; 0]);
    pass(&world, 5_000).await;
    assert_eq!(world.kinds_of(&run, "baton.").await, ["baton.runner.waiting"]);
    assert_eq!(world.status(&run).await, RunStatus::Running);
    pass(&world, WAIT_MS).await;
    done(&world, &run, "given up").await;
    assert_eq!(world.outcomes_of(&run).await[0].2.as_deref(), Some(code::RUNNER_UNAVAILABLE));
    assert_eq!(world.kinds_of(&run, "baton.").await, ["baton.runner.waiting"]);
    // One that comes back in time gets it.
    let run = world.start("asks").await;
    pass(&world, 60_000).await;
    hand.connect(&world, None).await;
    let step = hand.step().await;
    assert_eq!(hand.answer(&world, &step, text("late but well")).await, Ok(false));
    done(&world, &run, "came back").await;
}

#[tokio::test]
async fn a_step_whose_runner_falls_silent_is_unknown_and_a_late_result_settles_it() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 4).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    pass(&world, LEASE_MS - 2_000).await;
    hand.beat(&world).await;
    pass(&world, LEASE_MS - 2_000).await;
    assert_eq!(world.status(&run).await, RunStatus::Running, "it said that it lives");
    pass(&world, LEASE_MS).await;
    assert_eq!(world.waiting(&run).await.status, RunStatus::WaitingApproval, "a tool that writes");
    let [question] = &world.open_interrupts().await[..] else { panic!("one question") };
    assert_eq!(question.kind, UNKNOWN);
    assert_eq!(hand.answer(&world, &step, text("at last")).await, Ok(false));
    done(&world, &run, "late").await;
    assert!(brain.heard().contains("at last"));
    assert!(world.open_interrupts().await.is_empty());
    assert_eq!(hand.answer(&world, &step, text("at last")).await, Ok(true));
    assert_eq!(hand.answer(&world, &step, text("other")).await, Err(code::RESULT_CONFLICT));
}

#[tokio::test]
async fn a_tool_that_only_reads_is_called_again_under_the_same_step_and_another_number() {
    let brain = brain();
    let world = open(tiered(&brain, SafetyTier::Read)).await;
    let mut first = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let lost = first.step().await;
    first.stream = None;
    let mut second = Hand::new(&world, &who(), "r2", 1).await;
    pass(&world, LEASE_MS + 1_000).await;
    let again = second.step().await;
    assert_eq!((&again.run_id, &again.step_id, &again.inputs), (&lost.run_id, &lost.step_id, &lost.inputs));
    // Both answer: the first counts.
    assert_eq!(first.answer(&world, &lost, text("one")).await, Ok(false));
    assert_eq!(second.answer(&world, &again, text("two")).await, Err(code::RESULT_CONFLICT));
    done(&world, &run, "retried").await;
    assert!(brain.heard().contains("one"));
    assert_eq!(world.calls_of(&run, TOOL).await.again, 1);
}

#[tokio::test]
async fn what_a_runner_gives_back_undone_goes_to_the_next() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut first = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = first.step().await;
    let draining = RunnerReports { draining: true, reports: Vec::new() };
    assert!(world.host.runner_report(&first.bearer, "r1", draining).await.unwrap().drain);
    first.report(&world, &step, ReportedState::Released).await;
    let mut second = Hand::new(&world, &who(), "r2", 1).await;
    let again = second.step().await;
    assert_eq!(again.step_id, step.step_id);
    assert_eq!(first.next().await, Told::Drain);
    first.nothing();
    assert_eq!(second.answer(&world, &again, text("done")).await, Ok(false));
    done(&world, &run, "released").await;
    assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0, "nothing was in doubt");
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_number_and_a_second_one_ends_the_first() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 2).await;
    for _ in 0..3 {
        world.start("asks").await;
    }
    let (one, two) = (hand.step().await, hand.step().await);
    assert!(one.seq < two.seq);
    world.settle().await;
    hand.nothing();
    let mut old = hand.stream.take().unwrap();
    hand.connect(&world, Some(one.seq)).await;
    assert_eq!(old.next().await, Some(Told::Superseded));
    assert_eq!(old.next().await, None);
    drop(old);
    assert_eq!(hand.step().await, two, "the same lease, sent again");
    hand.nothing();
    assert_eq!(hand.answer(&world, &one, text("done")).await, Ok(false));
    let three = hand.step().await;
    assert!(three.seq > two.seq && three.run_id != one.run_id);
    hand.connect(&world, None).await;
    assert_eq!((hand.step().await, hand.step().await), (two, three), "one without a memory gets all it has");
}

#[tokio::test]
async fn a_step_that_is_with_a_runner_stays_with_it_over_a_restart() {
    let brain = brain();
    let mut world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    hand.stream = None;
    world = world.next(1, with(&brain)).await;
    world.settle().await;
    hand.connect(&world, Some(step.seq)).await;
    world.settle().await;
    hand.nothing();
    assert_eq!(hand.answer(&world, &step, text("through it all")).await, Ok(false));
    done(&world, &run, "restarted").await;
    assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0);
    // The next one has a number of its own.
    let run = world.start("asks").await;
    let next = hand.step().await;
    assert!(next.run_id == run && next.seq > step.seq, "{next:?}");
}

#[tokio::test]
async fn a_step_whose_runner_and_host_both_died_is_unknown() {
    let brain = brain();
    let mut world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    hand.step().await;
    hand.stream = None;
    world = world.next(1, with(&brain)).await;
    pass(&world, LEASE_MS + 2_000).await;
    assert_eq!(world.waiting(&run).await.status, RunStatus::WaitingApproval);
    // Told to make it again, the host waits for a runner.
    world.resolve(&run, "work", json!({"action": "retry"})).await.unwrap();
    let mut fresh = Hand::new(&world, &who(), "r2", 1).await;
    let again = fresh.step().await;
    assert_eq!(fresh.answer(&world, &again, text("done")).await, Ok(false));
    done(&world, &run, "both died").await;
}

#[tokio::test]
async fn one_that_no_runner_had_is_queued_again_after_a_restart() {
    let brain = brain();
    let mut world = open(with(&brain)).await;
    let mut hand = Hand::signed_in(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    world.settle().await;
    world = world.next(1, with(&brain)).await;
    world.settle().await;
    hand.connect(&world, None).await;
    let step = hand.step().await;
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    done(&world, &run, "queued").await;
    assert_eq!(world.calls_of(&run, TOOL).await.unknown, 0);
}

#[tokio::test]
async fn a_run_that_is_cancelled_tells_its_runner_and_does_not_wait() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    let next = world.start("asks").await;
    world.host.cancel(&who(), &run, None).await.unwrap();
    world.settle().await;
    assert_eq!(world.status(&run).await, RunStatus::Cancelled);
    assert_eq!(hand.next().await, Told::Cancel { run: run.clone(), step: step.step_id.clone() });
    assert_eq!(hand.beat(&world).await.cancel.len(), 1);
    hand.nothing();
    assert_eq!(hand.answer(&world, &step, text("too late")).await, Err(code::RUN_TERMINAL));
    assert_eq!(hand.step().await.run_id, next, "its place is free");
}

#[tokio::test]
async fn revoking_a_token_ends_the_stream_and_what_it_had_is_lost() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let (bearer, token) = token(&world, &who()).await;
    let mut hand = Hand { bearer, id: "r1".to_owned(), stream: None };
    assert!(hand.sign_in(&world).await && !hand.sign_in(&world).await);
    world.host.put_runner_tools(&hand.bearer, "r1", tools(1)).await.unwrap();
    hand.connect(&world, None).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    let narrow = Principal { scopes: Scopes::of([Scope::RunnersManage]), ..ann() };
    let id = hand.bearer.token.clone();
    assert_eq!(world.host.revoke_runner_token(&narrow, &id).await.unwrap_err().kind, ErrorKind::NotFound);
    world.host.revoke_runner_token(&who(), &id).await.unwrap();
    assert_eq!(hand.next().await, Told::Gone);
    assert_eq!(world.host.runner_bearer(&token).await.unwrap(), None);
    assert_eq!(world.waiting(&run).await.status, RunStatus::WaitingApproval);
    assert_eq!(world.host.runners(&who()), []);
    // What somebody kept of it opens nothing: its owner is known by the token alone.
    assert!(world.host.runner_stream(&hand.bearer, "r1", None).await.is_err());
    drop(step);
}

#[tokio::test]
async fn a_token_ends_by_itself() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let now = baton_runtime::Clock::now(&*world.clock);
    let new = |expires_at| NewToken { name: "short".to_owned(), subject: None, expires_at };
    assert_eq!(world.host.new_runner_token(&who(), new(Some(now))).await.unwrap_err().kind, ErrorKind::Invalid);
    let (_, token) = world.host.new_runner_token(&who(), new(Some(now.plus_millis(5_000)))).await.unwrap();
    let bearer = world.host.runner_bearer(&token).await.unwrap().unwrap();
    let mut hand = Hand { bearer, id: "r1".to_owned(), stream: None };
    hand.sign_in(&world).await;
    hand.connect(&world, None).await;
    pass(&world, 6_000).await;
    assert_eq!(hand.next().await, Told::Gone);
    assert_eq!(world.host.runner_bearer(&token).await.unwrap(), None);
    assert_eq!(world.host.runner_tokens(&who()), []);
}

#[tokio::test]
async fn a_token_for_somebody_else_needs_a_scope_of_its_own() {
    let world = World::new().await;
    let new = |subject: &str| NewToken { name: "x".to_owned(), subject: Some(subject.to_owned()), expires_at: None };
    assert_eq!(world.host.new_runner_token(&who(), new("bob")).await.unwrap_err().kind, ErrorKind::Forbidden);
    let any = Principal { scopes: Scopes::of([Scope::RunnersManage, Scope::RunnersManageAny]), ..who() };
    let (made, token) = world.host.new_runner_token(&any, new("bob")).await.unwrap();
    assert_eq!(made.subject, "bob");
    assert!(!format!("{:?}", world.store.disk()).contains(&token), "only its hash is kept");
    assert_eq!((world.host.runner_tokens(&who()).len(), world.host.runner_tokens(&any).len()), (0, 1));
}

#[tokio::test]
async fn steps_that_wait_are_bounded_and_taken_in_turn() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::signed_in(&world, &who(), "r1", 3).await;
    let mut runs = Vec::new();
    for _ in 0..1_000 {
        runs.push(world.start("asks").await);
    }
    world.settle().await;
    let refused = world.start("asks").await;
    done(&world, &refused, "one too many").await;
    assert_eq!(world.outcomes_of(&refused).await[0].2.as_deref(), Some(code::RATE_LIMITED));
    hand.connect(&world, None).await;
    let mut told = Vec::new();
    for _ in 0..runs.len() {
        let step = hand.step().await;
        assert!(hand.beat(&world).await.leases.len() <= 3);
        assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
        told.push(step.run_id);
    }
    assert_eq!(told, runs, "first come, first served");
    for run in &runs {
        assert_eq!(world.ended(run).await.status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_thousand_runners_share_the_work() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let (bearer, _) = token(&world, &who()).await;
    let mut hands = Vec::new();
    for n in 0..1_000 {
        let mut hand = Hand { bearer: bearer.clone(), id: format!("r{n}"), stream: None };
        hand.sign_in(&world).await;
        world.host.put_runner_tools(&bearer, &hand.id, tools(1)).await.unwrap();
        hand.connect(&world, None).await;
        hands.push(hand);
    }
    let one_more = Hand { bearer: bearer.clone(), id: "one more".to_owned(), stream: None };
    let frame = RunnerRegistration {
        runner_id: one_more.id.clone(),
        subject: bearer.owner.subject.clone(),
        capabilities: RunnerCapabilities::default(),
    };
    assert_eq!(world.host.register_runner(&bearer, frame).await.unwrap_err().kind, ErrorKind::TooMany);
    for _ in 0..100 {
        world.start("asks").await;
    }
    world.settle().await;
    let mut busy = 0;
    for hand in &mut hands {
        if let Some(Told::Dispatch { frame, .. }) = hand.stream.as_mut().unwrap().ready() {
            busy += 1;
            assert_eq!(hand.answer(&world, &frame, text("done")).await, Ok(false));
            hand.nothing();
        }
    }
    assert_eq!(busy, 100, "one each");
}

#[tokio::test]
async fn progress_is_told_at_most_once_a_second_and_keeps_the_step_alive() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    for _ in 0..5 {
        hand.report(&world, &step, ReportedState::Progress).await;
    }
    world.settle().await;
    assert_eq!(world.kinds_of(&run, "baton.").await, ["baton.tool.progress"]);
    for _ in 0..4 {
        pass(&world, LEASE_MS - 5_000).await;
        hand.report(&world, &step, ReportedState::Progress).await;
    }
    world.settle().await;
    assert_eq!(world.kinds_of(&run, "baton.").await.len(), 5);
    assert_eq!(hand.answer(&world, &step, text("done")).await, Ok(false));
    done(&world, &run, "progress").await;
}

#[tokio::test]
async fn too_much_is_refused_and_secrets_are_not_sent() {
    let brain = Brain::new(|request| match told(request) {
        0 => wants(&[(TOOL, json!({"key": {"$secret": "DB"}}))]),
        1 => wants(&[(TOOL, json!({"text": "x".repeat(1024 * 1024)}))]),
        2 => wants(&[(TOOL, json!({"n": 1}))]),
        _ => says("done"),
    });
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    let large = json!({"content": [], "structuredContent": {"text": "x".repeat(5 * 1024 * 1024)}});
    assert_eq!(hand.answer(&world, &step, large).await, Err(code::PAYLOAD_TOO_LARGE));
    assert_eq!(hand.answer(&world, &step, json!({"isError": true, "content": []})).await, Ok(false));
    done(&world, &run, "refused").await;
    let codes: Vec<Option<String>> = world.outcomes_of(&run).await.into_iter().map(|outcome| outcome.2).collect();
    let expected = [code::CREDENTIAL_FORBIDDEN, code::PAYLOAD_TOO_LARGE, code::MCP_TOOL_INVOCATION_FAILED];
    assert_eq!(codes, expected.map(|code| Some(code.to_owned())));
}

#[tokio::test]
async fn a_result_for_a_step_that_was_never_given_is_refused() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let hand = Hand::new(&world, &who(), "r1", 1).await;
    let mut other = Hand::signed_in(&world, &who(), "r2", 1).await;
    let made_up = |run: &str, seq| DispatchFrame {
        run_id: RunId::new(run),
        step_id: "s".to_owned(),
        seq,
        kind: "tool",
        provider: None,
        model: None,
        tool: None,
        inputs: Map::new(),
    };
    assert_eq!(hand.answer(&world, &made_up("run_x", 0), text("x")).await, Err(code::STEP_NOT_LEASED));
    drop(hand);
    let run = world.start("asks").await;
    other.connect(&world, None).await;
    let step = other.step().await;
    let wrong = DispatchFrame { seq: step.seq + 1, ..step.clone() };
    assert_eq!(other.answer(&world, &wrong, text("x")).await, Err(code::STEP_NOT_LEASED), "another number");
    assert_eq!(other.answer(&world, &step, text("x")).await, Ok(false));
    done(&world, &run, "given").await;
}

#[tokio::test]
async fn a_replay_asks_no_runner() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let mut hand = Hand::new(&world, &who(), "r1", 1).await;
    let run = world.start("asks").await;
    let step = hand.step().await;
    assert_eq!(hand.answer(&world, &step, text("recorded")).await, Ok(false));
    done(&world, &run, "source").await;
    // The audit goes through the log again, and nobody was told.
    world.settle().await;
    hand.nothing();
}

/// The host dies after each commit in turn, and the runner goes on as if nothing had happened.
#[tokio::test]
async fn a_host_that_dies_after_any_commit_neither_loses_nor_repeats_a_step() {
    let mut reached_the_end = false;
    for dies_at in 1..40 {
        let brain = brain();
        let mut world = open(with(&brain)).await;
        let mut hand = Hand::new(&world, &who(), "r1", 1).await;
        let commits = world.store.commits();
        let run = world.try_start("asks").await.unwrap().run_id;
        let mut made: Option<DispatchFrame> = None;
        let mut died = false;
        let mut begun = 0;
        for _ in 0..400 {
            tokio::task::yield_now().await;
            if !died && world.store.commits() >= commits + dies_at {
                died = true;
                hand.stream = None;
                world = world.next(dies_at, with(&brain)).await;
                hand.connect(&world, made.as_ref().map(|step| step.seq)).await;
                world.settle().await;
            }
            match hand.stream.as_mut().unwrap().ready() {
                Some(Told::Dispatch { frame, .. }) => {
                    begun += 1;
                    made = Some(*frame);
                }
                Some(other) => panic!("{dies_at}: {other:?}"),
                None => {}
            }
            if let Some(step) = &made {
                // Said until it is taken, as bridges do.
                let _ = hand.answer(&world, step, text("done")).await;
            }
            if world.reader.run(&run).await.unwrap().is_some_and(|row| row.status.is_terminal()) {
                break;
            }
        }
        world.settle().await;
        done(&world, &run, &format!("died after commit {dies_at}")).await;
        assert_eq!(begun, 1, "died after commit {dies_at}");
        if !died {
            reached_the_end = true;
            break;
        }
    }
    assert!(reached_the_end);
}

#[tokio::test]
async fn a_pool_may_be_asked_for_by_version_and_the_newest_runner_says_what_tools_take() {
    let brain = brain();
    let world = open(with(&brain)).await;
    let _old = Hand::new(&world, &who(), "old", 1).await;
    world.clock.advance(1_000);
    let new = Hand::signed_in(&world, &who(), "new", 1).await;
    let listed =
        json!([{"name": "work", "description": "newer", "inputSchema": {"type": "object", "required": ["n"]}}]);
    let newer = RunnerTools { tools: serde_json::from_value(listed).unwrap(), ..tools(1) };
    world.host.put_runner_tools(&new.bearer, "new", newer).await.unwrap();
    let tenant = tenant();
    let offered = world.host.options().tools.offered(&tenant, &["runner:py".to_owned()]);
    assert_eq!(offered.iter().map(|tool| tool.description.as_str()).collect::<Vec<_>>(), ["newer"]);
    world.host.sign_off_runner(&new.bearer, "new").await.unwrap();
    let offered = world.host.options().tools.offered(&tenant, &[TOOL.to_owned()]);
    assert_eq!(offered.iter().map(|tool| tool.description.as_str()).collect::<Vec<_>>(), [""]);
}
