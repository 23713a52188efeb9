//! The agents and prompts that a host has, tenant by tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use baton_model::{AgentCard, Digest, TenantId, code};

use crate::capabilities::Capabilities;
use crate::inventory::{Inventory, InventoryEntry};
use crate::pack_reader::Pack;
use crate::problem::Problem;
use crate::prompts::Library;
use crate::range::Range;
use crate::signature::Provenance;

/// The origin of the pack that comes with the binary.
pub(crate) const BUNDLED: &str = "bundled";

/// A pack that was read, and where.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) tenant: Option<TenantId>,
    pub(crate) pack: Pack,
    pub(crate) origin: String,
    pub(crate) sha256: Option<Digest>,
}

/// An agent that can be called.
#[derive(Clone, Debug)]
pub struct Agent {
    pub card: Arc<AgentCard>,
    /// What runs are pinned to.
    pub digest: Digest,
    pub entry: InventoryEntry,
}

/// A pack that is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackInfo {
    pub name: String,
    pub version: String,
    pub description: Option<String>,
    /// Where it was found.
    pub origin: String,
    /// Of the archive, where it is one.
    pub sha256: Option<Digest>,
    pub provenance: Provenance,
    pub agents: Vec<String>,
    pub prompts: usize,
}

/// Everything that was found. It does not change: load again for something else.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    shared: OwnerPacks,
    tenants: BTreeMap<TenantId, OwnerPacks>,
    host_prompts: Library,
    problems: Vec<Problem>,
}

/// The packs of one owner, by name.
#[derive(Clone, Debug, Default)]
struct OwnerPacks(BTreeMap<String, InstalledPack>);

/// A pack in its newest version.
#[derive(Clone, Debug)]
struct InstalledPack {
    info: PackInfo,
    agents: BTreeMap<String, Agent>,
    prompts: Vec<Arc<crate::prompts::PromptTemplate>>,
    /// The agents of its earlier versions, for whoever asks for one of those by its number.
    earlier: Vec<BTreeMap<String, Agent>>,
}

impl InstalledPack {
    /// Everything it brings, of every version.
    fn all(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values().chain(self.earlier.iter().flat_map(BTreeMap::values))
    }
}

impl Registry {
    pub(crate) fn of(
        candidates: Vec<Candidate>,
        mut problems: Vec<Problem>,
        host_prompts: Library,
        host: &Capabilities,
        ignored_requirements: &BTreeSet<String>,
    ) -> Self {
        let mut able: Vec<(Candidate, Vec<String>)> = Vec::new();
        for candidate in candidates {
            match candidate.pack.manifest.unmet_requirements(&candidate.origin, host, ignored_requirements) {
                Ok(unmet) => able.push((candidate, unmet)),
                Err(problem) => problems.push(problem),
            }
        }
        let (able, earlier) = newest(able, &mut problems);
        let able = with_dependencies(able, &mut problems);
        let whole = |(candidate, _): &(Candidate, Vec<String>)| missing(candidate, &able).is_none();
        let earlier: Vec<(Candidate, Vec<String>)> = earlier.into_iter().filter(whole).collect();
        let mut registry = Self { host_prompts, problems, ..Self::default() };
        for (candidate, unmet) in able {
            let packs = match &candidate.tenant {
                None => &mut registry.shared,
                Some(tenant) => registry.tenants.entry(tenant.clone()).or_default(),
            };
            packs.0.insert(candidate.pack.manifest.name.clone(), installed(candidate, &unmet, host));
        }
        for (candidate, unmet) in earlier {
            let packs = match &candidate.tenant {
                None => Some(&mut registry.shared),
                Some(tenant) => registry.tenants.get_mut(tenant),
            };
            let name = candidate.pack.manifest.name.clone();
            if let Some(newest) = packs.and_then(|packs| packs.0.get_mut(&name)) {
                newest.earlier.push(installed(candidate, &unmet, host).agents);
            }
        }
        registry
    }

    /// What keeps packs, agents and templates from being used.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The packs a tenant sees: the shared ones, and its own, which go first where both have one of a name.
    fn packs_of<'a>(&'a self, tenant: &TenantId) -> impl Iterator<Item = &'a InstalledPack> + use<'a> {
        let own = self.tenants.get(tenant);
        let shadowed = move |name: &String| own.is_some_and(|own| own.0.contains_key(name));
        let shared = self.shared.0.iter().filter(move |(name, _)| !shadowed(name)).map(|(_, pack)| pack);
        own.into_iter().flat_map(|packs| packs.0.values()).chain(shared)
    }

    pub fn packs(&self, tenant: &TenantId) -> Vec<&PackInfo> {
        let mut packs: Vec<&PackInfo> = self.packs_of(tenant).map(|pack| &pack.info).collect();
        packs.sort_by(|a, b| a.name.cmp(&b.name));
        packs
    }

    /// Every pack in use that was found in a folder, whoever may see it.
    pub fn all_packs(&self) -> impl Iterator<Item = &PackInfo> {
        let owners = std::iter::once(&self.shared).chain(self.tenants.values());
        owners.flat_map(|packs| packs.0.values()).map(|pack| &pack.info).filter(|info| info.origin != BUNDLED)
    }

    /// The agents a tenant may call, by id.
    pub fn agents(&self, tenant: &TenantId) -> Vec<&Agent> {
        let mut agents: Vec<&Agent> = self.packs_of(tenant).flat_map(|pack| pack.agents.values()).collect();
        agents.sort_by(|a, b| a.card.agent_id.cmp(&b.card.agent_id));
        agents
    }

    /// One agent. Another tenant's is as unknown as one that does not exist.
    pub fn agent(&self, tenant: &TenantId, id: &str) -> Option<&Agent> {
        self.packs_of(tenant).find_map(|pack| pack.agents.get(id))
    }

    /// One agent in one version, whether or not that is the newest.
    pub fn agent_version(&self, tenant: &TenantId, id: &str, version: &str) -> Option<&Agent> {
        let wanted = |agent: &&Agent| agent.card.agent_id == id && agent.card.pack_version == version;
        self.packs_of(tenant).flat_map(InstalledPack::all).find(wanted)
    }

    pub fn inventory(&self, tenant: &TenantId) -> Inventory {
        Inventory::of(self.agents(tenant).into_iter().map(|agent| agent.entry.clone()).collect())
    }

    /// Every card there is in every version, whoever may see it: a host keeps them, so that runs find theirs again.
    pub fn cards(&self) -> impl Iterator<Item = (&Digest, &Arc<AgentCard>)> {
        let owners = std::iter::once(&self.shared).chain(self.tenants.values());
        let agents = owners.flat_map(|packs| packs.0.values()).flat_map(InstalledPack::all);
        agents.map(|agent| (&agent.digest, &agent.card))
    }

    /// The templates a tenant may use: the host's own, and one library for each prompt pack.
    pub fn library(&self, tenant: &TenantId) -> Library {
        let mut library = self.host_prompts.clone();
        for pack in self.packs_of(tenant) {
            for template in &pack.prompts {
                library.add(&pack.info.name, template.clone());
            }
        }
        library
    }
}

