//! Wiring nodes to their edges: loops are found, other cycles refused, and each dispatch paired with its supervisor.

use baton_model::workflow::TriggerRule;

use super::compiled::Plan;
use super::graph::{Arrow, find_cycle, loop_shape};
use super::node_config::Kind;
use super::problem::Problem;
use super::quorum;
use crate::expr::Strictness;

/// Finds loops, refuses other cycles, and wires nodes to their edges.
pub(super) fn connect(plan: &mut Plan, strictness: Strictness) -> Result<(), Vec<Problem>> {
    let count = plan.nodes.len();
    let arrows: Vec<Arrow> = plan
        .definition
        .edges
        .iter()
        .zip(&plan.edges)
        .map(|(edge, compiled)| Arrow::new(edge, compiled.source, compiled.target))
        .collect();
    let mut problems = Vec::new();
    for head in 0..count {
        if !matches!(plan.nodes[head].kind, Kind::Loop(_)) {
            continue;
        }
        let shape = loop_shape(head, &arrows, count);
        if shape.back_edges.is_empty() {
            problems.push(Problem::at(
                format!("/nodes/{head}"),
                "A core.loop needs an edge with sourceOutput \"body\" and an edge from the body back to the loop.",
            ));
        }
        for &edge in &shape.back_edges {
            plan.edges[edge].back = true;
        }
        plan.nodes[head].loop_ = Some(shape);
    }
    problems.extend(crossing_loops(plan));
    problems.extend(pair_up(plan));
    if strictness == Strictness::New {
        problems.extend(gated_pairs(plan));
        problems.extend(quorum::check(plan));
    }
    let (arrows, is_back) = gates(plan, arrows);
    if let Some(node) = find_cycle(&arrows, &is_back, count) {
        problems.push(Problem::at(
            format!("/nodes/{node}"),
            format!(
                "Node `{}` is on a cycle that no core.loop controls, so it would wait for itself.",
                plan.nodes[node].id
            ),
        ));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    for (i, edge) in plan.edges.iter().enumerate() {
        plan.nodes[edge.source].outgoing.push(i);
        if !edge.back && !edge.pair {
            plan.nodes[edge.target].incoming.push(i);
        }
    }
    // A dispatch starts when its supervisor has decided, never by itself.
    let waits = |node: usize| matches!(plan.nodes[node].kind, Kind::Dispatch(_)) && plan.nodes[node].partner.is_some();
    plan.entries = (0..count).filter(|&node| plan.nodes[node].incoming.is_empty() && !waits(node)).collect();
    Ok(())
}

/// Two loops that lie in each other's bodies would each wait for the other to be done before going round.
fn crossing_loops(plan: &Plan) -> Vec<Problem> {
    let inside = |head: usize, node: usize| {
        plan.nodes[head].loop_.as_ref().is_some_and(|shape| shape.body.binary_search(&node).is_ok())
    };
    let count = plan.nodes.len();
    let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
    pairs
        .filter(|&(one, other)| inside(one, other) && inside(other, one))
        .map(|(one, other)| {
            let (one_id, other_id) = (&plan.nodes[one].id, &plan.nodes[other].id);
            Problem::at(
                format!("/nodes/{other}"),
                format!("The loops `{one_id}` and `{other_id}` cross: the body of one must lie inside the other's."),
            )
        })
        .collect()
}

/// Pairs each dispatch with its supervisor: by an edge, else by their order in the definition. The edges between the
/// two, in both directions, only draw what the pairing means.
fn pair_up(plan: &mut Plan) -> Vec<Problem> {
    let is = |plan: &Plan, node: usize, supervisor: bool| match plan.nodes[node].kind {
        Kind::Supervisor(_) => supervisor,
        Kind::Dispatch(_) => !supervisor,
        _ => false,
    };
    let mut problems = Vec::new();
    for dispatch in (0..plan.nodes.len()).filter(|&node| is(plan, node, false)).collect::<Vec<_>>() {
        let drawn = plan.edges.iter().find(|edge| edge.target == dispatch && is(plan, edge.source, true));
        let nearest = || (0..dispatch).rev().chain(dispatch..plan.nodes.len()).find(|&node| is(plan, node, true));
        let Some(supervisor) = drawn.map(|edge| edge.source).or_else(nearest) else {
            problems
                .push(Problem::at(format!("/nodes/{dispatch}"), "A core.dispatch needs a supervisor in the workflow."));
            continue;
        };
        if plan.nodes[supervisor].partner.is_some() {
            problems.push(Problem::at(format!("/nodes/{dispatch}"), "The supervisor already has a core.dispatch."));
            continue;
        }
        plan.nodes[supervisor].partner = Some(dispatch);
        plan.nodes[dispatch].partner = Some(supervisor);
        for edge in &mut plan.edges {
            let between = (edge.source, edge.target);
            edge.pair |= between == (supervisor, dispatch) || between == (dispatch, supervisor);
        }
    }
    problems
}

/// Whether a supervisor's decision is carried out is the supervisor's to say: what stands on an edge between the two would
/// be read by nobody. Definitions on record are read as they were.
fn gated_pairs(plan: &Plan) -> Vec<Problem> {
    let drawn = plan.edges.iter().enumerate().filter(|(_, edge)| edge.pair);
    drawn
        .filter_map(|(i, edge)| {
            let key = match (&edge.condition, edge.rule) {
                (Some(_), _) => "condition",
                (None, TriggerRule::AnyFailed) => "triggerRule",
                (None, _) => return None,
            };
            let message = format!(
                "An edge between a supervisor and its dispatch has no `{key}`: every decision is carried out. Put it \
                 into the supervisor's rules, where `terminate` and `ask-user` send no worker."
            );
            Some(Problem::at(format!("/edges/{i}/{key}"), message))
        })
        .collect()
}

/// The arrows that can make a node wait, and which of them close a loop. A dispatch waits for its supervisor whether or
/// not that is drawn; the way back is what makes it a loop.
fn gates(plan: &Plan, mut arrows: Vec<Arrow>) -> (Vec<Arrow>, Vec<bool>) {
    let mut is_back: Vec<bool> = plan.edges.iter().map(|edge| edge.back || edge.pair).collect();
    for (node, supervisor) in plan.nodes.iter().enumerate() {
        if let (Kind::Supervisor(_), Some(dispatch)) = (&supervisor.kind, supervisor.partner) {
            arrows.push(Arrow { source: node, target: dispatch, body: false });
            is_back.push(false);
        }
    }
    (arrows, is_back)
}
