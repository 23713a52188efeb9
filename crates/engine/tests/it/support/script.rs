//! Random things the world says to a run, good and bad, in any order.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use baton_engine::{Actor, ChildOutcome, Command, Effect, RemoteChildAction, RemoteChildTask, RunState, outstanding};
use baton_model::event::{DrainPolicy, RemoteRun};
use baton_model::{Fault, NodeId, RunId, RunStatus};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::deeds::{Deed, deed};
use super::minds::{self, Given, Said};

#[derive(Clone, Debug)]
pub enum Step {
    Wait(u64),
    /// Runs at most this many single steps.
    Advance(usize),
    NextTimer,
    Answer(Index, Answer),
    Tell(Index, News),
    /// Memory or the workspace changes.
    Happen(Deed),
    /// From now on questions about memory and workspace are answered at once, or only when it is somebody's turn.
    Prompt(bool),
    /// Answers any question that was ever asked.
    NodeRequest(Index, Reply),
    /// A model answers a call, open or long over.
    Think(Index, Said),
    /// A tool comes back, or does not; from a call that is open or long over.
    Return(Index, Given),
    Say(Say),
}

/// What becomes of a question about memory and workspace.
#[derive(Clone, Copy, Debug)]
pub enum Reply {
    Answered,
    /// The versioned stores cannot be read.
    Unreadable,
}

pub fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![9 => Just(Reply::Answered), 1 => Just(Reply::Unreadable)]
}

#[derive(Clone, Debug)]
pub enum Answer {
    Good,
    Bad(Value),
    As(&'static str, Value),
}

#[derive(Clone, Debug)]
pub enum News {
    Started,
    Refused,
    Status(RunStatus),
    Ended(RunStatus),
}

#[derive(Clone, Debug)]
pub enum Say {
    Cancel {
        by_parent: bool,
    },
    Pause(DrainPolicy),
    Resume,
    StartAgain,
    /// News about a child nobody has.
    Stranger(News),
    AnswerNobody,
}

fn status() -> impl Strategy<Value = RunStatus> {
    select(RunStatus::ALL.to_vec())
}

fn news() -> impl Strategy<Value = News> {
    prop_oneof![
        4 => Just(News::Started),
        1 => Just(News::Refused),
        3 => status().prop_map(News::Status),
        3 => select(vec![RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled]).prop_map(News::Ended),
        1 => status().prop_map(News::Ended),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let vote = select(vec![
        json!({"action": "accept"}),
        json!({"action": "accept", "refineFeedback": 5, "feedback": 5}),
        json!({"action": "reject"}),
        json!({"action": "ask", "feedback": "why?"}),
        json!({"action": "refine", "refineFeedback": {"scope": "whole"}}),
        json!({"action": "edit-accept", "editedArtifactData": null}),
        json!({"decision": "approved"}),
        json!({"decision": "rejected", "feedback": "no"}),
    ]);
    prop_oneof![
        4 => Just(Answer::Good),
        1 => super::generate::value().prop_map(Answer::Bad),
        1 => select(vec![
            json!({"action": "timeout"}), json!({"answers": {"q1": 1}}), json!({"answers": [{"id": "q1"}]}),
            json!({"order": 8}), json!({"refineFeedback": 1, "action": "refine"}),
            json!({"action": "refine", "refineFeedback": {"scope": 5}}), json!({"ok": 1}), json!({"eventPayload": {"order": 7}}),
        ]).prop_map(Answer::Bad),
        4 => (select(vec!["ann", "ben", "cleo", "dan"]), vote).prop_map(|(who, vote)| Answer::As(who, vote)),
    ]
}

fn say() -> impl Strategy<Value = Say> {
    prop_oneof![
        1 => any::<bool>().prop_map(|by_parent| Say::Cancel { by_parent }),
        4 => select(vec![DrainPolicy::Immediate, DrainPolicy::DrainCurrentNode]).prop_map(Say::Pause),
        4 => Just(Say::Resume),
        1 => Just(Say::StartAgain),
        1 => news().prop_map(Say::Stranger),
        1 => Just(Say::AnswerNobody),
    ]
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0_u64..40).prop_map(Step::Wait),
        4 => (0_usize..12).prop_map(Step::Advance),
        2 => Just(Step::NextTimer),
        4 => (any::<Index>(), answer()).prop_map(|(which, answer)| Step::Answer(which, answer)),
        4 => (any::<Index>(), news()).prop_map(|(which, news)| Step::Tell(which, news)),
        2 => say().prop_map(Step::Say),
        6 => deed().prop_map(Step::Happen),
        1 => any::<bool>().prop_map(Step::Prompt),
        2 => (any::<Index>(), reply()).prop_map(|(which, reply)| Step::NodeRequest(which, reply)),
        6 => (any::<Index>(), minds::said()).prop_map(|(which, said)| Step::Think(which, said)),
        4 => (any::<Index>(), minds::given()).prop_map(|(which, given)| Step::Return(which, given)),
    ];
    proptest::collection::vec(step, 0..30)
}

