//! What belongs to a file: found before the first line is written, so that a refusal is still an answer. Only names and
//! numbers are held; what they stand for is read when it is its turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_model::{Digest, Event, RunId, TenantId, Timestamp, Versions, WorkflowId, code};
use baton_store::{RunFilter, RunRow, VersionedStoreId};

use super::MOST_FORKS;
use crate::history::transfer::service::Transfers;
use crate::{Error, ErrorKind};

const PAGE: usize = 1000;

#[derive(Default)]
pub(super) struct Gathered {
    /// Tops of trees, the one the forking began with first.
    pub(super) tops: Vec<RunId>,
    /// Sources before their forks, children before their parents.
    pub(super) runs: Vec<RunId>,
    /// By when they were first used.
    pub(super) definitions: Vec<(Digest, WorkflowId)>,
    /// The versions of agents that runs are pinned to, as far as they are here.
    pub(super) agents: Vec<Digest>,
    /// What others were forked from comes first.
    pub(super) ledgers: Vec<Reach>,
    /// Whether anything was said about any of the runs.
    pub(super) annotated: bool,
    /// Whether any record has a checksum.
    pub(super) chained: bool,
}

/// How far of a versioned store is wanted.
pub(super) struct Reach {
    pub(super) id: VersionedStoreId,
    pub(super) version: u64,
    pub(super) base: Option<(VersionedStoreId, u64)>,
}

/// One run of a tree, as far as ordering needs it.
struct Member {
    id: RunId,
    parent: Option<RunId>,
    created_at: Timestamp,
}

#[derive(Default)]
struct Search {
    /// First use of each definition.
    definitions: BTreeMap<Digest, (Timestamp, WorkflowId)>,
    agents: BTreeSet<Digest>,
    ledgers: BTreeMap<VersionedStoreId, u64>,
    chained: bool,
}

