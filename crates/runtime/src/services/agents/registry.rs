use std::collections::BTreeMap;
use std::sync::Arc;

use baton_agent::Registry;
use baton_agent::prompts::Library;
use baton_model::{AgentCard, Digest, ModelChoice, ModelClass, TenantId};

use crate::services::workflows::shared::SHARED;

/// The agents of a host: what its packs bring, and what it was given besides.
#[derive(Clone, Debug, Default)]
pub struct AgentRegistry {
    registry: Arc<Registry>,
    /// These come first. Of each the one that was given last is meant, unless somebody asks for another version.
    given: BTreeMap<(TenantId, String), Vec<Arc<AgentCard>>>,
    /// Templates for every tenant, besides those of the packs.
    prompts: Library,
}

impl AgentRegistry {
    pub fn of(registry: Arc<Registry>) -> Self {
        Self { registry, ..Self::default() }
    }

    /// The same with one more agent. `None` shares it with every tenant.
    #[must_use]
    pub fn with(mut self, tenant: Option<&TenantId>, card: AgentCard) -> Self {
        let owner = tenant.cloned().unwrap_or_else(|| TenantId::new(SHARED));
        let versions = self.given.entry((owner, card.agent_id.clone())).or_default();
        versions.retain(|known| known.pack_version != card.pack_version);
        versions.push(Arc::new(card));
        self
    }

    /// The agent that a tenant knows under this id.
    pub fn get(&self, tenant: &TenantId, id: &str) -> Option<&Arc<AgentCard>> {
        let given = |owner: TenantId| self.given.get(&(owner, id.to_owned()))?.last();
        let packed = || self.registry.agent(tenant, id).map(|agent| &agent.card);
        given(tenant.clone()).or_else(|| given(TenantId::new(SHARED))).or_else(packed)
    }

    /// The same agent in one version and no other.
    pub fn get_version(&self, tenant: &TenantId, id: &str, version: &str) -> Option<&Arc<AgentCard>> {
        let owners = [tenant.clone(), TenantId::new(SHARED)];
        let mut given = owners.into_iter().filter_map(|owner| self.given.get(&(owner, id.to_owned()))).flatten();
        let packed = || self.registry.agent_version(tenant, id, version).map(|agent| &agent.card);
        given.find(|card| card.pack_version == version).or_else(packed)
    }

    /// Everything a tenant has, by id.
    pub fn visible(&self, tenant: &TenantId) -> Vec<Arc<AgentCard>> {
        let packed = self.registry.agents(tenant).into_iter().map(|agent| Arc::clone(&agent.card));
        let mut all: BTreeMap<String, Arc<AgentCard>> = packed.map(|card| (card.agent_id.clone(), card)).collect();
        for owner in [TenantId::new(SHARED), tenant.clone()] {
            let own = self.given.iter().filter(|((of, _), _)| *of == owner);
            all.extend(own.filter_map(|((_, id), versions)| Some((id.clone(), Arc::clone(versions.last()?)))));
        }
        all.into_values().collect()
    }

    /// Whether nobody has an agent.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty() && self.registry.cards().next().is_none()
    }

    /// The packs behind it.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The same with more prompt templates, for every tenant.
    #[must_use]
    pub fn with_prompts(mut self, prompts: &Library) -> Self {
        self.prompts.extend(prompts);
        self
    }

    /// The templates a tenant may use.
    pub fn library(&self, tenant: &TenantId) -> Library {
        let mut library = self.registry.library(tenant);
        library.extend(&self.prompts);
        library
    }

    pub(crate) fn version(&self, digest: &Digest) -> Option<Arc<AgentCard>> {
        self.versions().find(|(known, _)| known == digest).map(|(_, card)| card)
    }

    pub(crate) fn versions(&self) -> impl Iterator<Item = (Digest, Arc<AgentCard>)> {
        let packed = self.registry.cards().map(|(digest, card)| (digest.clone(), Arc::clone(card)));
        packed.chain(self.given.values().flatten().map(|card| (card.digest(), Arc::clone(card))))
    }
}

/// Which model stands for which class.
#[derive(Clone, Debug, Default)]
pub struct ModelTable {
    classes: BTreeMap<ModelClass, ModelChoice>,
    default: Option<ModelChoice>,
}

impl ModelTable {
    #[must_use]
    pub fn class(mut self, class: ModelClass, choice: ModelChoice) -> Self {
        self.classes.insert(class, choice);
        self
    }

    /// What stands for every class that has nothing of its own.
    #[must_use]
    pub fn otherwise(mut self, choice: ModelChoice) -> Self {
        self.default = Some(choice);
        self
    }

    /// The same, with this for every class where nothing is said about all.
    #[must_use]
    pub(crate) fn or_otherwise(self, choice: ModelChoice) -> Self {
        Self { default: self.default.or(Some(choice)), ..self }
    }

    /// Every model in it.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &ModelChoice> {
        self.classes.values().chain(&self.default)
    }

    pub fn get(&self, class: ModelClass) -> Option<&ModelChoice> {
        self.classes.get(&class).or(self.default.as_ref())
    }
}
