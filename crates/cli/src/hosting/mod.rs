//! Turning a configuration into a running host, and stopping it in the right order. `serve` and `dev` differ only in
//! what they bring along.

pub(crate) mod agents;
mod conformance;
mod descriptors;
pub(crate) mod host_id;
mod isolation;
mod keys;
pub(crate) mod link_secret;
mod log_tail;
mod logging;
pub(crate) mod offered;
mod providers;
pub(crate) mod reload;
pub(crate) mod remotes;
mod secrets;
mod signals;
pub(crate) mod storage;
mod telemetry;
pub(crate) mod workers;
pub(crate) mod workflows;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use baton_provider::{Prices, Provider};
use baton_runtime::{AgentRegistry, Host};
use baton_server::{Entrance, ServerOptions, serve_entrance};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use keys::ApiKeys;
pub(crate) use logging::start as start_logging;
pub(crate) use logging::start_for_dev as start_logging_for_dev;
pub(crate) use secrets::resolve as resolve_secrets;
pub(crate) use signals::Signals;

use crate::commands::VERSION;
use crate::config::Config;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

/// A host that is open, but lets nobody in yet: the moment to register workflows. Health and readiness answer already.
pub(crate) struct Opened {
    pub(crate) host: Host,
    pub(crate) address: SocketAddr,
    pub(crate) entrance: Entrance,
    options: ServerOptions,
    shutdown: CancellationToken,
    serving: AbortOnDropHandle<()>,
    signals: signals::Signals,
    telemetry: Option<telemetry::Telemetry>,
}

/// Opens a host. The listener is bound before anything that may take long: the store, packs, what recovery needs. From then
/// on `/health` answers, and `/readiness` says what is being done. `given` are model providers that the mode brings along.
pub(crate) async fn open(
    config: &Config,
    keys: ApiKeys,
    given: Vec<(String, Arc<dyn Provider>)>,
) -> Result<Opened, Failure> {
    conformance::check(config)?;
    let mut secrets = resolve_secrets(&config.secrets)?;
    let credentials = remotes::Credentials::read(config)?;
    secrets.extend(credentials.secrets());
    let collector = telemetry::collector(config)?;
    let listener = TcpListener::bind(config.listen).await.map_err(|error| bind_failure(config.listen, &error))?;
    let address = listener.local_addr()?;
    tracing::info!(%address, "the listener is bound; the host is starting");
    let shutdown = CancellationToken::new();
    let entrance = Entrance::new(shutdown.clone());
    let connections = descriptors::make_room(config.connections.clone());
    let serving = serve_entrance(listener, entrance.clone(), connections.clone());
    let serving = AbortOnDropHandle::new(tokio::spawn(serving));
    entrance.doing("reading packs and prompts");
    let parts = agents::build_parts(config, given)?;
    secrets.extend(parts.secrets);
    let remotes = remotes::open(config, &credentials, address)?;
    entrance.doing("opening the store");
    let storage::Storage { store, host_id, link_secret } = storage::open(config, address).await?;
    let telemetry = collector.map(|collector| telemetry::start(collector, config, &host_id, &secrets)).transpose()?;
    let options = baton_runtime::Options {
        limits: config.limits,
        test_hooks: conformance::hooks(config),
        link_secrets: vec![link_secret],
        allow_private_webhooks: config.allow_private_webhooks,
        tree_limits: config.trees,
        work_limits: config.work,
        dead_letters: config.dead_letters,
        retention: config.retention.clone(),
        show_prompts: config.show_prompts,
        escalation: config.escalation.clone(),
        context: config.context,
        public_url: config.public_url.clone(),
        secrets,
        remotes,
        host_id,
        observer: telemetry::observer(telemetry.as_ref()),
        models: parts.models,
        model_table: parts.model_table,
        prices: Prices::new(config.sections.prices.clone()),
        agent_registry: AgentRegistry::of(Arc::clone(&parts.registry)),
        tools: parts.tools,
        tool_limits: parts.tool_limits,
        runner_channel: config.runner_channel,
        runners: config.sections.runners.clone(),
        http: Some(parts.http),
        ..baton_runtime::Options::default()
    };
    let options = isolation::isolate(options, config)?;
    entrance.doing("loading what it goes on with");
    let host = Host::open(store, options)
        .await
        .map_err(|error| Failure::new(Exit::Failed, format!("the host cannot start: {error}")))?;
    let options = ServerOptions {
        keys: keys.keys,
        rate_limit_per_second: config.rate_limit_per_second,
        test_capabilities: None,
        mirror_capabilities: config.mirror_capabilities,
        version: VERSION.to_owned(),
        max_body_bytes: usize::try_from(config.limits.max_request_body_bytes).unwrap_or(usize::MAX),
        inflight_cap: config.max_in_flight,
        tenants: config.tenants.clone(),
        connections,
        logs: log_tail::tail(),
    };
    // Before anybody is told that we listen: whoever then asks us to stop must not end us in the middle of something.
    let signals = signals::Signals::new()?;
    entrance.doing("registering workflows");
    Ok(Opened { host, address, entrance, options, shutdown, serving, signals, telemetry })
}

impl Opened {
    /// Lets everybody in. To be done before anybody is told where to knock.
    pub(crate) fn let_in(&self) {
        conformance::let_in(&self.entrance, &self.host, self.options.clone());
    }

    /// Serves until a signal: stop accepting, end streams, drain the writer, send the last spans, let
    /// the processes of MCP servers end. `beside` runs along and never ends.
    pub(crate) async fn serve(
        mut self,
        output: &Output,
        beside: impl Future<Output = Infallible>,
    ) -> Result<(), Failure> {
        let serving = self.serving;
        let mut server = pin!(async move { serving.await.map_err(io::Error::other) });
        let early = tokio::select! {
            ended = &mut server => Some(ended),
            () = self.signals.next() => None,
            never = beside => match never {},
        };
        if let Some(ended) = early {
            stop(&self.host, self.telemetry).await;
            return Ok(ended?);
        }
        output.note("stopping: writing acknowledged work to disk");
        self.shutdown.cancel();
        let drained = async {
            let ended = server.await;
            stop(&self.host, self.telemetry).await;
            ended
        };
        tokio::select! {
            ended = drained => Ok(ended?),
            () = self.signals.next() => Err(Failure::new(Exit::Failed, "stopped at once; acknowledged work is safe")),
        }
    }
}

async fn stop(host: &Host, telemetry: Option<telemetry::Telemetry>) {
    host.shutdown().await;
    // Only now: a call that finds its server gone would have failed on the log.
    let tools = host.options().tools.close();
    let spans = async {
        if let Some(telemetry) = telemetry {
            telemetry.close().await;
        }
    };
    tokio::join!(tools, spans);
}

fn bind_failure(address: SocketAddr, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "another process uses this address; choose another, for example --listen 127.0.0.1:0"
        }
        io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; choose another with --listen",
        _ => "choose another address with --listen",
    };
    Failure::new(Exit::Failed, format!("cannot listen on {address}: {error}")).hint(hint)
}
