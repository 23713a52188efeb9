use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::config::{CONFIG_FILE_ENV, Config, Layered, Value};
use crate::context::Context;
use crate::dev_file::DEV_DATA;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::{self, ApiKeys, workflows};

/// Flags that lie over the configuration.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Configuration file in TOML
    #[arg(long, value_name = "FILE", env = CONFIG_FILE_ENV, value_hint = clap::ValueHint::FilePath)]
    config: Option<OsString>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<std::net::SocketAddr>,
    /// Data folder [default: ./.baton]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use this PostgreSQL database, which hosts may share, instead of a data folder: postgres://user:password@host/database
    ///
    /// Other users of this machine can see flags. Use BATON_DATABASE_URL if the address holds a password.
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    database_url: Option<String>,
    /// Do not use LISTEN/NOTIFY to learn what other hosts do; poll instead
    #[arg(long)]
    no_listen: bool,
    /// Folder of *.json workflows to register at the start; may be repeated
    #[arg(long, value_name = "DIR")]
    workflows: Vec<PathBuf>,
    /// Secret that memory and workspace never store: ID=env:VARIABLE or ID=file:PATH. May be repeated
    #[arg(long = "secret", value_name = "REFERENCE")]
    secrets: Vec<String>,
    /// Host for remote workers: NAME=URL@env:VARIABLE or NAME=URL@file:PATH. May be repeated
    #[arg(long = "remote", value_name = "REMOTE")]
    remotes: Vec<String>,
    /// Name of this host; must never change [default: host and port of public_url, or a generated name that is kept]
    #[arg(long, value_name = "ID", value_parser = host_id)]
    host_id: Option<String>,
    /// Folder of agent packs, in addition to the built-in pack
    #[arg(long, value_name = "DIR")]
    packs: Option<std::path::PathBuf>,
    /// OpenTelemetry collector (OTLP/HTTP), for example http://localhost:4318 [default: no traces are sent]
    #[arg(long, value_name = "URL", value_parser = collector)]
    otlp_endpoint: Option<String>,
    /// Turn on test endpoints and conformance workflows; never in production
    #[arg(long)]
    conformance: bool,
}

impl Args {
    /// All layers on top of each other.
    pub(crate) fn layered(&self) -> Result<Layered, crate::config::Error> {
        let mut layered = Layered::defaults();
        // An empty variable counts as not set.
        if let Some(path) = self.config.as_ref().filter(|path| !path.is_empty()) {
            layered.file(Path::new(path))?;
        }
        layered.env(|name| std::env::var(name).ok())?;
        let text = |path: &PathBuf| path.display().to_string();
        if let Some(listen) = self.listen {
            layered.flag("listen", "--listen", Value::Text(listen.to_string()));
        }
        if let Some(data) = &self.data {
            layered.flag("data", "--data", Value::Text(text(data)));
        }
        if let Some(url) = &self.database_url {
            layered.database_flag(url)?;
        }
        if self.no_listen {
            layered.flag("database.listen", "--no-listen", Value::Bool(false));
        }
        if !self.workflows.is_empty() {
            layered.flag("workflows", "--workflows", Value::List(self.workflows.iter().map(text).collect()));
        }
        if let Some(id) = &self.host_id {
            layered.flag("host_id", "--host-id", Value::Text(id.clone()));
        }
        if let Some(packs) = &self.packs {
            layered.flag("packs", "--packs", Value::Text(packs.display().to_string()));
        }
        if let Some(endpoint) = &self.otlp_endpoint {
            layered.flag("otlp_endpoint", "--otlp-endpoint", Value::Text(endpoint.clone()));
        }
        layered.secret_flags(&self.secrets)?;
        layered.remote_flags(&self.remotes)?;
        if self.conformance {
            layered.flag("conformance", "--conformance", Value::Bool(true));
        }
        Ok(layered)
    }

    /// Where the data would be, even when the rest of the configuration cannot be used.
    pub(crate) fn data_or_default(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| PathBuf::from(DEV_DATA))
    }

    pub(crate) fn config(&self) -> Result<Config, Failure> {
        self.layered()
            .and_then(|layered| layered.config())
            .map_err(|error| Failure::usage(error.to_string()).hint("`baton config show` lists every setting"))
    }
}

fn host_id(text: &str) -> Result<String, String> {
    let fits = crate::config::is_host_id(text);
    fits.then(|| text.to_owned()).ok_or_else(|| "write it like baton.example.com".to_owned())
}

pub(super) fn collector(text: &str) -> Result<String, String> {
    let fits = baton_telemetry::export::Endpoint::parse(text).is_some();
    fits.then(|| text.to_owned()).ok_or_else(|| "write it like http://localhost:4318, without a password".to_owned())
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let config = args.config()?;
    let keys = ApiKeys::of(&config)?;
    let output = &context.output;
    for (name, suggestion) in Layered::unknown_vars(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
    {
        let meant = suggestion.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
        output.note(format_args!("warning: {name} is not a setting{meant}"));
    }
    for warning in &config.warnings {
        output.note(format_args!("warning: {warning}"));
    }
    hosting::start_logging(&config.log_level, config.log_format);
    let opened = hosting::open(&config, keys, Vec::new()).await?;
    let count = workflows::register_folders(&opened.host, &config.workflows, &opened.entrance, output).await?;
    opened.let_in();
    output.error(&format!("listening on http://{}", opened.address));
    if count > 0 {
        output.note(format_args!("registered {count} workflow files"));
    }
    if config.conformance {
        output.note("conformance mode: test endpoints are open; not for production");
    }
    opened.serve(output, std::future::pending()).await?;
    Ok(Exit::Ok)
}
