use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_model::json::hex;
use baton_model::{ModelChoice, Scope};
use baton_provider::{Provider, ScriptedProvider};

use crate::config::{Config, Layered, Value, project_file};
use crate::context::Context;
use crate::dev_file::{DEV_DATA, DevFile};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::reload::Reloader;
use crate::hosting::workers::Workers;
use crate::hosting::{self, ApiKeys, Opened, workflows};
use crate::{demos, private_file};

const TENANT: &str = "dev";
const KEY_BYTES: usize = 16;
/// The demos to start; the others are their workers.
const DEMOS: [&str; 5] = ["demo-pipeline", "demo-parent", "demo-team", "demo-agents", "demo-notebook"];
/// The model that answers when nobody has configured another.
const SCRIPTED: &str = "scripted";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7717")]
    listen: SocketAddr,
    /// Data folder
    #[arg(long, value_name = "DIR", default_value = DEV_DATA)]
    data: PathBuf,
    /// Folder of *.json workflows; changes are registered at once. May be repeated
    #[arg(long, value_name = "DIR", default_value = "workflows")]
    workflows: Vec<PathBuf>,
    /// Secret that memory and workspace never store: ID=env:VARIABLE or ID=file:PATH. May be repeated
    #[arg(long = "secret", value_name = "REFERENCE")]
    secrets: Vec<String>,
    /// Host for remote workers: NAME=URL@env:VARIABLE or NAME=URL@file:PATH. May be repeated
    #[arg(long = "remote", value_name = "REMOTE")]
    remotes: Vec<String>,
    /// TOML file with providers, models and MCP servers [default: baton.toml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of agent packs, in addition to the built-in pack
    #[arg(long, value_name = "DIR")]
    packs: Option<PathBuf>,
    /// OpenTelemetry collector (OTLP/HTTP), for example http://localhost:4318 [default: no traces are sent]
    #[arg(long, value_name = "URL", value_parser = super::serve::collector)]
    otlp_endpoint: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let config = config(&args)?;
    let key = match DevFile::read(&args.data) {
        Some(known) => known.key,
        None => format!("bk_dev_{}", hex(&private_file::random(KEY_BYTES)?)),
    };
    config.warnings.iter().for_each(|warning| context.output.note(format_args!("warning: {warning}")));
    hosting::start_logging_for_dev(&config.log_level, config.log_format);
    let scripted: Arc<dyn Provider> = Arc::new(ScriptedProvider::new(demos::script()?));
    let keys = ApiKeys::parse(&format!("{key}:{TENANT}:*+{}", Scope::HostOperate))?;
    let opened = hosting::open(&config, keys, vec![(SCRIPTED.to_owned(), scripted)]).await?;
    for demo in demos::all()? {
        workflows::register(&opened.host, demo).await.map_err(workflows::Rejected::into_failure)?;
    }
    let output = &context.output;
    let mut reloader = Reloader::new(args.workflows.clone()).with_packs(&config);
    reloader.pass(&opened.host, output).await;
    opened.let_in();
    let file = DevFile { url: format!("http://{}", from_here(opened.address)), key };
    file.write(&args.data)?;
    greet(context, &args, &opened, &file, config.sections.models.get(&None));
    let host = opened.host.clone();
    let mut running = Workers::new(&config.sections.workers, &file.url, &file.key);
    let beside = async {
        tokio::select! {
            never = reloader.keep_going(&host, output) => never,
            never = running.keep_going(output) => never,
        }
    };
    let served = opened.serve(output, beside).await;
    running.stop().await;
    served.map(|()| Exit::Ok)
}

/// Where programs on this machine reach a host that listens there.
fn from_here(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listens.port())
}

/// Nothing but the built-in defaults, the file of the project or the one it is given, and the flags: `dev` must not depend
/// on what happens to be set. How much is logged, and how, is the exception: whoever looks for a fault sets it as for `serve`.
fn config(args: &Args) -> Result<Config, Failure> {
    let mut layered = Layered::defaults();
    layered.default("log.level", Value::Text("warn".to_owned()));
    if let Some(file) = args.config.clone().or_else(project_file) {
        layered.file(&file).map_err(|error| Failure::usage(error.to_string()))?;
    }
    if let Some(packs) = &args.packs {
        layered.flag("packs", "--packs", Value::Text(packs.display().to_string()));
    }
    layered.env_below("log.", |name| std::env::var(name).ok()).map_err(|error| Failure::usage(error.to_string()))?;
    layered.flag("listen", "--listen", Value::Text(args.listen.to_string()));
    layered.flag("data", "--data", Value::Text(args.data.display().to_string()));
    layered.flag("webhooks.allow_private", "dev", Value::Bool(true));
    if let Some(endpoint) = &args.otlp_endpoint {
        layered.flag("otlp_endpoint", "--otlp-endpoint", Value::Text(endpoint.clone()));
    }
    let config = layered
        .secret_flags(&args.secrets)
        .and_then(|()| layered.remote_flags(&args.remotes))
        .and_then(|()| layered.config())
        .map_err(|error| Failure::usage(error.to_string()))?;
    // A folder of its own, always.
    let mut config = Config { database: None, ..config };
    let scripted = ModelChoice { provider: SCRIPTED.to_owned(), model: "demo".to_owned() };
    config.sections.models.entry(None).or_insert(scripted);
    Ok(config)
}

fn greet(context: &Context, args: &Args, opened: &Opened, file: &DevFile, model: Option<&ModelChoice>) {
    let output = &context.output;
    output.error(&format!("listening on http://{}", opened.address));
    let folders: Vec<String> = args.workflows.iter().map(|folder| folder.display().to_string()).collect();
    output.note(format_args!("console at {}/console", file.url));
    output.note(format_args!("data in {}, key {} (tenant {TENANT})", args.data.display(), file.key));
    if let Some(file) = args.config.clone().or_else(project_file) {
        output.note(format_args!("configuration from {}", file.display()));
    }
    output.note(format_args!("demo workflows: {}; watching {}", DEMOS.join(", "), folders.join(", ")));
    if let Some(ModelChoice { provider, model }) = model {
        let about = if provider == SCRIPTED { " (scripted answers; use --config FILE for a real model)" } else { "" };
        output.note(format_args!("agents use {provider}/{model}{about}"));
    }
    let reach = if args.data == Path::new(DEV_DATA) {
        String::new()
    } else {
        format!("BATON_URL=http://{} BATON_API_KEY={} ", opened.address, file.key)
    };
    for demo in ["demo-pipeline", "demo-agents"] {
        output.hint(format_args!("{reach}baton run start {demo} --wait"));
    }
}
