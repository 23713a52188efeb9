//! What has been taken of a file so far: a store of its own, in memory, that shows it exactly as the host's will.

use crate::history::transfer::open::StagedStore;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use baton_model::{Digest, Limits, RunId, TenantId, WorkflowId, code};
use baton_store::{Commit, Journal as _, MemoryStore, VersionedStoreId, Write};

use super::Transferred;
use crate::history::log::RunLog;
use crate::history::transfer::open::{OpenRun, OpenStore};
use crate::history::transfer::service::Transfers;
use crate::{Error, ErrorKind};

pub(crate) struct Staged {
    pub(super) tenant: TenantId,
    /// Reads the logs in the store below.
    pub(super) log: Arc<RunLog>,
    pub(super) limits: Limits,
    pub(super) store: Arc<MemoryStore>,
    /// The run the file was made for, and the top of the oldest tree in it.
    pub(super) run: RunId,
    pub(super) first: RunId,
    /// In the order they came.
    pub(super) definitions: Vec<StagedDefinition>,
    pub(super) workflows: BTreeMap<Digest, WorkflowId>,
    pub(super) agents: BTreeSet<Digest>,
    /// Those of them that some run is pinned to.
    pub(super) pinned: BTreeSet<Digest>,
    pub(super) ledgers: Vec<StagedStore>,
    /// How far each versioned store goes.
    pub(super) reaches: HashMap<VersionedStoreId, u64>,
    pub(super) open_store: Option<OpenStore>,
    /// With the line each begins at.
    pub(super) runs: Vec<(RunId, u64)>,
    pub(super) open_run: Option<OpenRun>,
    /// How many of them are forks.
    pub(super) forks: usize,
    pub(super) holds: Transferred,
    /// Bytes taken by what stands for forgotten changes.
    pub(super) filler: u64,
}

pub(crate) struct StagedDefinition {
    pub(super) digest: Digest,
    pub(super) workflow: WorkflowId,
    pub(super) name: String,
}

impl Staged {
    pub(super) fn new(transfers: &Transfers, tenant: &TenantId) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self {
            tenant: tenant.clone(),
            log: Arc::new(transfers.log.over(Arc::clone(&store) as _, transfers.clock.now())),
            limits: transfers.options.limits,
            store,
            run: RunId::new(""),
            first: RunId::new(""),
            definitions: Vec::new(),
            workflows: BTreeMap::new(),
            agents: BTreeSet::new(),
            pinned: BTreeSet::new(),
            ledgers: Vec::new(),
            reaches: HashMap::new(),
            open_store: None,
            runs: Vec::new(),
            open_run: None,
            forks: 0,
            holds: Transferred::default(),
            filler: 0,
        }
    }

    pub(super) async fn write(&self, writes: Vec<Write>) -> Result<(), Error> {
        let written = self.store.submit(Commit::new(self.store.generation(), writes)).await;
        // Lines are judged before they are written, so there is nothing left to refuse.
        written.map_err(|error| {
            Error::new(ErrorKind::Internal, code::INTERNAL_ERROR, "The file could not be taken in.").because(error)
        })
    }

    /// Nothing may be left half told.
    pub(super) async fn close(&mut self, line: u64) -> Result<(), Error> {
        self.close_store().await?;
        self.close_run(line).await
    }
}
