//! What a host's agents need: packs and prompts, providers and models, tools.

use std::num::NonZeroU32;
use std::sync::Arc;

use baton_agent::{Capabilities, Registry, Sources};
use baton_model::{ModelChoice, ModelClass, Secret};
use baton_provider::{Prices, Provider, ScriptedProvider, build};
use baton_runtime::{AgentRegistry, ModelTable, Models, Options};
use baton_tool::egress::{Guard, Place};
use baton_tool::hooks::ToolLimits;
use baton_tool::http::{HttpClient, HttpEffect, HttpFetch, HttpOptions, HttpRequest};
use baton_tool::mcp::McpServer;
use baton_tool::{Aliases, SecretTable, Secrets, ToolSet, Toolbox};

use super::conformance;
use super::offered::offered;
use super::providers::opened;
use super::secrets::value;
use crate::config::{Config, checks};
use crate::failure::Failure;

/// Everything that was set up, ready to be handed to the runtime.
pub(crate) struct HostParts {
    pub(crate) registry: Arc<Registry>,
    pub(crate) models: Models,
    pub(crate) model_table: ModelTable,
    pub(crate) tools: Toolbox,
    pub(crate) tool_limits: Option<Arc<ToolLimits>>,
    pub(crate) http: HttpEffect,
    /// Keys and headers of providers: like any other secret, they are kept out of what is stored.
    pub(crate) secrets: Vec<Secret>,
}

/// Sets up what the configuration names, and waits for none of it: MCP servers connect in the background, providers are
/// asked when a run needs them. `given` are providers that a mode of the program brings along.
pub(crate) fn build_parts(config: &Config, given: Vec<(String, Arc<dyn Provider>)>) -> Result<HostParts, Failure> {
    let mut models = Models::default();
    for (name, provider) in given {
        models = models.with(&name, provider);
    }
    let mut keys = Vec::new();
    for (name, section) in &config.sections.providers {
        let (settings, secrets) = opened(name, section)?;
        keys.extend(secrets);
        let provider = build(name, &settings).map_err(|problem| unbuilt(name, &problem.to_string()))?;
        models = models.with(name, provider);
    }
    for choice in config.sections.models.values() {
        if !models.names().any(|name| name == choice.provider) && choice.provider != "mock" {
            let known: Vec<&str> = models.names().collect();
            return Err(Failure::usage(format!(
                "`[models]` names the provider `{}`, which is not configured",
                choice.provider
            ))
            .hint(provider_advice(&choice.provider, &known)));
        }
    }
    let table = model_table(config);
    let secret_table = secret_table(config)?;
    let (tools, http) = toolbox(config, &secret_table)?;
    let limits = NonZeroU32::new(config.tool_calls_per_minute);
    let tool_limits = limits.map(|rate| Arc::new(ToolLimits::new(rate, rate)));
    let host = Options {
        limits: config.limits,
        test_hooks: conformance::hooks(config),
        show_prompts: config.show_prompts,
        escalation: config.escalation.clone(),
        context: config.context,
        models: models.clone(),
        model_table: table.clone(),
        prices: Prices::new(config.sections.prices.clone()),
        tool_limits: tool_limits.clone(),
        ..Options::default()
    };
    let registry = registry(config, offered(config, host))?;
    for problem in registry.problems() {
        tracing::warn!(%problem, "part of a pack cannot be used");
    }
    for pack in registry.all_packs() {
        if let Some(note) = pack.provenance.note() {
            tracing::info!(pack = %pack.name, version = %pack.version, origin = %pack.origin, "a pack is loaded; {note}");
        }
    }
    Ok(HostParts { registry: Arc::new(registry), models, model_table: table, tools, tool_limits, http, secrets: keys })
}

/// What test cases need of a configuration: everything but what reaches outside. No key is read, and nothing is started.
/// With what cannot be used of the packs.
pub(crate) fn options_of_cases(config: &Config) -> Result<(Options, Vec<String>), Failure> {
    let host = Options {
        limits: config.limits,
        show_prompts: config.show_prompts,
        escalation: config.escalation.clone(),
        context: config.context,
        // Packs may count on a model: the case is one.
        models: Models::default().with("scripted", Arc::new(ScriptedProvider::default())),
        model_table: model_table(config),
        ..Options::default()
    };
    let registry = registry(config, offered(config, host.clone()))?;
    let problems = registry.problems().iter().map(ToString::to_string).collect();
    Ok((Options { agent_registry: AgentRegistry::of(Arc::new(registry)), ..host }, problems))
}

