//! Which tools there are, for whom.
//!
//! A toolbox has one set that everybody shares and one for each tenant that has tools of its own; a tenant's tool
//! hides a shared one of the same id. Tools that come and go with a server are asked of their [`ToolSource`] every time.
//! Clones are the same toolbox: whoever replaces a set replaces it for all, and calls under way finish on the tools
//! they started with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use baton_model::tool::{SafetyTier, ToolRequest};
use baton_model::{Connection, TenantId, ToolSpec, code};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};

use crate::alias::Aliases;
use crate::catalog::{Source, ToolDescriptor};
use crate::hooks::Held;
use crate::{Called, Tool, mcp};

/// A source of tools that may change while the host runs.
pub trait ToolSource: Send + Sync {
    /// What it is called in ids: `mcp:<name>.<tool>`, and `mcp:<name>` for all of its tools.
    fn name(&self) -> &str;

    /// What it has now.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Resolves when it knows what it has, or when that is not worth waiting for any longer. `None` if so already.
    fn pending(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Why it cannot say what it has, if it never could.
    fn absence(&self) -> Option<String> {
        None
    }

    /// How the link to it is doing, if it has one.
    fn connection(&self) -> Option<Connection> {
        None
    }

    /// Lets go of whatever it holds, within a bounded time.
    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// A set of tools, being put together.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
    sources: Vec<Arc<dyn ToolSource>>,
}

/// Why a tool has no place in a toolbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolSetError {
    #[error("`{0}` may run anything, which only tools of this host may")]
    Exec(String),
    #[error("there is already a tool `{0}`")]
    Twice(String),
}

impl ToolSet {
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Result<Self, ToolSetError> {
        let id = &tool.spec().id;
        if !is_admissible(&*tool) {
            return Err(ToolSetError::Exec(id.clone()));
        }
        if self.tools.iter().any(|known| known.spec().id == *id) {
            return Err(ToolSetError::Twice(id.clone()));
        }
        self.tools.push(tool);
        Ok(self)
    }

    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Result<Self, ToolSetError> {
        if self.sources.iter().any(|known| known.name() == source.name()) {
            return Err(ToolSetError::Twice(format!("mcp:{}", source.name())));
        }
        self.sources.push(source);
        Ok(self)
    }

    fn all(&self) -> impl Iterator<Item = Arc<dyn Tool>> {
        let offered = self.sources.iter().flat_map(|source| source.tools()).filter(|tool| is_admissible(&**tool));
        self.tools.iter().cloned().chain(offered)
    }
}

/// Only the host itself offers tools that may run anything.
fn is_admissible(tool: &dyn Tool) -> bool {
    tool.spec().tier != SafetyTier::Exec || tool.about().source == Source::HostExtension
}

/// The tools of a host. Cheap to clone.
#[derive(Clone, Default)]
pub struct Toolbox {
    sets: Arc<ArcSwap<ToolSets>>,
}

#[derive(Clone, Default)]
struct ToolSets {
    aliases: Arc<Aliases>,
    shared: ToolSet,
    tenants: BTreeMap<TenantId, ToolSet>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Toolbox")
    }
}

impl ToolSets {
    /// What a tenant has, its own first.
    fn of(&self, tenant: &TenantId) -> impl Iterator<Item = &ToolSet> {
        self.tenants.get(tenant).into_iter().chain([&self.shared])
    }
}

impl Toolbox {
    pub fn new(shared: ToolSet) -> Self {
        let toolbox = Self::default();
        toolbox.share(shared);
        toolbox
    }

    /// Replaces the names that stand for tools.
    pub fn rename(&self, aliases: Aliases) {
        let aliases = Arc::new(aliases);
        self.sets.rcu(|all| ToolSets { aliases: Arc::clone(&aliases), ..ToolSets::clone(all) });
    }

    /// Replaces what everybody has.
    pub fn share(&self, set: ToolSet) {
        self.sets.rcu(|all| ToolSets { shared: set.clone(), ..ToolSets::clone(all) });
    }

