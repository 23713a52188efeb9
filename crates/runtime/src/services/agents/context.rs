//! Everything an agent works from, gathered before it begins.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_engine::{InvokeRequest, NodeRequest, ReadVersion, Request, ToolLookup};
use baton_model::tool::FoundTool;
use baton_model::{
    AgentCard, Digest, Fault, InvocationContext, MemoryEntry, Owner, RunId, Scope, TenantId, ToolSpec, TurnBounds,
    code, json,
};
use baton_store::Write;
use baton_tool::runner::{self, ListedTool, RunnerTool};
use baton_tool::{Audience, Tool as _, is_allowed};
use futures_util::future::BoxFuture;

use crate::Error;
use crate::journal::lane::Lane;
use crate::services::agents::service::Agents;
use crate::services::versioned::prepared::{entries, read_view_of};
use crate::services::versioned::run_stores::RunStores;
use crate::steps::Stepping;

/// How much an agent is reminded of by itself; it has a tool for the rest.
const REMEMBERED: usize = 20;

impl Agents {
    /// The brief, or what the run is told instead.
    pub(crate) async fn brief(
        &self,
        what: Stepping<'_>,
        ledgers: &RunStores,
        request: &InvokeRequest,
    ) -> Result<Result<InvocationContext, Fault>, Error> {
        let run = what.run;
        let tenant = &ledgers.memory.id.tenant;
        let Some(card) = self.card(tenant, &request.agent_id, request.card.as_ref()).await? else {
            let message = format!("The agent `{}` is not here any more.", request.agent_id);
            return Ok(Err(
                Fault::new(code::CAPABILITY_NOT_PROVIDED, message).with("agentId", request.agent_id.as_str())
            ));
        };
        let audience = audience(tenant, request.owner.as_ref());
        let Some(model) = request.model.clone() else {
            let message = format!("No model is configured for the agent `{}`.", request.agent_id);
            return Ok(Err(Fault::new(code::CAPABILITY_NOT_PROVIDED, message)));
        };
        let memory = match card.memory.any() && request.may(Scope::MemoryRead) {
            true => self.recollect(run, ledgers, request.read_version, REMEMBERED).await?,
            false => Vec::new(),
        };
        let history = self.conversations.dialogue(tenant, &card, request).await?;
        let mut grants = request.grants.clone();
        grants.extend(self.limits_of_strangers(tenant, request.card.as_ref()).await?);
        let turn = self.pool.turn(tenant).await;
        let composed = self.pool.guarded(&turn, what, || {
            let (tools, missing) = match request.tell_missing {
                true => (self.surface(audience, &card, &grants), self.missing_tools(audience, &card, &grants)),
                false => (self.surface_by_id(audience, &card, &grants), Vec::new()),
            };
            super::prompts::resolve(self, tenant, run, &card, request).map(|prompts| (tools, missing, prompts))
        });
        drop(turn);
        let (tools, missing_tools, prompts) = match composed {
            Ok(Ok(composed)) => composed,
            Ok(Err(fault)) => return Ok(Err(fault)),
            // Whoever delivers this counts it as a step that broke.
            Err(panic) => std::panic::resume_unwind(Box::new(panic)),
        };
        Ok(Ok(InvocationContext {
            card: (*card).clone(),
            model,
            task: request.task.clone(),
            tools,
            missing_tools,
            memory,
            situation: Default::default(),
            prompts,
            bounds: TurnBounds::of(&self.options.limits),
            show_prompts: self.options.show_prompts,
            origins: request.origins.clone(),
            history,
        }))
    }

    /// Keeps every version of every agent: a run that is under way may outlive its pack.
    pub(crate) async fn keep_versions(&self) -> Result<(), Error> {
        let agent_registry = self.agent_registry.load();
        let mut writes = Vec::new();
        for (digest, card) in agent_registry.versions() {
            let mark = installed(&digest);
            if self.store.blob(&mark).await?.is_none() {
                let bytes = json::canonical(&serde_json::to_value(&*card).unwrap_or_default());
                writes.push(Write::PutBlob { digest: mark, bytes: installed_note(&digest).into_bytes() });
                writes.push(Write::PutBlob { digest, bytes });
            }
        }
        if !writes.is_empty() {
            self.storage.write(self.storage.live()?.generation, Lane::Host, writes).await?;
        }
        Ok(())
    }

