//! Where a run that only pretends looks for what was really done: in the runs whose way it goes again. Of a branch these
//! are its source, that one's source, and so on; of a child, the children that those had at the same place.

use std::collections::VecDeque;

use baton_model::{NodeId, RunId, code};
use baton_store::RunRow;

use crate::Error;
use crate::services::tools::service::ToolCalls;

/// A run that went the same way before, and from where on.
#[derive(Clone, Debug)]
pub(super) struct Before {
    pub(super) row: RunRow,
    /// From here on the run that looks has its own.
    pub(super) from: u64,
}

/// All of them, nearest first.
#[derive(Debug, Default)]
pub(super) struct PriorRuns {
    /// At the very same place.
    pub(super) same: Vec<Before>,
    /// Children that the same node had at other times, such as the last rounds of a loop that was shorter there.
    pub(super) near: Vec<Before>,
}

/// How many of those are looked through: each is a log to read, for a call that was made nowhere else.
const MOST_NEAR: usize = 32;

/// A child's place below its parent: the how-many-eth child of which node.
struct Place {
    node: NodeId,
    nth: usize,
}

impl ToolCalls {
    pub(super) async fn past(&self, row: &RunRow) -> Result<PriorRuns, Error> {
        // From the run that looks upwards, as long as there is somebody: to the source of a fork, to the parent of a child.
        let mut places = Vec::new();
        let mut top = row.clone();
        while top.origin.is_none() {
            let Some(parent) = &top.parent else { return Ok(PriorRuns::default()) };
            let Some(place) = self.place_of(parent, &top.id).await? else { return Ok(PriorRuns::default()) };
            let Some(parent) = self.store.run(parent).await? else { return Ok(PriorRuns::default()) };
            places.push(place);
            top = parent;
        }
        let mut past = PriorRuns { same: self.sources(&top).await?, near: Vec::new() };
        // And down again from there, by the same places.
        for place in places.iter().rev() {
            past = self.children_at(past, place).await?;
        }
        Ok(past)
    }

    /// The sources of a fork, and from where on it has its own instead. One that is a child of a branch itself has a past
    /// too.
    async fn sources(&self, fork: &RunRow) -> Result<Vec<Before>, Error> {
        let mut found = Vec::new();
        let mut from = u64::MAX;
        let mut origin = fork.origin.clone();
        let mut last = None;
        while let Some(next) = origin {
            let Some(row) = self.store.run(&next.source).await? else { return Ok(found) };
            from = from.min(next.seq);
            origin = row.origin.clone();
            last = Some(row.clone());
            found.push(Before { row, from });
        }
        if let Some(child) = last.filter(|row| row.parent.is_some()) {
            found.extend(Box::pin(self.past(&child)).await?.same);
        }
        Ok(found)
    }

    async fn children_at(&self, past: PriorRuns, place: &Place) -> Result<PriorRuns, Error> {
        let mut found = PriorRuns::default();
        let known = past.same.into_iter().map(|before| (before, true));
        for (before, same) in known.chain(past.near.into_iter().map(|before| (before, false))) {
            let mut children: VecDeque<RunId> = self.children_of(&before.row.id, &place.node).await?.into();
            if same
                && let Some(twin) = children.remove(place.nth)
                && let Some(row) = self.store.run(&twin).await?
            {
                found.same.push(Before { row, from: 0 });
            }
            for child in children.iter().rev().take(MOST_NEAR.saturating_sub(found.near.len())) {
                found.near.extend(self.store.run(child).await?.map(|row| Before { row, from: 0 }));
            }
        }
        Ok(found)
    }

    async fn place_of(&self, parent: &RunId, child: &RunId) -> Result<Option<Place>, Error> {
        let Some((state, _)) = self.fold_if_kept(parent).await? else { return Ok(None) };
        let Some(node) = state.planned_children().find(|(_, run)| *run == child).map(|(node, _)| node) else {
            return Ok(None);
        };
        let nth = state.planned_children().filter(|(of, _)| *of == node).take_while(|(_, run)| *run != child).count();
        Ok(Some(Place { node: node.clone(), nth }))
    }

    /// The children that a node has had, in the order in which they were wanted.
    async fn children_of(&self, run: &RunId, node: &NodeId) -> Result<Vec<RunId>, Error> {
        let Some((state, _)) = self.fold_if_kept(run).await? else { return Ok(Vec::new()) };
        Ok(state.planned_children().filter(|(of, _)| *of == node).map(|(_, run)| run.clone()).collect())
    }

    /// A log that was dropped says nothing any more.
    async fn fold_if_kept(&self, run: &RunId) -> Result<Option<(baton_engine::RunState, RunRow)>, Error> {
        match self.log.fold(run).await {
            Err(error) if error.code == code::RUN_PRUNED => Ok(None),
            folded => folded,
        }
    }
}