fn model_table(config: &Config) -> ModelTable {
    let with = |table: ModelTable, (class, choice): (&Option<ModelClass>, &ModelChoice)| match class {
        Some(class) => table.class(*class, choice.clone()),
        None => table.otherwise(choice.clone()),
    };
    config.sections.models.iter().fold(ModelTable::default(), with)
}

fn provider_advice(wanted: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!("no provider is set up yet; {}", key_advice(wanted));
    }
    format!("add [providers.{wanted}], or use one of: {}", known.join(", "))
}

/// Why a provider cannot be used. A key is not a setting of its own, so what to write for one is said here.
fn unbuilt(name: &str, problem: &str) -> Failure {
    let failure = Failure::usage(problem);
    if !problem.contains("`api_key`") {
        return failure;
    }
    failure.hint(key_advice(name))
}

fn key_advice(name: &str) -> String {
    format!(
        "say in [providers.{name}] where its key is, `api_key_env = \"VARIABLE\"` or `api_key_file = \"PATH\"`, or give \
         the `base_url` of a server of your own"
    )
}

/// The packs and prompts as they are now, for a host that is running.
pub(crate) fn reread(config: &Config, host: &baton_runtime::Host) -> Result<Registry, Failure> {
    registry(config, offered(config, host.options().clone()))
}

/// The packs and prompts there are. What is wrong with one keeps nobody from using the others.
fn registry(config: &Config, capabilities: Capabilities) -> Result<Registry, Failure> {
    let checks = checks(&config.trusted_keys, config.require_signed).map_err(Failure::usage)?;
    Ok(baton_agent::load(&Sources {
        packs: config.packs.clone(),
        prompts: config.prompts.clone(),
        bundled: true,
        capabilities,
        ignored_requirements: config.ignored_requirements.iter().cloned().collect(),
        checks,
    }))
}

/// Secrets as tools may use them: by name, and only where the operator says so.
fn secret_table(config: &Config) -> Result<Arc<dyn Secrets>, Failure> {
    let mut table = SecretTable::default();
    for reference in &config.secrets {
        let hosts = config.sections.secret_hosts.get(&reference.id).cloned().unwrap_or_default();
        table = table.with(&reference.id, value(reference, "`secrets`")?.text, hosts, None);
    }
    Ok(Arc::new(table))
}

fn toolbox(config: &Config, secret_table: &Arc<dyn Secrets>) -> Result<(Toolbox, HttpEffect), Failure> {
    let mut places = Vec::new();
    for place in &config.http_allow {
        let read = place.parse::<Place>().map_err(|error| Failure::usage(format!("`http.allow`: {place}: {error}")))?;
        places.push(read);
    }
    let guard = Guard::new(config.http_allow_private).with_places(places);
    let client = HttpClient::new(HttpOptions::new(guard, Arc::clone(secret_table)));
    let refused = |error: baton_tool::ToolSetError| Failure::usage(error.to_string());
    let mut set = ToolSet::default();
    for tool in baton_tool::native::tools() {
        set = set.tool(tool).map_err(refused)?;
    }
    set = set.tool(Arc::new(HttpFetch::new(client.clone()))).map_err(refused)?;
    set = set.tool(Arc::new(HttpRequest::new(client.clone()))).map_err(refused)?;
    for (name, settings) in &config.sections.mcp {
        // It connects in the background, however long that takes.
        let server = McpServer::start(name, settings.clone(), Arc::clone(secret_table))
            .map_err(|error| Failure::usage(error.to_string()))?;
        set = set.source(server).map_err(refused)?;
    }
    let tools = Toolbox::new(set);
    tools.rename(Aliases::default().with(config.sections.tool_aliases.clone()));
    Ok((tools, HttpEffect::new(client)))
}
