//! Which tools there are, for whom.
//!
//! A toolbox has one set that everybody shares and one for each tenant that has tools of its own; a tenant's tool
//! hides a shared one of the same id. Tools that come and go with a server are asked of their [`ToolSource`] every time.
//! Clones are the same toolbox: whoever replaces a set replaces it for all, and calls under way finish on the tools
//! they started with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use baton_model::tool::{FoundTool, SafetyTier, ToolFault, ToolOutcome, ToolRequest, ToolStatus};
use baton_model::{Connection, TenantId, ToolSpec, code, tenant_subject};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use tokio::time::Instant;

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

/// For whom tools are looked up: a tenant, and on whose behalf within it.
#[derive(Clone, Copy, Debug)]
pub struct Audience<'a> {
    pub tenant: &'a TenantId,
    /// `None`: the tenant as a whole.
    pub subject: Option<&'a str>,
}

impl<'a> From<&'a TenantId> for Audience<'a> {
    fn from(tenant: &'a TenantId) -> Self {
        Self { tenant, subject: None }
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

    /// These tools, which have different ids. Those that have no place in a toolbox are left out.
    pub fn of(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let tools = tools.into_iter().filter(|tool| is_admissible(&**tool)).collect();
        Self { tools, sources: Vec::new() }
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
    /// What only callers of one subject of a tenant have.
    subjects: Arc<BTreeMap<(TenantId, String), ToolSet>>,
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Toolbox")
    }
}

impl ToolSets {
    /// What somebody has, their own first.
    fn of(&self, audience: Audience<'_>) -> impl Iterator<Item = &ToolSet> {
        let subject = audience.subject.map_or_else(|| tenant_subject(audience.tenant), str::to_owned);
        let own = match self.subjects.is_empty() {
            true => None,
            false => self.subjects.get(&(audience.tenant.clone(), subject)),
        };
        own.into_iter().chain(self.tenants.get(audience.tenant)).chain([&self.shared])
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

    /// Replaces what callers of one subject have beside that.
    pub fn give_subject(&self, tenant: &TenantId, subject: &str, set: ToolSet) {
        let key = (tenant.clone(), subject.to_owned());
        self.sets.rcu(|all| {
            let mut subjects = BTreeMap::clone(&all.subjects);
            match set.tools.is_empty() {
                true => drop(subjects.remove(&key)),
                false => drop(subjects.insert(key.clone(), set.clone())),
            }
            ToolSets { subjects: Arc::new(subjects), ..ToolSets::clone(all) }
        });
    }

    /// What an agent with this allowlist is offered, by id. An entry is an exact id, or `mcp:<server>` for all tools of
    /// that server, or `runner:<pool>` for all of that pool; there are no wildcards, and an empty list allows nothing. A
    /// name that nothing here has may stand for a tool; see [`Aliases`].
    pub fn offered<'a>(&self, audience: impl Into<Audience<'a>>, allow: &[String]) -> Vec<ToolSpec> {
        let tools = self.tools(audience.into());
        let allow = &self.resolved(&tools, allow);
        tools.values().map(|tool| tool.spec()).filter(|spec| is_allowed(&spec.id, allow)).cloned().collect()
    }

