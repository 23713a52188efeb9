//! What test seams may do beyond the public surface. They drive the same engine; nothing here answers by itself.

use std::collections::BTreeMap;

use baton_engine::Command;
use baton_model::{RunId, TenantId, code};
use serde_json::{Map, Value};

use crate::{Error, Host, Kind, RegisteredWorkflow};

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
        let plan = self.inner.plans.compile_seam(definition.clone())?;
        let tenant = tenant.clone();
        self.inner.see_through(|inner| async move { inner.register(&tenant, definition, plan).await }).await
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
