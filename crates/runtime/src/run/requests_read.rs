//! Reading what an answer needs, with no lock held.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_engine::{Found, NodeRequest, Probe, ReadVersion, Request, TurnContext};
use baton_model::{MemoryEntry, RunId, Scope, Timestamp, TurnSnapshot, ValueBounds};
use baton_store::{Change, ReadView};

use crate::Error;
use crate::clock::Clock;
use crate::services::agents::service::Agents;
use crate::services::versioned::VersionedStore;
use crate::services::versioned::prepared::{Prepared, entries, read_view_of};
use crate::services::versioned::read::latest;
use crate::services::versioned::run_stores::RunStores;
use crate::services::versioned::service::VersionedStores;
use crate::steps::Stepping;

/// Entries that are fetched at once. An entry has 64 KiB at most, so that a lot has a few megabytes.
const ENTRIES_AT_ONCE: usize = 128;

/// Reads what nodes ask for.
pub(crate) struct NodeRequests {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) versioned: Arc<VersionedStores>,
}

impl NodeRequests {
    pub(crate) async fn prepare(
        &self,
        what: Stepping<'_>,
        ledgers: &RunStores,
        node_request: &NodeRequest,
    ) -> Result<Prepared, Error> {
        let run = what.run;
        let at = self.clock.now();
        let RunStores { memory, workspace } = ledgers;
        Ok(match &node_request.request {
            Request::Turn { frozen, memory, workspace, agent } => {
                if frozen.is_none() {
                    self.versioned.follow(&ledgers.memory).await?;
                    self.versioned.follow(&ledgers.workspace).await?;
                }
                let frozen = frozen.unwrap_or(TurnSnapshot { versions: ledgers.versions(), at });
                // A turn of rules that reads them is refused without the scopes, before it comes here. An agent does
                // without: what it is shown, whoever started the run may read by its words.
                let may = |scope| agent.as_ref().is_none_or(|request| request.may(scope));
                let (memory, workspace) = (*memory && may(Scope::MemoryRead), *workspace && may(Scope::WorkspaceRead));
                let mut frame = self.frame(ledgers, frozen, memory, workspace).await?;
                if let Some(request) = agent {
                    match self.agents.brief(what, ledgers, request).await? {
                        Ok(brief) => frame.brief = Some(Box::new(brief)),
                        Err(fault) => return Ok(Prepared::Failed(fault)),
                    }
                }
                Prepared::Found(Found::Turn(frame))
            }
            Request::Invoke(request) => match self.agents.brief(what, ledgers, request).await? {
                Ok(brief) => Prepared::Found(Found::InvocationContext(Box::new(brief))),
                Err(fault) => Prepared::Failed(fault),
            },
            Request::Tool(lookup) => match self.agents.find_tool(what.tenant, lookup) {
                Ok(found) => Prepared::Found(Found::Tool(Box::new(found))),
                Err(fault) => Prepared::Failed(fault),
            },
            Request::Remember(_) => {
                self.versioned.recount_if_full(memory).await?;
                Prepared::Indexed
            }
            Request::WriteFile { .. } => {
                self.versioned.load_index(workspace).await?;
                Prepared::Indexed
            }
            Request::Forget { id, read_version } => {
                let version = memory.version();
                let in_sight = self.versioned.view_one(memory, id, &own_sight(run, *read_version, at)).await?.is_some();
                let there = in_sight && self.versioned.view_one(memory, id, &latest(at)).await?.is_some();
                Prepared::Exists { there, version }
            }
            Request::Recall { id, read_version } => {
                let shown = self.versioned.view_one(memory, id, &own_sight(run, *read_version, at)).await?;
                Prepared::Found(Found::Entry(shown.as_ref().and_then(Change::entry)))
            }
            Request::Recollect { tag, limit, read_version } => {
                let lens = read_view_of(run, *read_version, tag.clone(), *limit, at);
                Prepared::Found(Found::Entries(self.entries_in_lots(memory, lens).await?))
            }
            Request::ReadFile { path, version } => {
                let shown = self.versioned.view_one(workspace, path, &ReadView::at(*version, at)).await?;
                Prepared::Found(Found::File(shown.as_ref().and_then(Change::file)))
            }
            Request::ListFiles { prefix, version } => {
                let lens = ReadView { prefix: prefix.clone(), bare: true, ..ReadView::at(*version, at) };
                let mut files: Vec<_> =
                    self.versioned.view(workspace, &lens).await?.iter().filter_map(Change::file_meta).collect();
                files.sort_by(|a, b| a.path.cmp(&b.path));
                Prepared::Found(Found::Files(files))
            }
            Request::Probe(probe) => {
                self.versioned.load_index(memory).await?;
                match probe {
                    Probe::CrossTenant { memory_ref } => {
                        Prepared::Foreign(self.versioned.foreign(memory, memory_ref, at).await?)
                    }
                    Probe::WriteThenRead | Probe::Redaction { .. } | Probe::Ttl => Prepared::Indexed,
                }
            }
        })
    }

    /// Entries for one value. They are fetched lot by lot, and no further once there are more than any value may hold:
    /// the node fails then, whatever else there is.
    async fn entries_in_lots(&self, memory: &VersionedStore, lens: ReadView) -> Result<Vec<MemoryEntry>, Error> {
        let most = ValueBounds::default().largest_value();
        let wanted = lens.limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let (mut bytes, mut before) = (0_u64, lens.before);
        while found.len() < wanted && bytes <= most {
            let lot = ENTRIES_AT_ONCE.min(wanted - found.len());
            let shown = self.versioned.view(memory, &ReadView { before, limit: Some(lot), ..lens.clone() }).await?;
            let (count, last) = (shown.len(), shown.last().map(|change| change.version));
            let more = entries(&shown);
            bytes += more.iter().map(|entry| entry.content.len() as u64).sum::<u64>();
            found.extend(more);
            if count < lot || last.is_none() {
                break;
            }
            before = last;
        }
        Ok(found)
    }

    /// What a turn sees, frozen.
    pub(crate) async fn frame(
        &self,
        ledgers: &RunStores,
        frozen: TurnSnapshot,
        memory: bool,
        workspace: bool,
    ) -> Result<TurnContext, Error> {
        let TurnSnapshot { versions, at } = frozen;
        let memory = match memory {
            true => entries(&self.versioned.view(&ledgers.memory, &ReadView::at(versions.memory, at)).await?),
            false => Vec::new(),
        };
        let workspace = match workspace {
            true => {
                let files = self.versioned.view(&ledgers.workspace, &ReadView::at(versions.workspace, at)).await?;
                files.iter().filter_map(Change::file).map(|file| (file.meta.path.clone(), file)).collect()
            }
            false => BTreeMap::new(),
        };
        Ok(TurnContext { versions, memory, workspace, brief: None })
    }
}

fn own_sight(run: &RunId, read_version: ReadVersion, at: Timestamp) -> ReadView {
    read_view_of(run, read_version, None, None, at)
}
