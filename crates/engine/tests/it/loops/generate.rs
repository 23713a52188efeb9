//! Random supervisor loops, and random worlds around them.

use baton_model::event::{DrainPolicy, Escalation, EscalationInterrupt};
use baton_model::{Decision, RunStatus};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::insight::{self, Insight, Look};
use crate::support::deeds::{Deed, deed};
use crate::support::script::{Reply, reply};
use crate::support::workflow;

/// One loop: what its supervisor will say, how its dispatch acts on it, and the run's own bounds.
#[derive(Clone, Debug)]
pub struct Case {
    /// Turn by turn, whatever the world looks like.
    pub plan: Vec<Decision>,
    /// Instead of a plan: the first rule that holds decides, and none means the end.
    pub rules: Option<Vec<(Look, Decision)>>,
    pub supervisor: Value,
    pub dispatch: Value,
    /// 0: no edges, 1: forward, 2: forward and back.
    pub edges: usize,
    /// How often a node that fails is tried again.
    pub retries: u32,
    pub max_loop_iterations: u64,
    pub max_fan_out: u32,
    pub escalation: Escalation,
}

impl Case {
    pub fn definition(&self) -> Value {
        let edges = [("sup", "disp", Value::Null), ("disp", "sup", Value::Null)];
        let mut definition = workflow(
            &[
                ("sup", "core.orchestrator.supervisor", self.supervisor.clone()),
                ("disp", "core.dispatch", self.dispatch.clone()),
            ],
            &edges[..self.edges],
        );
        for node in definition["nodes"].as_array_mut().unwrap() {
            node["settings"] = json!({"maxRetries": self.retries, "retryDelayMs": 10});
        }
        definition
    }

    /// What the supervisor says to what it sees.
    pub fn planned(&self, insight: &Insight) -> Decision {
        let said = match &self.rules {
            None => self.plan.get(insight.turn as usize - 1),
            Some(rules) => rules.iter().find(|(look, _)| look.holds(insight)).map(|(_, decision)| decision),
        };
        said.cloned().unwrap_or_else(exhausted)
    }

    /// How sure the agent behind this turn's decision is. The end of an exhausted script is nobody's opinion.
    pub fn agent_confidence(&self, turn: u64) -> Option<f64> {
        let scripted = self.supervisor["mockDispatchPlan"].as_array().map_or(1, Vec::len) as u64;
        self.supervisor["mockConfidence"].as_f64().filter(|_| self.rules.is_some() || turn <= scripted)
    }
}

fn exhausted() -> Decision {
    Decision::Terminate { reason: Some("plan-exhausted".to_owned()), confidence: None }
}

#[derive(Clone, Debug)]
pub enum Step {
    Advance(usize),
    Wait(u64),
    NextTimer,
    /// Does for one child what the run wants done.
    Serve(Index, Fate),
    /// Says something about any child there ever was.
    Tell(Index, News),
    Answer(Index, Answer),
    /// Memory or the workspace changes.
    Happen(Deed),
    /// From now on questions about memory and workspace are answered at once, or only when it is somebody's turn.
    Prompt(bool),
    /// Answers any question that was ever asked.
    NodeRequest(Index, Reply),
    Cancel,
    Pause(DrainPolicy),
    Resume,
}

/// How a child that is served fares.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    Good,
    Bad,
    Cancelled,
    Waits(RunStatus),
}

#[derive(Clone, Copy, Debug)]
pub enum News {
    Started,
    Refused,
    Status(RunStatus),
    Ended(RunStatus),
}

#[derive(Clone, Debug)]
pub enum Answer {
    Accept,
    Edit(Decision),
    Refine,
    Reject,
    Bad(Value),
}

/// Around the floor of 0.5, and no opinion.
fn confidence() -> impl Strategy<Value = Option<f64>> {
    select(vec![None, None, None, None, Some(0.0), Some(0.499), Some(0.5), Some(0.501), Some(1.0)])
}