    /// The same, where names stand for nothing but themselves.
    pub fn offered_by_id<'a>(&self, audience: impl Into<Audience<'a>>, allow: &[String]) -> Vec<ToolSpec> {
        let tools = self.tools(audience.into());
        tools.values().map(|tool| tool.spec()).filter(|spec| is_allowed(&spec.id, allow)).cloned().collect()
    }

    /// The entries of an allowlist that nothing here answers to, in its order.
    pub fn unresolved<'a>(&self, audience: impl Into<Audience<'a>>, allow: &[String]) -> Vec<String> {
        let tools = self.tools(audience.into());
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
    pub fn catalog<'a>(&self, audience: impl Into<Audience<'a>>, held: Held<'_>) -> Vec<ToolDescriptor> {
        let tools = self.tools(audience.into());
        let shown = tools.values().filter(|tool| held.cover(&tool.spec().scopes));
        shown.map(|tool| ToolDescriptor::new(tool.spec(), tool.about())).collect()
    }

    /// One of them. A tool that the caller may not use looks like one that does not exist.
    pub fn describe<'a>(&self, audience: impl Into<Audience<'a>>, held: Held<'_>, id: &str) -> Option<ToolDescriptor> {
        let tool = self.find(audience.into(), id).filter(|tool| held.cover(&tool.spec().scopes))?;
        Some(ToolDescriptor::new(tool.spec(), tool.about()))
    }

    /// A tool that somebody wants to call by its id, or by a name that stands for it; or why it is not here. Nothing is
    /// waited for: see [`Self::pending`].
    pub fn look_up<'a>(&self, audience: impl Into<Audience<'a>>, id: &str) -> Result<FoundTool, ToolFault> {
        let audience = audience.into();
        let found = self.find(audience, id);
        let aliases = Arc::clone(&self.sets.load().aliases);
        let meant = aliases.tool(id).filter(|_| found.is_none()).unwrap_or(id);
        match found.or_else(|| self.find(audience, meant)) {
            Some(tool) => Ok(FoundTool { spec: tool.spec().clone(), output_schema: tool.about().output_schema }),
            None => Err(self.absence(audience.tenant, meant)),
        }
    }

    /// The tool of a call. One whose server is connecting for the first time is waited for, not longer than the call may
    /// take.
    async fn found(&self, request: &ToolRequest) -> Option<Arc<dyn Tool>> {
        let found = self.find(Audience::from(&request.tenant), &request.tool);
        if found.is_some() {
            return found;
        }
        let pending = self.pending(&request.tenant, std::slice::from_ref(&request.tool))?;
        match request.timeout_ms.map(Duration::from_millis) {
            Some(limit) => drop(tokio::time::timeout(limit, pending).await),
            None => pending.await,
        }
        self.find(Audience::from(&request.tenant), &request.tool)
    }

    /// Whether everybody has this tool. One with the id of a runner's is called like any other then: a stand-in.
    pub fn is_shared(&self, id: &str) -> bool {
        self.sets.load().shared.tools.iter().any(|tool| tool.spec().id == id)
    }

    fn sources(&self, tenant: &TenantId, named: impl Fn(&str) -> bool) -> Vec<Arc<dyn ToolSource>> {
        let sets = self.sets.load();
        let all = sets.of(Audience::from(tenant)).flat_map(|set| &set.sources).filter(|source| named(source.name()));
        all.cloned().collect()
    }

    fn find(&self, audience: Audience<'_>, id: &str) -> Option<Arc<dyn Tool>> {
        let sets = self.sets.load();
        sets.of(audience).flat_map(ToolSet::all).find(|tool| tool.spec().id == id)
    }

    fn tools(&self, audience: Audience<'_>) -> BTreeMap<String, Arc<dyn Tool>> {
        let mut found = BTreeMap::new();
        for tool in self.sets.load().of(audience).flat_map(ToolSet::all) {
            found.entry(tool.spec().id.clone()).or_insert(tool);
        }
        found
    }

    fn missing(&self, request: &ToolRequest) -> Called {
        Called::Done(ToolOutcome {
            status: ToolStatus::Error,
            value: serde_json::Value::Null,
            error: Some(self.absence(&request.tenant, &request.tool)),
            duration_ms: None,
        })
    }

    /// Why there is no such tool, and what to do about it.
    fn absence(&self, tenant: &TenantId, id: &str) -> ToolFault {
        let fault = |code: &str, message: String| ToolFault {
            code: code.to_owned(),
            message,
            details: None,
            retryable: Some(false),
        };
        let Some((server, _)) = id.strip_prefix("mcp:").and_then(|rest| rest.split_once('.')) else {
            return fault(code::NOT_FOUND, format!("There is no tool {id}. GET /v1/tools lists those that are."));
        };
        let Some(source) = self.sources(tenant, |name| name == server).pop() else {
            return fault(
                code::MCP_SERVER_NOT_FOUND,
                format!("There is no MCP server {server}. The operator sets one up under [mcp.{server}]."),
            );
        };
        match source.absence() {
            Some(reason) => mcp::disconnection(server, &reason),
            None => fault(code::MCP_TOOL_NOT_FOUND, format!("The MCP server {server} has no tool {id} (any more).")),
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

/// Whether a list has this id, or the server or pool that it is of.
pub fn is_allowed(id: &str, allow: &[String]) -> bool {
    allow.iter().any(|entry| is_entry_for(entry, id))
}

fn is_entry_for(entry: &str, id: &str) -> bool {
    // All of a server, or of a pool of runners, without the dot that their tools have.
    let whole = |entry: &str| entry.starts_with("mcp:") || entry.starts_with("runner:");
    entry == id || (whole(entry) && id.split_once('.').is_some_and(|(of, _)| of == entry))
}
