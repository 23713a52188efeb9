//! What a model said becomes part of the run before anybody judges it.

use std::sync::Arc;

use baton_model::event::{ModelRetried, ProviderUsage};
use baton_model::{Cost, NodeStatus, Record, Tokens};

use super::lookup::active_node;
use super::step_work;
use crate::state::RunState;

pub(super) fn replied(state: &mut RunState, record: &Record, event: &ProviderUsage) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    if let Some(answer) = &event.private.step {
        // One that broke off is no answer; what it took by then is gone all the same.
        if event.private.reply.is_some() {
            step_work::answered(state, record, node, answer)?;
        }
        spend(state, event);
        return Ok(());
    }
    let rule = state.rule();
    let run = &mut state.nodes[node];
    let facts = &event.private;
    let asks = run.call.is_some() || run.invocation.as_deref().is_some_and(|one| one.asks_model());
    if run.status() != NodeStatus::Running || !asks || run.reply.is_some() {
        return Err("the node asks no model".to_owned());
    }
    if (run.visit, run.attempt, run.calls) != (facts.visit, facts.attempt, facts.call) {
        return Err("another attempt asked that".to_owned());
    }
    match &facts.reply {
        Some(reply) => {
            run.reply = Some(Arc::from(reply.clone()));
            run.replied = Some(record.seq);
            run.calls += 1;
            run.broken = 0;
            run.not_before = None;
        }
        None if rule < 4 => return Err("the answer is missing".to_owned()),
        // It broke off; what it took by then is gone all the same.
        None => {}
    }
    spend(state, event);
    Ok(())
}

/// The same call is made again.
pub(super) fn retried(state: &mut RunState, event: &ModelRetried) -> Result<(), String> {
    let node = active_node(state, &event.node_id)?;
    let run = &mut state.nodes[node];
    let facts = &event.private;
    if (run.visit, run.attempt, run.calls) != (facts.visit, facts.attempt, facts.call) {
        return Err("another attempt asked that".to_owned());
    }
    if event.begun {
        run.broken += 1;
        run.not_before = facts.not_before;
    }
    Ok(())
}

fn spend(state: &mut RunState, event: &ProviderUsage) {
    let before = state.cost.take().unwrap_or_default();
    state.cost = Some(Cost {
        tokens: Tokens {
            input: before.tokens.input.saturating_add(event.input_tokens),
            output: before.tokens.output.saturating_add(event.output_tokens),
        },
        model: event.model.clone(),
        provider: event.provider.clone(),
        usd: match (before.usd, event.cost_estimate_usd) {
            (None, None) => None,
            (sum, price) => Some(sum.unwrap_or(0.0) + price.unwrap_or(0.0)),
        },
    });
}
