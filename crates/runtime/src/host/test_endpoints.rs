//! What test seams may do beyond the public surface. They drive the same engine; nothing here answers by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_engine::{Command, Transcript};
use baton_model::{AgentCard, Digest, Event, RunId, TenantId, code, json};
use baton_store::{Commit, Write};
use serde_json::{Map, Value};

use crate::services::tools::Hold;
use crate::services::workflows::Plans;
use crate::{Error, Host, Kind, RegisteredWorkflow};

/// How long a run may take to get to its effect.
const STALLED_WITHIN: Duration = Duration::from_secs(10);

impl Host {
    /// Switches a capability that registration consults; `None` clears every switch. Returns the switches in force.
    pub fn toggle_capability(&self, name: Option<(String, Option<bool>)>) -> BTreeMap<String, bool> {
        self.inner.plans.toggle(name)
    }

    /// The switches in force.
    pub fn capability_overlay(&self) -> BTreeMap<String, bool> {
        self.inner.plans.overlay()
    }

    /// Registers a test workflow whatever its id: other hosts' tests name theirs freely.
    pub async fn register_seam_workflow(
        &self,
        tenant: &TenantId,
        definition: Value,
    ) -> Result<RegisteredWorkflow, Error> {
        if !self.inner.options.conformance {
            let message = "Test workflows can be registered in conformance mode only.";
            return Err(Error::new(Kind::Forbidden, code::FORBIDDEN, message));
        }
        let compiled = self.inner.compile(tenant, definition, Plans::compile_seam).await?;
        let tenant = tenant.clone();
        self.inner.see_through(|inner| async move { inner.register(&tenant, compiled).await }).await
    }

    /// The same agent without the schemas of its handoffs, for a test that wants them not looked at. It is kept under its
    /// digest, for a run that asks for it, and nobody finds it by its name.
    pub async fn unchecked(&self, card: &AgentCard) -> Result<Digest, Error> {
        if !self.inner.options.conformance {
            let message = "Agents are called without their schemas in conformance mode only.";
            return Err(Error::new(Kind::Forbidden, code::FORBIDDEN, message));
        }
        let card = AgentCard { task_schema: None, return_schema: None, ..card.clone() };
        let digest = card.digest();
        if self.inner.store.blob(&digest).await?.is_none() {
            let bytes = json::canonical(&serde_json::to_value(&card).unwrap_or_default());
            let write = Write::PutBlob { digest: digest.clone(), bytes };
            self.inner.store.submit(Commit::new(self.inner.world()?.generation, vec![write])).await?;
        }
        Ok(digest)
    }

    /// What a supervisor was told in one turn of the turns before, read off what that turn and those before it recorded.
    pub async fn transcript_window(&self, tenant: &TenantId, run: &RunId, turn: u64) -> Result<Transcript, Error> {
        const PAGE: usize = 1000;
        self.inner.authorize(tenant, run).await?;
        let row = self.inner.store.run(run).await?.ok_or_else(Error::run_not_found)?;
        let mut window = Transcript::default();
        let mut next = 0;
        loop {
            let page = self.inner.log(&row, next, PAGE).await?;
            for stored in &page {
                if let Event::NodeStarted(start) = stored.decode(run)?.event
                    && let Some(change) = start.private.transcript
                {
                    window.take(&change);
                    if change.iteration == turn {
                        return Ok(window);
                    }
                }
            }
            next += page.len() as u64;
            if page.len() < PAGE {
                let message = format!("The run has recorded no turn {turn} with a transcript.");
                let error = Error::new(Kind::Unprocessable, code::VALIDATION_ERROR, message);
                return Err(error.with("iteration", turn));
            }
        }
    }

    /// How often a run has really reached outwards in this process: tools, HTTP, children on other hosts.
    pub async fn effect_count(&self, tenant: &TenantId, run: &RunId) -> Result<u64, Error> {
        self.inner.authorize(tenant, run).await?;
        Ok(self.inner.effects_of(run))
    }

    /// Has several executors reach a run's next effect, and returns the key that each of them made for it. The first is the
    /// run's own, stalled just before the effect; `go` lets the run get there.
    pub async fn race_effect(
        &self,
        tenant: &TenantId,
        run: &RunId,
        executors: usize,
        go: impl Future<Output = Result<(), Error>>,
    ) -> Result<Vec<String>, Error> {
        if !self.inner.options.conformance {
            let message = "Effects are held in conformance mode only.";
            return Err(Error::new(Kind::Forbidden, code::FORBIDDEN, message));
        }
        self.inner.authorize(tenant, run).await?;
        let hold = Hold::new(&self.inner, run);
        go.await?;
        let reached = tokio::time::timeout(STALLED_WITHIN, hold.reached()).await;
        let first = reached.map_err(|_| Error::unavailable("The run did not come to its effect in time."))?;
        let mut keys = vec![first];
        keys.extend(self.inner.race(run, executors.saturating_sub(1)).await?);
        Ok(keys)
    }

    /// Changes a run's variables from outside its graph.
    pub async fn set_variables(
        &self,
        tenant: &TenantId,
        run: &RunId,
        variables: Map<String, Value>,
    ) -> Result<Map<String, Value>, Error> {
        self.command(tenant, run, Command::SetVariables { variables }, None).await?;
        Ok(self.snapshot(tenant, run).await?.variables)
    }
}