    /// Replaces what one tenant has beside that.
    pub fn give(&self, tenant: &TenantId, set: ToolSet) {
        self.sets.rcu(|all| {
            let mut all = ToolSets::clone(all);
            all.tenants.insert(tenant.clone(), set.clone());
            all
        });
    }

    /// What an agent with this allowlist is offered, by id. An entry is an exact id, or `mcp:<server>` for all tools of
    /// that server; there are no wildcards, and an empty list allows nothing. A name that nothing here has may stand for
    /// a tool; see [`Aliases`].
    pub fn offered(&self, tenant: &TenantId, allow: &[String]) -> Vec<ToolSpec> {
        let tools = self.tools(tenant);
        let allow = &self.resolved(&tools, allow);
        tools.values().map(|tool| tool.spec()).filter(|spec| is_allowed(&spec.id, allow)).cloned().collect()
    }

    /// The same, where names stand for nothing but themselves.
    pub fn offered_by_id(&self, tenant: &TenantId, allow: &[String]) -> Vec<ToolSpec> {
        let tools = self.tools(tenant);
        tools.values().map(|tool| tool.spec()).filter(|spec| is_allowed(&spec.id, allow)).cloned().collect()
    }

    /// The entries of an allowlist that nothing here answers to, in its order.
    pub fn unresolved(&self, tenant: &TenantId, allow: &[String]) -> Vec<String> {
        let tools = self.tools(tenant);
        let there = |entry: &str| tools.keys().any(|id| is_entry_for(entry, id));
        let resolved = self.resolved(&tools, allow);
        allow
            .iter()
            .zip(&resolved)
            .filter(|(_, stands_for)| !there(stands_for))
            .map(|(entry, _)| entry.clone())
            .collect()
    }

    /// Each entry, or the tool that it stands for.
    fn resolved(&self, tools: &BTreeMap<String, Arc<dyn Tool>>, allow: &[String]) -> Vec<String> {
        let aliases = Arc::clone(&self.sets.load().aliases);
        let tool = |entry: &String| {
            let there = tools.keys().any(|id| is_entry_for(entry, id));
            let stands_for = if there { None } else { aliases.tool(entry) };
            stands_for.unwrap_or(entry).to_owned()
        };
        allow.iter().map(tool).collect()
    }

