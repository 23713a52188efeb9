//! Cycles. A cycle is legal only through a node that controls it: the head of a `core.loop`. Every other one would
//! wait for itself for ever, so it is refused.

use baton_model::workflow::Edge;

/// The port a loop head sends its rounds through.
pub(crate) const BODY: &str = "body";

#[derive(Debug, Default)]
pub(crate) struct LoopShape {
    /// Nodes reset before each round.
    pub(crate) body: Vec<usize>,
    /// Edges from the body back to the head.
    pub(crate) back_edges: Vec<usize>,
}

pub(super) struct Arrow {
    pub(super) source: usize,
    pub(super) target: usize,
    pub(super) body: bool,
}

impl Arrow {
    pub(super) fn new(edge: &Edge, source: usize, target: usize) -> Self {
        Self { source, target, body: edge.source_output.as_deref() == Some(BODY) }
    }
}

/// The nodes a head's rounds repeat, and the edges that come back to it.
pub(super) fn loop_shape(head: usize, arrows: &[Arrow], nodes: usize) -> LoopShape {
    let mut inside = vec![false; nodes];
    let mut open: Vec<usize> =
        arrows.iter().filter(|a| a.source == head && a.body && a.target != head).map(|a| a.target).collect();
    while let Some(node) = open.pop() {
        if std::mem::replace(&mut inside[node], true) {
            continue;
        }
        open.extend(arrows.iter().filter(|a| a.source == node && a.target != head).map(|a| a.target));
    }
    let back_edges = arrows
        .iter()
        .enumerate()
        .filter(|(_, a)| a.target == head && (inside[a.source] || (a.source == head && a.body)))
        .map(|(index, _)| index)
        .collect();
    LoopShape { body: (0..nodes).filter(|&node| inside[node]).collect(), back_edges }
}

/// A node on a cycle that no loop head controls, if there is one: what is left after peeling off, in topological
/// order, every node whose ordinary predecessors are gone.
pub(super) fn find_cycle(arrows: &[Arrow], is_back: &[bool], nodes: usize) -> Option<usize> {
    let mut waiting = vec![0_usize; nodes];
    let mut outgoing: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (arrow, _) in arrows.iter().zip(is_back).filter(|(_, back)| !**back) {
        waiting[arrow.target] += 1;
        outgoing[arrow.source].push(arrow.target);
    }
    let mut free: Vec<usize> = (0..nodes).filter(|&node| waiting[node] == 0).collect();
    let mut peeled = 0;
    while let Some(node) = free.pop() {
        peeled += 1;
        for &next in &outgoing[node] {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                free.push(next);
            }
        }
    }
    (peeled < nodes).then(|| waiting.iter().position(|&count| count > 0)).flatten()
}