/// Leaves out packs that build on packs that are not there, until nothing more has to go.
fn with_dependencies(
    mut able: Vec<(Candidate, Vec<String>)>,
    problems: &mut Vec<Problem>,
) -> Vec<(Candidate, Vec<String>)> {
    loop {
        let lost: Vec<Option<Problem>> = able.iter().map(|(candidate, _)| missing(candidate, &able)).collect();
        if lost.iter().all(Option::is_none) {
            return able;
        }
        let mut stays = lost.iter().map(Option::is_none);
        able.retain(|_| stays.next().unwrap_or(true));
        problems.extend(lost.into_iter().flatten());
    }
}

/// The first pack that a pack builds on and its owner does not see in a version that will do.
fn missing(candidate: &Candidate, able: &[(Candidate, Vec<String>)]) -> Option<Problem> {
    let seen = |name: &str, tenant: &Option<TenantId>| {
        let of = |(other, _): &&(Candidate, Vec<String>)| other.tenant == *tenant && other.pack.manifest.name == name;
        able.iter().find(of).map(|(other, _)| &other.pack.manifest.version)
    };
    let fits = |name: &str, range: &Range| {
        seen(name, &candidate.tenant).or_else(|| seen(name, &None)).is_some_and(|version| range.admits(version))
    };
    let wanted = &candidate.pack.manifest.dependencies;
    let (name, range) =
        wanted.iter().find(|(name, range)| !Range::read(range).is_some_and(|range| fits(name, &range)))?;
    Some(dependency_problem(candidate, name, range))
}

fn dependency_problem(candidate: &Candidate, name: &str, range: &str) -> Problem {
    let code = if candidate.pack.prompts.is_empty() {
        code::PACK_VERSION_NOT_FOUND
    } else {
        code::PROMPT_PACK_DEPENDENCY_UNRESOLVABLE
    };
    let place = format!("{}/pack.json#/dependencies", candidate.origin);
    Problem::new(code, place, format!("The pack builds on `{name}` ({range}), which is not here. Install it too."))
}

/// A pack that can be used, and what it does without.
type Able = (Candidate, Vec<String>);

/// Of each pack, for each owner, the highest version; and the others.
fn newest(able: Vec<Able>, problems: &mut Vec<Problem>) -> (Vec<Able>, Vec<Able>) {
    type Versions = BTreeMap<semver::Version, Able>;
    let mut packs: BTreeMap<(Option<TenantId>, String), Versions> = BTreeMap::new();
    for (candidate, unmet) in able {
        let manifest = &candidate.pack.manifest;
        let versions = packs.entry((candidate.tenant.clone(), manifest.name.clone())).or_default();
        match versions.get(&manifest.version) {
            // A copy of the bundled pack in a folder is there to be changed, so it goes before it.
            Some((other, _)) if other.origin != BUNDLED => {
                let message = format!("`{}` has the same pack in the same version; remove one of them.", other.origin);
                problems.push(Problem::new(code::INVALID_MANIFEST, candidate.origin.clone(), message));
            }
            _ => {
                versions.insert(manifest.version.clone(), (candidate, unmet));
            }
        }
    }
    let (mut best, mut earlier) = (Vec::new(), Vec::new());
    for mut versions in packs.into_values() {
        best.extend(versions.pop_last().map(|(_, able)| able));
        earlier.extend(versions.into_values().rev());
    }
    (best, earlier)
}

fn installed(candidate: Candidate, unmet: &[String], host: &Capabilities) -> InstalledPack {
    let Candidate { pack, origin, sha256, .. } = candidate;
    let agents: BTreeMap<String, Agent> = pack
        .agents
        .into_iter()
        .map(|agent| {
            let entry = InventoryEntry::of(&agent, unmet, host);
            let digest = agent.card.digest();
            (entry.agent_id.clone(), Agent { card: Arc::new(agent.card), digest, entry })
        })
        .collect();
    let info = PackInfo {
        name: pack.manifest.name,
        version: pack.manifest.version.to_string(),
        description: pack.manifest.description,
        origin,
        sha256,
        provenance: pack.provenance,
        agents: agents.keys().cloned().collect(),
        prompts: pack.prompts.len(),
    };
    InstalledPack { info, agents, prompts: pack.prompts, earlier: Vec::new() }
}