    /// The version of an agent that a run is pinned to, wherever it has been kept.
    async fn card(
        &self,
        tenant: &TenantId,
        id: &str,
        pinned: Option<&Digest>,
    ) -> Result<Option<Arc<AgentCard>>, Error> {
        let agent_registry = self.agent_registry.load();
        let Some(digest) = pinned else { return Ok(agent_registry.get(tenant, id).cloned()) };
        if let Some(card) = agent_registry.version(digest) {
            return Ok(Some(card));
        }
        let bytes = self.store.blob(digest).await?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).map(Arc::new))
    }

    /// What limits an agent that came with somebody's file and was never installed here: its manifest is nobody's word.
    /// It may have what some agent that its tenant sees here may have.
    async fn limits_of_strangers(
        &self,
        tenant: &TenantId,
        pinned: Option<&Digest>,
    ) -> Result<Option<Vec<String>>, Error> {
        let Some(digest) = pinned else { return Ok(None) };
        let agent_registry = self.agent_registry.load();
        if agent_registry.version(digest).is_some() || self.store.blob(&installed(digest)).await?.is_some() {
            return Ok(None);
        }
        Ok(Some(agent_registry.visible(tenant).iter().flat_map(|card| card.tools.clone()).collect()))
    }

    /// What an agent may call: offered here, allowed by its manifest and in every grant.
    pub(crate) fn surface(&self, audience: Audience<'_>, card: &AgentCard, grants: &[Vec<String>]) -> Vec<ToolSpec> {
        let toolbox = &self.options.tools;
        narrowed(&card.tools, grants, |list| toolbox.offered(audience, list))
    }

    /// The same for runs that began when names stood for nothing but themselves.
    fn surface_by_id(&self, audience: Audience<'_>, card: &AgentCard, grants: &[Vec<String>]) -> Vec<ToolSpec> {
        let toolbox = &self.options.tools;
        narrowed(&card.tools, grants, |list| toolbox.offered_by_id(audience, list))
    }

    /// What the manifest names, every grant leaves, and nothing here answers to.
    pub(crate) fn missing_tools(
        &self,
        audience: Audience<'_>,
        card: &AgentCard,
        grants: &[Vec<String>],
    ) -> Vec<String> {
        let mut missing = self.options.tools.unresolved(audience, &card.tools);
        missing.retain(|tool| grants.iter().all(|grant| is_allowed(tool, grant)));
        missing
    }
}

fn narrowed(list: &[String], grants: &[Vec<String>], offered: impl Fn(&[String]) -> Vec<ToolSpec>) -> Vec<ToolSpec> {
    let mut tools = offered(list);
    for grant in grants {
        let granted: BTreeSet<String> = offered(grant).into_iter().map(|tool| tool.id).collect();
        tools.retain(|tool| granted.contains(&tool.id));
    }
    tools
}

/// Whose tools a run has. What only a file says of whom it is for counts for nothing.
fn audience<'a>(tenant: &'a TenantId, owner: Option<&'a Owner>) -> Audience<'a> {
    let owner = owner.filter(|owner| owner.tenant == *tenant);
    Audience { tenant, subject: owner.and_then(|owner| owner.subject.as_deref()) }
}

/// Under this a host notes that it had a version of an agent installed.
fn installed(card: &Digest) -> Digest {
    Digest::of_bytes(installed_note(card))
}

fn installed_note(card: &Digest) -> String {
    format!("baton.agent.installed {card}")
}

impl Agents {
    /// What to wait for before an agent's tools are listed: servers of its allowlist that were only just started. `None`
    /// where nothing is, which is soon always.
    pub(crate) fn tools_pending(
        &self,
        tenant: &TenantId,
        node_request: &NodeRequest,
    ) -> Option<BoxFuture<'static, ()>> {
        let request = match &node_request.request {
            Request::Invoke(request) => request,
            Request::Turn { agent: Some(request), .. } => request,
            Request::Tool(lookup) => return self.options.tools.pending(tenant, std::slice::from_ref(&lookup.tool)),
            _ => return None,
        };
        let agent_registry = self.agent_registry.load();
        let pinned = request.card.as_ref().and_then(|digest| agent_registry.version(digest));
        let card = pinned.or_else(|| agent_registry.get(tenant, &request.agent_id).cloned())?;
        self.options.tools.pending(tenant, &card.tools)
    }

    /// The tool that a node wants to call by itself, or why it may not.
    pub(crate) fn find_tool(&self, tenant: &TenantId, lookup: &ToolLookup) -> Result<FoundTool, Fault> {
        let audience = audience(tenant, lookup.owner.as_ref());
        let found = self.options.tools.look_up(audience, &lookup.tool);
        let found = found.or_else(|fault| self.awaited(&lookup.tool).ok_or(fault)).map_err(|fault| {
            let told = Fault::new(fault.code, fault.message).with("tool", lookup.tool.as_str());
            told.with("retryable", fault.retryable.unwrap_or_default())
        })?;
        let granted = |grant: &Vec<String>| is_allowed(&found.spec.id, grant) || is_allowed(&lookup.tool, grant);
        if lookup.grant.as_ref().is_none_or(granted) {
            return Ok(found);
        }
        let message = format!(
            "`{}` is not among the tools that this run may have (`configurable.toolGrant`). Start it with a grant that \
             names the tool.",
            lookup.tool
        );
        Err(Fault::new(code::FORBIDDEN, message).with("tool", lookup.tool.as_str()))
    }

    /// A tool of a runner that is not here yet: the call waits for it. Nothing is known of what it takes.
    fn awaited(&self, id: &str) -> Option<FoundTool> {
        let (pool, name) = runner::parts_of(id).filter(|(pool, _)| runner::is_pool_name(pool))?;
        if !self.options.runner_channel {
            return None;
        }
        let tool = RunnerTool::new(pool, ListedTool::named(name), self.options.runners.get(pool)).ok()?;
        Some(FoundTool { spec: tool.spec().clone(), output_schema: None })
    }

    /// The newest of what a run remembers.
    pub(crate) async fn recollect(
        &self,
        run: &RunId,
        ledgers: &RunStores,
        read_version: ReadVersion,
        limit: usize,
    ) -> Result<Vec<MemoryEntry>, Error> {
        let lens = read_view_of(run, read_version, None, Some(limit), self.clock.now());
        Ok(entries(&self.versioned.view(&ledgers.memory, &lens).await?))
    }
}