fn decision() -> impl Strategy<Value = Decision> {
    let worker = select(vec!["a", "b", "c", "https://far.example/workflows/d"]);
    let next = (proptest::collection::vec(worker, 1..5), confidence(), 0_usize..12).prop_map(|(ids, sure, inputs)| {
        let mut decision = json!({"kind": "next-worker", "nextWorkerIds": ids});
        let count = match inputs {
            0 => Some(ids.len() + 1),
            1..=3 => Some(ids.len()),
            _ => None,
        };
        if let Some(count) = count {
            let item = |n: usize| if n == 0 { json!({}) } else { json!({"in": n, "own": "yes"}) };
            decision["nextWorkerInputs"] = (0..count).map(item).collect();
        }
        sure.inspect(|sure| decision["confidence"] = json!(sure));
        Decision::read(&decision).unwrap()
    });
    let terminate =
        confidence().prop_map(|confidence| Decision::Terminate { reason: Some("enough".to_owned()), confidence });
    prop_oneof![
        8 => next,
        2 => Just(Decision::AskUser { prompt: "Which way?".to_owned() }),
        1 => terminate,
    ]
}

fn mapping(pairs: &[&[(&str, &str)]]) -> impl Strategy<Value = Option<Value>> {
    let pair = |&(key, value): &(&str, &str)| (key.to_owned(), json!(value));
    let maps: Vec<Value> = pairs.iter().map(|map| Value::Object(map.iter().map(pair).collect())).collect();
    proptest::option::of(select(maps))
}

