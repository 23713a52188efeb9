//! What a test mode may do beyond the public surface. It drives the same engine; nothing here answers by itself.

use std::collections::BTreeSet;

use baton_engine::Command;
use baton_model::{AgentCard, Digest, ModelChoice, RunId, TenantId, code, json};
use baton_store::Write;
use serde_json::{Map, Value};

use crate::journal::lane::Lane;
use crate::run::SecondExecutor;
use crate::services::workflows::Plans;
use crate::{Error, ErrorKind, Host, RegisteredWorkflow};

impl Host {
    /// Registers a test workflow whatever its id: other hosts' tests name theirs freely.
    pub async fn register_test_workflow(
        &self,
        tenant: &TenantId,
        definition: Value,
    ) -> Result<RegisteredWorkflow, Error> {
        self.in_a_test("Test workflows can be registered in conformance mode only.")?;
        let compiled = self.rooms.workflows.compile(tenant, definition, Plans::compile_for_test).await?;
        let tenant = tenant.clone();
        self.rooms
            .tasks
            .see_through(&self.rooms.workflows, |workflows| async move { workflows.register(&tenant, compiled).await })
            .await
    }

    /// Keeps an agent under its digest, for a run that asks for it. Nobody finds it by its name.
    pub async fn keep_test_agent(&self, card: &AgentCard) -> Result<Digest, Error> {
        self.in_a_test("Agents are called without their schemas in conformance mode only.")?;
        let digest = card.digest();
        if self.rooms.store.blob(&digest).await?.is_none() {
            let bytes = json::canonical(&serde_json::to_value(card).unwrap_or_default());
            let write = Write::PutBlob { digest: digest.clone(), bytes };
            self.rooms.storage.write(self.rooms.storage.live()?.generation, Lane::Host, vec![write]).await?;
        }
        Ok(digest)
    }

    /// Takes up a run that is being executed, as if its executor were gone.
    pub async fn second_executor(&self, run: &RunId) -> Result<SecondExecutor, Error> {
        self.in_a_test("Runs are taken up twice in conformance mode only.")?;
        SecondExecutor::new(&self.rooms.stepper, &self.rooms.log, run).await
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

    /// Whether the run is one of this tenant's. A foreign run looks exactly like an unknown one.
    pub async fn owns(&self, tenant: &TenantId, run: &RunId) -> Result<(), Error> {
        self.rooms.reads.authorize(tenant, run).await
    }

    /// What a model can do, if its provider is here.
    pub fn offers(&self, model: &ModelChoice) -> Option<BTreeSet<String>> {
        self.rooms.agents.offers(model)
    }

    fn in_a_test(&self, message: &str) -> Result<(), Error> {
        match self.rooms.options.test_hooks {
            Some(_) => Ok(()),
            None => Err(Error::new(ErrorKind::Forbidden, code::FORBIDDEN, message)),
        }
    }
}