/// An answer that settles an open question, whatever it asks.
pub fn good_answer(kind: &str, data: &Value) -> Value {
    match kind {
        "approval" if data["actions"].as_array().is_some_and(|all| all.contains(&json!("accept"))) => {
            json!({"action": "accept"})
        }
        "approval" => json!({"action": "reject"}),
        "clarification" => {
            let ids = data["questions"].as_array().into_iter().flatten().filter_map(|question| question["id"].as_str());
            json!({"answers": ids.map(|id| (id.to_owned(), json!(0.1))).collect::<serde_json::Map<_, _>>()})
        }
        "external-event" => json!({"order": 7, "more": true}),
        "low-confidence" => json!({"action": "accept"}),
        "x-host-baton-effect-unknown" => json!({"action": "done", "result": 1}),
        _ => json!({"ok": true}),
    }
}

/// An answer that does not say which question it is for.
pub fn resolve(node: &NodeId, value: Value, who: &str) -> Command {
    Command::Resolve { node: node.clone(), interrupt: None, value, actor: Actor { subject: Some(who.to_owned()) } }
}

/// An answer to whatever the node asks in this state, as somebody gives it who has looked.
pub fn reply_to(state: &RunState, node: &NodeId, value: Value, who: &str) -> Command {
    let interrupt = state.interrupt_at(node).map(|open| open.interrupt_id.clone());
    Command::Resolve { node: node.clone(), interrupt, value, actor: Actor { subject: Some(who.to_owned()) } }
}

pub fn tell(child: RunId, news: &News) -> Command {
    match news {
        News::Started => Command::ChildStarted { child },
        News::Refused => {
            Command::ChildRefused { child, fault: Fault::new("unknown_child_workflow", "There is no such workflow.") }
        }
        News::Status(status) => Command::ChildStatus { child, status: *status },
        News::Ended(status) => Command::ChildEnded { child, outcome: outcome(*status) },
    }
}

pub fn outcome(status: RunStatus) -> ChildOutcome {
    ChildOutcome {
        status,
        variables: json!({"result": 0.1, "deep": "child-secret"}).as_object().cloned().unwrap(),
        error: (status == RunStatus::Failed).then(|| Fault::new("inner", "The child broke.")),
        memory: 0,
        usage: None,
    }
}

/// The children this run wants something done about.
pub fn wanted_children(state: &RunState) -> Vec<RunId> {
    let child = |effect: Effect| match effect {
        Effect::StartChild { plan, .. } => Some(plan.run),
        Effect::AwaitChild { child } | Effect::CancelChild { child } => Some(child),
        Effect::Remote(mandate) => Some(mandate.child),
        Effect::WakeAt { .. } | Effect::CallModel { .. } | Effect::CallTool(_) | Effect::NodeRequest(_) => None,
    };
    outstanding(state).into_iter().filter_map(child).collect()
}

/// Another host has made the child, and calls it by a name of its own.
pub fn started_afar(place: &RunId) -> Command {
    let run = RunId::new(format!("far_{place}"));
    let url = format!("https://far.example/v1/runs/{run}");
    Command::RemoteStarted { remote: RemoteRun { place: place.clone(), host_id: None, url, run } }
}

/// What the shell says of a child on another host where everything goes well.
pub fn good_news(mandate: &RemoteChildTask) -> Command {
    match mandate.action {
        RemoteChildAction::Create(_) | RemoteChildAction::Withdraw(_) => started_afar(&mandate.child),
        RemoteChildAction::Follow { .. } => tell(mandate.child.clone(), &News::Ended(RunStatus::Completed)),
        RemoteChildAction::Cancel => tell(mandate.child.clone(), &News::Ended(RunStatus::Cancelled)),
    }
}
