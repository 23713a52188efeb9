//! A budget that is used up: the node does not do what it was going to do. The run fails with what it has, or waits for
//! a human who may extend the budget.
//!
//! ```text
//!  exhausted ─┬─► cap breached ─► node failed ─► run failed
//!             └─► approval ─┬─► accepted ─► reserved anew ─► what was held back is done
//!                           └─► rejected ─► cap breached ─► …
//! ```

use baton_model::budget::{Ceilings, Dimension};
use baton_model::event::{
    ApprovalAction, BudgetConsumed, BudgetExhausted, BudgetHeld, BudgetReserved, BudgetThresholdCrossed, CapBreached,
    CapKind, HeldRetry, NodePlace, NodeRetried, NodeRetriedFacts, Outcome,
};
use baton_model::tool::Transport;
use baton_model::{Amount, Budget, Draft, Event, Fault, NodeId, Timestamp, code};
use serde_json::{Value, json};

use super::budget_question::{Question, ask, is_ours, worded};
use super::human_answer::Answer;
use super::{ending, human_answer, tool_records, votes};
use crate::apply::apply;
use crate::budget::{Shortage, Spent, Unaffordable};
use crate::command::Refusal;
use crate::invocation::call_id;
use crate::state::{Interrupt, Phase, RunState};

/// The first thing a tree with a budget records, or a branch that has come to one of its own.
pub(super) fn reserve(state: &RunState) -> Option<Draft> {
    let budget = state.budget().filter(|_| !state.reserved && state.phase == Phase::Active)?;
    let own = state.start.as_ref().is_some_and(|start| start.event.private.parent.is_none());
    own.then(|| reserved(budget.ceilings, budget))
}

fn reserved(effective_budget: Ceilings, budget: &Budget) -> Draft {
    Event::from(BudgetReserved { effective_budget, scope: budget.scope }).into()
}

/// What the tree has used, told by whoever used some.
pub(super) fn spent(state: &RunState, node_id: &NodeId, spent: &[Spent]) -> Vec<Draft> {
    if matches!(state.phase, Phase::New | Phase::Ended { .. }) {
        return Vec::new();
    }
    let mut drafts: Vec<Draft> = Vec::new();
    for one in spent {
        let ([consumed, limit, remaining], dimension) = (one.shown(), one.dimension);
        let place = || NodePlace::at(node_id.clone());
        drafts.push(Event::from(BudgetConsumed { dimension, consumed, limit, remaining, private: place() }).into());
        drafts.extend(one.crossed.map(|percent| {
            let percent = Amount::from(percent);
            Draft::from(Event::from(BudgetThresholdCrossed { dimension, consumed, limit, percent, private: place() }))
        }));
    }
    drafts
}

/// Nothing is left for this. A call that nobody wants any more changes nothing.
pub(super) fn exhausted(state: &RunState, what: &Unaffordable, short: &Shortage, at: Timestamp) -> Vec<Draft> {
    match what {
        Unaffordable::Call { node, visit, attempt, call } => {
            let Some(node) = state.plan.index.get(node).copied().filter(|&node| state.asks_model(node)) else {
                return Vec::new();
            };
            let run = &state.nodes[node];
            // A paused run goes nowhere; it asks again when it is resumed.
            let paused = matches!(state.phase, Phase::Paused { .. });
            if paused || (run.visit, run.attempt, run.calls) != (*visit, *attempt, *call) {
                return Vec::new();
            }
            over(state, node, Held::default(), short, at)
        }
        Unaffordable::Step { drafts } => {
            let Some((before, node_id, held)) = cut(state, drafts, short) else { return Vec::new() };
            let mut ahead = state.clone();
            // What came before stands, and the rest follows from it.
            if apply(&mut ahead, before.to_vec(), at).is_err() {
                return Vec::new();
            }
            let Some(&node) = ahead.plan.index.get(node_id) else { return Vec::new() };
            before.iter().cloned().chain(over(&ahead, node, held, short, at)).collect()
        }
    }
}

/// What a node would have done.
#[derive(Default)]
struct Held {
    retry: Option<Box<HeldRetry>>,
    call: Option<Box<baton_model::ToolUse>>,
    /// It cannot be done later: nothing on the log would lead there again.
    lost: bool,
}