    /// Makes an admitted call. Native tools are done by the runtime and are not callable here.
    pub async fn call(&self, request: &ToolRequest) -> Called {
        let start = Instant::now();
        let Some(tool) = self.found(request).await else { return self.missing(request) };
        match tool.call(request).await {
            Called::Done(outcome) if outcome.duration_ms.is_none() => {
                Called::Done(outcome.took(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX)))
            }
            called => called,
        }
    }

    /// Resolves when the servers of this allowlist that are connecting for the first time have told what they have, or
    /// when nobody should wait for that any longer. `None` if there is nothing to wait for.
    pub fn pending(&self, tenant: &TenantId, allow: &[String]) -> Option<BoxFuture<'static, ()>> {
        let aliases = Arc::clone(&self.sets.load().aliases);
        let meant: Vec<String> = allow.iter().filter_map(|entry| aliases.tool(entry).map(str::to_owned)).collect();
        let named = self.sources(tenant, |name| is_named(name, allow) || is_named(name, &meant));
        let waits: Vec<_> = named.iter().filter_map(|source| source.pending()).collect();
        (!waits.is_empty()).then(|| join_all(waits).map(drop).boxed())
    }

    /// How the links to servers are doing, by name.
    pub fn connections(&self) -> Vec<Connection> {
        let sets = self.sets.load();
        let all = sets.tenants.values().chain([&sets.shared]).flat_map(|set| &set.sources);
        let mut shown: Vec<_> = all.filter_map(|source| source.connection()).collect();
        shown.sort_by(|a, b| a.name.cmp(&b.name));
        shown
    }

    /// Lets go of all servers, side by side, and waits for that within a bounded time.
    pub async fn close(&self) {
        let sets = self.sets.load_full();
        let all = sets.tenants.values().chain([&sets.shared]).flat_map(|set| &set.sources);
        join_all(all.map(|source| source.close())).await;
    }

    /// What a caller is shown, by id: tools whose scopes it holds.
    pub fn catalog(&self, tenant: &TenantId, held: Held<'_>) -> Vec<ToolDescriptor> {
        let tools = self.tools(tenant);
        let shown = tools.values().filter(|tool| held.cover(&tool.spec().scopes));
        shown.map(|tool| ToolDescriptor::new(tool.spec(), tool.about())).collect()
    }

    /// One of them. A tool that the caller may not use looks like one that does not exist.
    pub fn describe(&self, tenant: &TenantId, held: Held<'_>, id: &str) -> Option<ToolDescriptor> {
        let tool = self.find(tenant, id).filter(|tool| held.cover(&tool.spec().scopes))?;
        Some(ToolDescriptor::new(tool.spec(), tool.about()))
    }

    /// The tool of a call. One whose server is connecting for the first time is waited for, not longer than the call may
    /// take.
    async fn found(&self, request: &ToolRequest) -> Option<Arc<dyn Tool>> {
        let found = self.find(&request.tenant, &request.tool);
        if found.is_some() {
            return found;
        }
        let pending = self.pending(&request.tenant, std::slice::from_ref(&request.tool))?;
        match request.timeout_ms.map(Duration::from_millis) {
            Some(limit) => drop(tokio::time::timeout(limit, pending).await),
            None => pending.await,
        }
        self.find(&request.tenant, &request.tool)
    }

    fn sources(&self, tenant: &TenantId, named: impl Fn(&str) -> bool) -> Vec<Arc<dyn ToolSource>> {
        let sets = self.sets.load();
        let all = sets.of(tenant).flat_map(|set| &set.sources).filter(|source| named(source.name()));
        all.cloned().collect()
    }

    fn find(&self, tenant: &TenantId, id: &str) -> Option<Arc<dyn Tool>> {
        let sets = self.sets.load();
        sets.of(tenant).flat_map(ToolSet::all).find(|tool| tool.spec().id == id)
    }

    fn tools(&self, tenant: &TenantId) -> BTreeMap<String, Arc<dyn Tool>> {
        let mut found = BTreeMap::new();
        for tool in self.sets.load().of(tenant).flat_map(ToolSet::all) {
            found.entry(tool.spec().id.clone()).or_insert(tool);
        }
        found
    }

    fn missing(&self, request: &ToolRequest) -> Called {
        let id = &request.tool;
        let Some((server, _)) = id.strip_prefix("mcp:").and_then(|rest| rest.split_once('.')) else {
            return Called::failed(code::NOT_FOUND, format!("There is no tool {id}."));
        };
        let Some(source) = self.sources(&request.tenant, |name| name == server).pop() else {
            return Called::failed(code::MCP_SERVER_NOT_FOUND, format!("There is no MCP server {server}."));
        };
        match source.absence() {
            Some(reason) => mcp::disconnected(server, &reason),
            None => Called::failed(
                code::MCP_TOOL_NOT_FOUND,
                format!("The MCP server {server} has no tool {id} (any more)."),
            ),
        }
    }
}

/// Whether an allowlist has tools of this server in it.
fn is_named(server: &str, allow: &[String]) -> bool {
    let of = |entry: &String| {
        let rest = entry.strip_prefix("mcp:").and_then(|rest| rest.strip_prefix(server));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    allow.iter().any(of)
}

/// What two lists allow together, as a list.
pub fn narrowed(one: &[String], other: &[String]) -> Vec<String> {
    let mut both: Vec<String> = one.iter().filter(|entry| is_allowed(entry, other)).cloned().collect();
    both.extend(other.iter().filter(|entry| is_allowed(entry, one) && !one.contains(entry)).cloned());
    both
}

/// Whether a list has this id, or the server that it is of.
pub fn is_allowed(id: &str, allow: &[String]) -> bool {
    allow.iter().any(|entry| is_entry_for(entry, id))
}

fn is_entry_for(entry: &str, id: &str) -> bool {
    let server = || id.strip_prefix("mcp:").and_then(|rest| rest.split_once('.')).map(|(server, _)| server);
    entry == id || entry.strip_prefix("mcp:").is_some_and(|named| server() == Some(named))
}