impl Transfers {
    pub(super) async fn gather(&self, tenant: &TenantId, run: &RunId) -> Result<Gathered, Error> {
        let mut top =
            self.store.run(run).await?.filter(|row| row.tenant == *tenant).ok_or_else(Error::run_not_found)?;
        if let Some(root) = &top.root {
            let message = format!("This run belongs to the tree of {root}. Export that one.");
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("rootRunId", root.as_str()));
        }
        let mut search = Search::default();
        let (mut trees, mut tops) = (Vec::new(), Vec::new());
        loop {
            tops.push(top.id.clone());
            trees.push(self.tree(&top, &mut search).await?);
            // Only the top of a tree can be a fork.
            let Some(origin) = top.origin else { break };
            if tops.len() > MOST_FORKS {
                let message =
                    format!("This run was forked more than {MOST_FORKS} times over. Export one of its sources.");
                return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message));
            }
            let source = self.store.run(&origin.source).await?.ok_or_else(Error::run_not_found)?;
            top = match &source.root {
                Some(root) => self.store.run(root).await?.ok_or_else(Error::run_not_found)?,
                None => source,
            };
        }
        tops.reverse();
        let mut definitions: Vec<_> = search.definitions.into_iter().collect();
        definitions.sort_by(|(a, (used_a, _)), (b, (used_b, _))| used_a.cmp(used_b).then_with(|| a.cmp(b)));
        let runs: Vec<RunId> = trees.into_iter().rev().flatten().collect();
        let mut annotated = false;
        for run in &runs {
            annotated = annotated || !self.store.annotations(run, None, 1).await?.is_empty();
        }
        Ok(Gathered {
            tops,
            runs,
            annotated,
            chained: search.chained,
            definitions: definitions.into_iter().map(|(digest, (_, workflow))| (digest, workflow)).collect(),
            agents: self.kept(search.agents).await?,
            ledgers: self.reaches(search.ledgers).await?,
        })
    }

    /// The runs of a tree, children before their parents.
    async fn tree(&self, top: &RunRow, search: &mut Search) -> Result<Vec<RunId>, Error> {
        let mut members = vec![self.member(top, search).await?];
        let mut cursor = None;
        loop {
            let filter = RunFilter {
                tenant: Some(top.tenant.clone()),
                root: Some(top.id.clone()),
                cursor,
                limit: PAGE,
                ..RunFilter::default()
            };
            let page = self.store.runs(&filter).await?;
            for row in &page.items {
                members.push(self.member(row, search).await?);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(bottom_up(members));
            }
        }
    }

    async fn member(&self, row: &RunRow, search: &mut Search) -> Result<Member, Error> {
        if !row.status.is_terminal() {
            let message = format!("The run {} has not ended. Wait for it, or cancel it first.", row.id);
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message).with("runId", row.id.as_str()));
        }
        if let Some(pruned) = row.pruned {
            let message = format!("The run {} was pruned, so it cannot be replayed anywhere.", row.id);
            return Err(Error::new(ErrorKind::Gone, code::RUN_PRUNED, message)
                .with("runId", row.id.as_str())
                .with("prunedAt", pruned.at.to_string()));
        }
        search.chained |= row.chain.head.is_some();
        let used = (row.created_at, row.workflow.clone());
        let first = search.definitions.entry(row.digest.clone()).or_insert_with(|| used.clone());
        *first = used.min(first.clone());
        if row.origin.as_ref().is_none_or(|origin| origin.seq == 0)
            && let Some(first) = self.store.records(&row.id, 0, 1).await?.pop()
            && let Event::RunStarted(started) = first.decode(&row.id)?.event
        {
            search.agents.extend(started.private.agents.into_values().map(|pin| pin.card));
        }
        let seen = self.seen(row).await?;
        let memory = (VersionedStoreId::memory(&row.tenant, &row.memory_scope), seen.memory);
        let workspace = (VersionedStoreId::workspace(&row.tenant, &row.workspace_scope), seen.workspace);
        for (ledger, version) in [memory, workspace].into_iter().filter(|(_, version)| *version > 0) {
            let reach = search.ledgers.entry(ledger).or_default();
            *reach = (*reach).max(version);
        }
        Ok(Member { id: row.id.clone(), parent: row.parent.clone(), created_at: row.created_at })
    }

    /// The versions of these agents that can be read here. A run whose agent nobody has any more can be replayed.
    async fn kept(&self, agents: BTreeSet<Digest>) -> Result<Vec<Digest>, Error> {
        let mut kept = Vec::new();
        for digest in agents {
            if self.store.blob(&digest).await?.is_some() {
                kept.push(digest);
            }
        }
        Ok(kept)
    }

    /// How far of its versioned stores a run refers to: versions only grow along a log.
    async fn seen(&self, row: &RunRow) -> Result<Versions, Error> {
        let last = self.store.records(&row.id, row.next_seq.saturating_sub(1), 1).await?.pop();
        let inherited = row.origin.as_ref().map(|origin| origin.versions).unwrap_or_default();
        Ok(last.map_or(inherited, |record| record.versions))
    }

    /// How far of each versioned store is wanted, with those they were forked from, which come first.
    async fn reaches(&self, mut wanted: BTreeMap<VersionedStoreId, u64>) -> Result<Vec<Reach>, Error> {
        let mut bases = BTreeMap::new();
        let mut open: Vec<VersionedStoreId> = wanted.keys().cloned().collect();
        while let Some(id) = open.pop() {
            let base = self.store.versioned_base(&id).await?;
            if let Some((base, version)) = &base {
                let reach = wanted.entry(base.clone()).or_default();
                *reach = (*reach).max(*version);
                open.push(base.clone());
            }
            bases.insert(id, base);
        }
        let depth = |id: &VersionedStoreId| {
            std::iter::successors(Some(id), |id| bases.get(*id)?.as_ref().map(|(base, _)| base)).count()
        };
        let mut ordered: Vec<(usize, VersionedStoreId)> = wanted.keys().map(|id| (depth(id), id.clone())).collect();
        ordered.sort();
        let mut reaches = Vec::new();
        for (_, id) in ordered {
            let base = bases.get(&id).cloned().flatten();
            let written = self.store.versioned_head(&id).await?;
            let least = base.as_ref().map_or(0, |(_, version)| *version);
            let version = wanted[&id].min(written).max(least);
            if version > 0 {
                reaches.push(Reach { id, version, base });
            }
        }
        Ok(reaches)
    }
}

fn bottom_up(mut members: Vec<Member>) -> Vec<RunId> {
    let parents: HashMap<RunId, RunId> =
        members.iter().filter_map(|member| Some((member.id.clone(), member.parent.clone()?))).collect();
    let depth = |id: &RunId| std::iter::successors(Some(id), |id| parents.get(*id)).count();
    members.sort_by_cached_key(|member| (std::cmp::Reverse(depth(&member.id)), member.created_at, member.id.clone()));
    members.into_iter().map(|member| member.id).collect()
}
