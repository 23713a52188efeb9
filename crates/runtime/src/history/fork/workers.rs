//! Which versions of its workers a branch starts.

use std::collections::{BTreeMap, HashMap, HashSet};

use baton_model::{Digest, Event, RunId, Timestamp, WorkerVersions, WorkflowId};
use baton_store::{RunFilter, RunRow};

use crate::Error;
use crate::history::fork::service::Forks;
use crate::services::workflows::Whose;

/// Rows that are read at a time.
const PAGE: usize = 1_000;
/// How many runs below a source are looked at, the newest first. A tree has at most some thousand runs, and a request must
/// not read for minutes.
const MOST_RUNS: usize = 10_000;

/// What was used last before the fork point, and first from it on.
#[derive(Default)]
struct Uses {
    before: Option<Digest>,
    after: Option<Digest>,
}

impl Forks {
    /// The versions for a branch that begins when its source had had the children `begun`: of each workflow the one that the source,
    /// or a run below it, started next; else the one it started last; else what the source itself would have started.
    pub(super) async fn worker_versions(
        &self,
        source: &RunRow,
        begun: &HashSet<RunId>,
        at: Timestamp,
    ) -> Result<Option<Box<WorkerVersions>>, Error> {
        let plan = self.plan_loader.plan(Whose::Tenant(&source.tenant), &source.digest).await?;
        if !plan.has_children() {
            return Ok(None);
        }
        let mut used = BTreeMap::new();
        let mut row = source.clone();
        loop {
            for (workflow, digest) in self.used_below(&row, begun).await? {
                used.entry(workflow).or_insert(digest);
            }
            let Some(origin) = row.origin.take() else { break };
            let known = origin.workers.map(|workers| workers.used).unwrap_or_default();
            for (workflow, digest) in known {
                used.entry(workflow).or_insert(digest);
            }
            row = self.store.run(&origin.source).await?.ok_or_else(Error::run_not_found)?;
        }
        let first = self.log.log(&row, 0, 1).await?.pop().ok_or_else(Error::run_not_found)?.decode(&row.id)?;
        if let Event::RunStarted(started) = first.event
            && let Some(workers) = started.private.workers
        {
            // A child of a branch.
            for (workflow, digest) in workers.used {
                used.entry(workflow).or_insert(digest);
            }
        }
        Ok(Some(Box::new(WorkerVersions { as_of: at, used })))
    }

    async fn used_below(&self, row: &RunRow, begun: &HashSet<RunId>) -> Result<Vec<(WorkflowId, Digest)>, Error> {
        let root = row.root.clone().unwrap_or_else(|| row.id.clone());
        let mut filter = RunFilter { root: Some(root), limit: PAGE, ..RunFilter::default() };
        let mut found = Vec::new();
        loop {
            let page = self.store.runs(&filter).await?;
            found.extend(page.items);
            filter.cursor = page.next;
            if filter.cursor.is_none() || found.len() >= MOST_RUNS {
                break;
            }
        }
        let (below, before) = (below([&row.id], &found), below(begun, &found));
        let mut uses: BTreeMap<WorkflowId, Uses> = BTreeMap::new();
        // Newest first.
        for child in found.into_iter().filter(|child| below.contains(&child.id)) {
            let uses = uses.entry(child.workflow).or_default();
            if before.contains(&child.id) || begun.contains(&child.id) {
                uses.before.get_or_insert(child.digest);
            } else {
                uses.after = Some(child.digest);
            }
        }
        let one = |(workflow, uses): (WorkflowId, Uses)| Some((workflow, uses.after.or(uses.before)?));
        Ok(uses.into_iter().filter_map(one).collect())
    }
}

/// Those of a tree that descend from some of its runs.
fn below<'t>(runs: impl IntoIterator<Item = &'t RunId>, tree: &'t [RunRow]) -> HashSet<RunId> {
    let mut children: HashMap<&RunId, Vec<&RunId>> = HashMap::new();
    for row in tree {
        if let Some(parent) = &row.parent {
            children.entry(parent).or_default().push(&row.id);
        }
    }
    let (mut all, mut next) = (HashSet::new(), runs.into_iter().collect::<Vec<_>>());
    while let Some(parent) = next.pop() {
        for child in children.remove(parent).unwrap_or_default() {
            all.insert(child.clone());
            next.push(child);
        }
    }
    all
}