/// Where a step stops: what of it stands, whose rest does not, and what that was.
fn cut<'a>(state: &RunState, drafts: &'a [Draft], short: &Shortage) -> Option<(&'a [Draft], &'a NodeId, Held)> {
    let spends = |draft: &&Draft| {
        matches!(
            (&draft.event, short.dimension),
            (Event::AgentToolCalled(_), Dimension::ToolCalls)
                | (
                    Event::NodeRetried(_) | Event::EnvelopeRetryAttempted(_) | Event::MapItemRetried(_),
                    Dimension::Retries
                )
        )
    };
    let first = drafts.iter().find(spends)?;
    let node_id = first.event.node_id()?;
    let answered = state.plan.index.get(node_id).is_some_and(|&node| state.nodes[node].reply.is_some());
    // What a model asks for in one breath is done as a whole or not at all; what it said is judged again later.
    let again = answered && !matches!(first.event, Event::NodeRetried(_));
    let affordable = if again { 0 } else { usize::try_from(short.left()).unwrap_or(usize::MAX) };
    let mut places = drafts.iter().enumerate().filter(|(_, draft)| spends(draft));
    let (at, refused) = places.nth(affordable)?;
    let held = match &refused.event {
        Event::NodeRetried(event) => Held {
            retry: Some(Box::new(HeldRetry {
                attempt: event.attempt,
                delay_ms: event.delay_ms,
                last_error: event.last_error.clone(),
            })),
            ..Held::default()
        },
        // What the log says leads there again: to the tool that is looked up, the item that is next, the call that came
        // back. Of a child's end nobody tells again.
        Event::AgentToolCalled(_) if calls_by_lookup(state, node_id) => Held::default(),
        Event::MapItemRetried(event) => Held { lost: works_by_child(state, node_id, event.index), ..Held::default() },
        Event::AgentToolCalled(event) if !again => {
            let own = state.plan.index.get(node_id).is_some_and(|&node| state.effect_tool(node).is_some());
            Held { call: event.private.asked.clone().filter(|_| own), lost: !own, ..Held::default() }
        }
        _ => Held::default(),
    };
    let before = if again && short.asks { &drafts[..0] } else { &drafts[..at] };
    Some((before, refused.event.node_id()?, held))
}

/// The node looks its tool up when it comes to it.
fn calls_by_lookup(state: &RunState, node: &NodeId) -> bool {
    state.plan.index.get(node).is_some_and(|&node| state.plan.nodes[node].kind.called_tool().is_some())
}

fn works_by_child(state: &RunState, node: &NodeId, item: u32) -> bool {
    let map = state.plan.index.get(node).and_then(|&node| state.nodes[node].map.as_deref());
    map.and_then(|map| map.under_way.get(&item)).is_some_and(|item| item.child().is_some())
}

/// It is over for this node, unless somebody may be asked.
fn over(state: &RunState, node: usize, held: Held, short: &Shortage, at: Timestamp) -> Vec<Draft> {
    let node_id = state.plan.nodes[node].id.clone();
    let last_error = held.retry.as_ref().map(|retry| retry.last_error.clone());
    let [consumed, limit] = [short.consumed, short.limit].map(|units| short.dimension.shown(units));
    let asks = short.asks && !held.lost;
    let private = BudgetHeld { node_id, retry: held.retry, call: held.call };
    let event = BudgetExhausted { dimension: short.dimension, consumed, limit, private };
    let mut drafts: Vec<Draft> = vec![Event::from(event).into()];
    drafts.extend(match asks {
        true => ask(state, node, short, at),
        false => fail(state, node, short.into(), last_error),
    });
    drafts
}

/// What is left to say when the run fails.
struct Breach {
    dimension: Dimension,
    consumed: Amount,
    limit: Amount,
    observed: Amount,
}

impl From<&Shortage> for Breach {
    fn from(short: &Shortage) -> Self {
        let shown = |units: u64| short.dimension.shown(units);
        // Nobody knows what a call that was not made would have used: of tokens and money, what was used is told. Tools
        // and retries are counted, so it is what they would have come to. One more than the limit at least.
        let observed = match short.dimension {
            Dimension::Tokens | Dimension::Cost => short.consumed,
            Dimension::ToolCalls | Dimension::Retries => short.consumed.saturating_add(short.wanted),
        };
        let observed = observed.max(short.limit.saturating_add(1));
        Self {
            dimension: short.dimension,
            consumed: shown(short.consumed),
            limit: shown(short.limit),
            observed: shown(observed),
        }
    }
}

