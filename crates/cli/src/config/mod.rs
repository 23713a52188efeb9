//! The configuration of `serve`: defaults, then a TOML file, then the environment, then flags; later wins. One table
//! ([`settings::SETTINGS`]) names every key with its variable, so nothing can be spelt in two ways.

mod host_name;
mod layers;
mod references;
mod remotes;
mod renamed;
mod sections;
mod settings;
mod suggest;
mod trust;
mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use baton_model::Limits;

pub(crate) use host_name::is_host_id;
pub(crate) use layers::{Layered, Origin};
pub(crate) use references::{Place, Reference};
pub(crate) use remotes::Remote;
pub(crate) use sections::{ProviderSection, Sections, WorkerSection};
pub(crate) use settings::{SETTINGS, Value};
pub(crate) use trust::checks;

/// The variable that names the configuration file when `--config` does not.
pub(crate) const CONFIG_FILE_ENV: &str = "BATON_CONFIG";

/// The configuration file of a project, in its folder.
const PROJECT_FILE: &str = "baton.toml";

/// The configuration file of the project in the current folder, if it has one.
pub(crate) fn project_file() -> Option<PathBuf> {
    let file = PathBuf::from(PROJECT_FILE);
    file.is_file().then_some(file)
}

/// Everything `serve` needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) data_access: baton_store_sqlite::DataAccess,
    /// Where everything is kept instead of the folder, if several hosts share it.
    pub(crate) database: Option<baton_store_postgres::Settings>,
    pub(crate) workflows: Vec<PathBuf>,
    pub(crate) conformance: bool,
    pub(crate) api_keys: Option<String>,
    pub(crate) api_keys_file: Option<PathBuf>,
    pub(crate) secrets: Vec<Reference>,
    pub(crate) remotes: Vec<Remote>,
    pub(crate) remote_timeout_ms: u64,
    pub(crate) public_url: Option<String>,
    /// As it was given; see [`crate::hosting::host_id`] for what holds otherwise.
    pub(crate) host_id: Option<String>,
    pub(crate) rate_limit_per_second: Option<u32>,
    pub(crate) max_in_flight: usize,
    pub(crate) tenants: baton_server::TenantLimits,
    pub(crate) connections: baton_server::ConnectionLimits,
    /// 0 is as many as suit the store.
    pub(crate) readers: usize,
    pub(crate) stuck_after_seconds: u64,
    /// Folders of packs and of prompt templates.
    pub(crate) packs: Option<PathBuf>,
    pub(crate) prompts: Option<PathBuf>,
    pub(crate) show_prompts: bool,
    pub(crate) runner_channel: bool,
    /// Requirements of packs that may be missing here.
    pub(crate) ignored_requirements: Vec<String>,
    /// Whose packs are taken for what they say they are, a key each.
    pub(crate) trusted_keys: Vec<String>,
    /// Packs that none of them signed are not taken.
    pub(crate) require_signed: bool,
    /// Where the HTTP tools may go besides the public internet.
    pub(crate) http_allow_private: bool,
    pub(crate) http_allow: Vec<String>,
    /// Per caller and tool; 0 means no limit.
    pub(crate) tool_calls_per_minute: u32,
    /// Old names that are still used.
    pub(crate) warnings: Vec<String>,
    /// Tables whose entries the operator names.
    pub(crate) sections: Sections,
    pub(crate) mirror_capabilities: bool,
    pub(crate) allow_private_webhooks: bool,
    pub(crate) trees: baton_runtime::TreeLimits,
    pub(crate) work: baton_runtime::WorkLimits,
    pub(crate) dead_letters: baton_runtime::DeadLetterBounds,
    /// What is pruned without anybody asking.
    pub(crate) retention: baton_runtime::RetentionPolicy,
    /// Where spans go; nowhere if absent.
    pub(crate) otlp_endpoint: Option<String>,
    pub(crate) otlp_encoding: baton_telemetry::export::Encoding,
    pub(crate) otlp_headers: Vec<Reference>,
    pub(crate) otlp_events: bool,
    pub(crate) escalation: baton_model::event::Escalation,
    pub(crate) context: baton_model::ContextBounds,
    pub(crate) log_level: String,
    pub(crate) log_format: LogFormat,
    pub(crate) limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// Why a configuration cannot be used. Each says where.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{file}: {source}")]
    Unreadable {
        file: String,
        #[source]
        source: std::io::Error,
    },
    #[error("{file}: {source}")]
    NotToml {
        file: String,
        #[source]
        source: Box<toml::de::Error>,
    },
    #[error("{file}: unknown key `{key}`{}", suggestion.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
    UnknownKey { file: String, key: String, suggestion: Option<String> },
    #[error("{file}: {why}")]
    BadSection { file: String, why: String },
    #[error("{origin}: `{key}` must be {expected}")]
    BadValue { origin: Origin, key: &'static str, expected: &'static str },
    #[error("{file}: `{key}` is a secret and does not belong into a configuration file; set {env} or `api_keys_file`")]
    SecretInFile { file: String, key: &'static str, env: &'static str },
}