fn dispatch() -> impl Strategy<Value = Value> {
    const INPUTS: &[&[(&str, &str)]] = &[&[("in", "x")], &[("in", "out"), ("gone", "unset")], &[]];
    const OUTPUTS: &[&[(&str, &str)]] =
        &[&[("out", "v")], &[("out", "v")], &[("more", "w"), ("out", "v")], &[("out", "missing")], &[]];
    let join =
        (select(vec!["wait-all", "quorum", "first", "race"]), 1_u32..4, select(vec!["collect", "fail-fast", "absorb"]));
    let join = proptest::option::weighted(
        0.8,
        join.prop_map(|(mode, quorum, failure)| {
            let mut join = json!({"mode": mode, "onChildFailure": failure});
            if mode == "quorum" {
                join["quorum"] = json!(quorum);
            }
            join
        }),
    );
    let policy = prop_oneof![
        3 => Just((None, None)),
        2 => Just((Some("sequential"), None)),
        1 => Just((Some("reject"), None)),
        6 => join.prop_map(|join| (Some("parallel"), join)),
    ];
    let attest = prop_oneof![
        4 => Just(None),
        1 => Just(Some(json!({"checksum": true}))),
        2 => Just(Some(json!({"checksum": true, "algorithm": "sha256", "requireApproval": true}))),
    ];
    (
        policy,
        proptest::option::of(1_u32..4),
        (mapping(INPUTS), mapping(OUTPUTS)),
        (mapping(INPUTS), mapping(OUTPUTS)),
        attest,
        proptest::option::weighted(0.2, 1_u64..9),
    )
        .prop_map(|((policy, join), concurrency, (input, output), (input_a, output_a), attest, cap)| {
            let only_a = |map: Option<Value>| map.map(|map| json!({"a": map}));
            let all = [
                ("fanOutPolicy", policy.map(|policy| json!(policy))),
                ("joinPolicy", join),
                ("maxConcurrency", concurrency.map(|n| json!(n))),
                ("inputMapping", input),
                ("outputMapping", output),
                ("perWorkerInputMappings", only_a(input_a)),
                ("perWorkerOutputMappings", only_a(output_a)),
                ("outputAttestation", attest),
                ("iterationCap", cap.map(|n| json!(n))),
            ];
            Value::Object(all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
        })
}

fn rules() -> impl Strategy<Value = Vec<(Look, Decision)>> {
    proptest::collection::vec((insight::look(), decision()), 1..6)
}

pub fn case() -> impl Strategy<Value = Case> {
    let interrupts =
        vec![EscalationInterrupt::Approval, EscalationInterrupt::Clarification, EscalationInterrupt::Vendor];
    (
        proptest::collection::vec(decision(), 0..9),
        (proptest::option::weighted(0.3, 1_u64..100), proptest::option::weighted(0.15, select(vec![0.2, 0.7, 0.9]))),
        dispatch(),
        (0_usize..3, prop_oneof![3 => Just(0_u32), 1 => 1_u32..3]),
        prop_oneof![1 => 1_u64..4, 3 => 4_u64..11],
        (prop_oneof![Just(16_u32), 1_u32..4], proptest::option::of(rules())),
        select(interrupts),
    )
        .prop_map(
            |(
                plan,
                (timeout, sure),
                dispatch,
                (edges, retries),
                max_loop_iterations,
                (max_fan_out, rules),
                interrupt,
            )| {
                let mut supervisor = match &rules {
                    None => json!({"mockDispatchPlan": plan}),
                    Some(rules) => {
                        let rule = |(look, decide): &(Look, Decision)| json!({"when": look.cel(), "decide": decide});
                        json!({"rules": rules.iter().map(rule).collect::<Vec<_>>(), "otherwise": exhausted()})
                    }
                };
                timeout.inspect(|ms| supervisor["escalationTimeoutMs"] = json!(ms));
                sure.inspect(|sure| supervisor["mockConfidence"] = json!(sure));
                let escalation = Escalation { interrupt, ..Escalation::default() };
                Case { plan, rules, supervisor, dispatch, edges, retries, max_loop_iterations, max_fan_out, escalation }
            },
        )
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        Just(News::Started),
        Just(News::Refused),
        select(RunStatus::ALL.to_vec()).prop_map(News::Status),
        select(RunStatus::ALL.to_vec()).prop_map(News::Ended),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    let waiting = RunStatus::ALL.into_iter().filter(|status| !status.is_terminal()).collect::<Vec<_>>();
    prop_oneof![
        8 => Just(Fate::Good),
        2 => Just(Fate::Bad),
        1 => Just(Fate::Cancelled),
        2 => select(waiting).prop_map(Fate::Waits),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let bad = vec![
        Value::Null,
        json!({"action": "ask"}),
        json!({"action": "timeout"}),
        json!({"action": "refine"}),
        json!({"action": "edit-accept"}),
        json!({"action": "edit-accept", "editedArtifactData": {"kind": "escalate"}}),
        json!({"answers": {}}),
        json!({"answers": {"decision": "maybe"}}),
        json!({"kind": "next-worker", "nextWorkerIds": []}),
    ];
    prop_oneof![
        6 => Just(Answer::Accept),
        2 => decision().prop_map(Answer::Edit),
        2 => Just(Answer::Refine),
        1 => Just(Answer::Reject),
        2 => select(bad).prop_map(Answer::Bad),
    ]
}

/// Things the world does; after most of them the run goes on as far as it can.
pub fn steps() -> impl Strategy<Value = Vec<(Step, bool)>> {
    let step = prop_oneof![
        30 => (any::<Index>(), fate()).prop_map(|(which, fate)| Step::Serve(which, fate)),
        12 => (any::<Index>(), answer()).prop_map(|(which, answer)| Step::Answer(which, answer)),
        8 => (any::<Index>(), news()).prop_map(|(which, news)| Step::Tell(which, news)),
        12 => deed().prop_map(Step::Happen),
        2 => any::<bool>().prop_map(Step::Prompt),
        4 => (any::<Index>(), reply()).prop_map(|(which, reply)| Step::NodeRequest(which, reply)),
        4 => (0_usize..8).prop_map(Step::Advance),
        8 => (0_u64..40).prop_map(Step::Wait),
        3 => select(vec![DrainPolicy::Immediate, DrainPolicy::DrainCurrentNode]).prop_map(Step::Pause),
        3 => Just(Step::Resume),
        1 => Just(Step::NextTimer),
        1 => Just(Step::Cancel),
    ];
    proptest::collection::vec((step, proptest::bool::weighted(0.8)), 0..50)
}