/// The run ends, whoever would have taken over: there is nothing to go on with.
fn fail(state: &RunState, node: usize, breach: Breach, last_error: Option<Fault>) -> Vec<Draft> {
    let node_id = &state.plan.nodes[node].id;
    let Breach { dimension, consumed, limit, observed } = breach;
    let kind = match dimension {
        Dimension::Tokens => CapKind::BudgetTokens,
        Dimension::Cost => CapKind::BudgetCost,
        Dimension::ToolCalls => CapKind::BudgetToolCalls,
        Dimension::Retries => CapKind::BudgetRetries,
    };
    let message = match consumed.as_f64() < limit.as_f64() {
        true => format!("What is left of the budget of {} is too little.", worded(dimension, limit)),
        false => format!("The budget of {} is used up.", worded(dimension, limit)),
    };
    let fault = Fault::new(code::BUDGET_EXHAUSTED, message)
        .with("dimension", dimension.as_str())
        .with("limit", json!(limit))
        .with("consumed", json!(consumed));
    let fault = match last_error {
        Some(error) => fault.with("lastError", json!(error)),
        None => fault,
    };
    let cap = CapBreached { kind, limit, observed, node_id: Some(node_id.clone()) };
    let mut drafts: Vec<Draft> = vec![Event::from(cap).into()];
    drafts.extend(ending::give_up_at(state, node_id, fault));
    drafts
}

/// A human has decided.
pub(super) fn answered(answer: Answer<'_>) -> Result<Vec<Draft>, Refusal> {
    let Answer { state, node, interrupt, value, actor, at } = answer;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let by = votes::voter(value, actor);
    let received = |action| votes::decision_received(state.plan.nodes[node].id.clone(), action, &by, value);
    match value.as_str().or_else(|| text("action")).or_else(|| text("decision")) {
        Some("accept" | "approved") => {
            let (Some(budget), Some(question)) = (state.budget(), Question::read(interrupt)) else {
                return Err(Refusal::invalid("There is no budget to extend."));
            };
            let ceilings = question.extended(value.get("budgetDelta"), &budget.most)?;
            let mut drafts = answer.closes(Some(&by), Outcome::Accepted);
            drafts.push(received(ApprovalAction::Accept));
            drafts.push(reserved(ceilings, budget));
            drafts.extend(go_on(state, node, at));
            Ok(drafts)
        }
        Some("reject" | "rejected") => {
            let mut drafts = answer.closes(Some(&by), Outcome::Rejected);
            drafts.push(received(ApprovalAction::Reject));
            drafts.extend(refused(state, node, interrupt));
            Ok(drafts)
        }
        _ => Err(Refusal::invalid(
            "`action` is accept or reject; with accept, `budgetDelta` may say how much is added, as in {\"maxTokens\": 5000}.",
        )),
    }
}

/// Somebody has decided elsewhere in the tree, and that decides this question too.
pub(super) fn settled(state: &RunState, node_id: &NodeId, extended: bool, at: Timestamp) -> Vec<Draft> {
    let node = state.plan.index.get(node_id).copied();
    let Some((node, interrupt)) = node.and_then(|node| Some((node, state.interrupts.get(&node)?))) else {
        return Vec::new();
    };
    if !is_ours(interrupt) {
        return Vec::new();
    }
    let mut drafts = human_answer::overtaken(state, node, interrupt, "budget-decided");
    drafts.extend(if extended { go_on(state, node, at) } else { refused(state, node, interrupt) });
    drafts
}

/// What was held back is done. What a model was to be asked, or asked for, follows from what is on the log.
fn go_on(state: &RunState, node: usize, at: Timestamp) -> Vec<Draft> {
    let (plan, run) = (&state.plan.nodes[node], &state.nodes[node]);
    let Some(held) = &run.over_budget else { return Vec::new() };
    let mut drafts: Vec<Draft> = Vec::new();
    if let Some(retry) = &held.retry {
        let private = NodeRetriedFacts { wake_at: at.plus_millis(retry.delay_ms) };
        let HeldRetry { attempt, delay_ms, last_error } = (**retry).clone();
        let node_id = plan.id.clone();
        drafts.push(Event::from(NodeRetried { node_id, attempt, delay_ms, last_error, private }).into());
    }
    if let Some(asked) = &held.call {
        let transport = state.effect_tool(node).map_or(Transport::Http, |tool| tool.transport);
        let id = call_id(&plan.id, run.visit, run.attempt, 0, 0);
        drafts.push(tool_records::called(state, node, tool_records::SYSTEM, &id, asked, transport));
    }
    drafts
}

fn refused(state: &RunState, node: usize, interrupt: &Interrupt) -> Vec<Draft> {
    let Some(Question { dimension, consumed, limit, .. }) = Question::read(interrupt) else { return Vec::new() };
    let held = state.nodes[node].over_budget.as_deref();
    let last_error = held.and_then(|held| held.retry.as_ref()).map(|retry| retry.last_error.clone());
    let shown = |units: u64| dimension.shown(units);
    let observed = match dimension {
        Dimension::Tokens | Dimension::Cost if state.rule() >= 3 => consumed.max(limit.saturating_add(1)),
        _ => consumed.max(limit).saturating_add(1),
    };
    let observed = shown(observed);
    let breach = Breach { dimension, consumed: shown(consumed), limit: shown(limit), observed };
    fail(state, node, breach, last_error)
}
