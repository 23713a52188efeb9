//! For whoever operates the host: how it is doing, what is left alone, what may go.

use baton_model::{Connection, ConnectionKind, Principal, RunId, TenantId, code};
use baton_store::Quarantine;

use crate::health::HostStatus;
use crate::health::StorageUsage;
use crate::journal::lane::Lane;
use crate::run::tree::root_of;
use crate::services::retention_pass::{DueTree, RetentionReport};
use crate::{Error, ErrorKind, Host, PrunedTree, RetentionPolicy};

impl Host {
    pub fn condition(&self) -> HostStatus {
        let generation = self.rooms.storage.current().generation;
        self.rooms.health.condition(self.readiness(), generation)
    }

    /// How much there is in the store, about.
    pub async fn held(&self) -> Result<StorageUsage, Error> {
        self.rooms.health.held().await
    }

    /// How the links to everything outside are doing, by kind and name.
    pub fn connections(&self) -> Vec<Connection> {
        let rooms = &self.rooms;
        let started = rooms.health_state.started_at();
        let mut all = rooms.options.tools.connections();
        let providers = rooms.options.models.names().map(|name| (ConnectionKind::Provider, name));
        let remotes = rooms.options.remotes.names().map(|name| (ConnectionKind::Remote, name));
        all.extend(providers.chain(remotes).map(|(kind, name)| rooms.last_requests.connection(kind, name, started)));
        all.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        all
    }

    /// Trees of this tenant that are left alone, by their top; those after `after`.
    pub async fn quarantined(
        &self,
        tenant: &TenantId,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        Ok(self.rooms.store.quarantined(Some(tenant), after, limit).await?)
    }

    /// How many trees of all tenants are left alone.
    pub async fn count_quarantined(&self) -> Result<u64, Error> {
        Ok(self.rooms.store.count_quarantined().await?)
    }

    /// How many this process knows of, without asking the store.
    pub fn quarantined_here(&self) -> usize {
        self.rooms.quarantined.count()
    }

    /// Why the tree of a run is left alone, if it is.
    pub async fn quarantine(&self, tenant: &TenantId, run: &RunId) -> Result<Option<Quarantine>, Error> {
        let row = self.rooms.store.run(run).await?.filter(|row| row.tenant == *tenant);
        let row = row.ok_or_else(Error::run_not_found)?;
        Ok(self.rooms.quarantine.quarantine_of(root_of(&row)).await?.map(|held| held.as_ref().clone()))
    }

    /// Lets the tree of a run go on from where it was.
    pub async fn release(&self, who: &Principal, run: &RunId) -> Result<Quarantine, Error> {
        let Some(held) = self.quarantine(&who.tenant, run).await? else {
            let message = "This run is not in quarantine, so there is nothing to release.";
            return Err(Error::new(ErrorKind::Conflict, code::RUN_CONFLICT, message));
        };
        self.rooms.quarantine.release(&held.root).await?;
        Ok(held)
    }

    /// Prunes a top-level run that has ended, with everything below it: what its memory and workspace looked like, and
    /// with `log` the events too. Pruning again changes nothing, except that the log may go as well.
    pub async fn prune(&self, tenant: &TenantId, run: &RunId, log: bool) -> Result<PrunedTree, Error> {
        let (tenant, run) = (tenant.clone(), run.clone());
        self.rooms
            .tasks
            .see_through(&self.rooms, |rooms| async move {
                let name = format!("prune:{run}");
                rooms.claims.alone(&name, Lane::Of(&tenant), rooms.retention.prune(&tenant, &run, log)).await
            })
            .await
    }

    /// The same for many of them, and what came of each. Far cheaper than one by one.
    pub async fn prune_many(
        &self,
        tenant: &TenantId,
        runs: Vec<RunId>,
        log: bool,
    ) -> Result<Vec<(RunId, Result<PrunedTree, Error>)>, Error> {
        let tenant = tenant.clone();
        self.rooms
            .tasks
            .see_through(&self.rooms, |rooms| async move {
                let name = format!("prune:{tenant}");
                rooms.claims.alone(&name, Lane::Of(&tenant), rooms.retention.prune_many(&tenant, &runs, log)).await
            })
            .await
    }

    /// Prunes what the operator's rules do not keep of a tenant, as the host does by itself now and then.
    pub async fn apply_retention(&self, tenant: &TenantId) -> Result<RetentionReport, Error> {
        let tenant = tenant.clone();
        self.rooms
            .tasks
            .see_through(&self.rooms, |rooms| async move {
                let name = format!("prune:{tenant}");
                rooms.claims.alone(&name, Lane::Of(&tenant), rooms.retention_pass.prune_due(&tenant)).await
            })
            .await
    }

    /// What [`Self::apply_retention`] would prune now, newest first, up to a bound; and whether there is more.
    pub async fn retention_due(&self, tenant: &TenantId, limit: usize) -> Result<(Vec<DueTree>, bool), Error> {
        self.rooms.retention_pass.would_prune(tenant, limit).await
    }

    /// The rules by which the host prunes by itself.
    pub fn retention_policy(&self) -> &RetentionPolicy {
        &self.rooms.options.retention
    }
}
