//! The table of settings: key, variable, kind, default, meaning. The documentation and the tests read it too.

use baton_model::{ContextBounds, Limits};

/// One thing that can be configured.
pub(crate) struct Setting {
    /// As it is written in the file; a dot is a table.
    pub(crate) key: &'static str,
    pub(crate) env: &'static str,
    /// A variable of the protocol's conformance suite that switches it on as well.
    pub(crate) also_env: Option<&'static str>,
    pub(crate) kind: Kind,
    pub(crate) help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Address,
    Path,
    /// In the environment separated by `:`.
    Paths,
    /// In the environment separated by `,`.
    Texts,
    Bool,
    Text,
    /// The name of a host among others.
    HostId,
    Count,
    /// Whole seconds, at least one.
    Seconds,
    Level,
    Format,
    /// Whom the data folder may be open to.
    Access,
    /// The kind of question a held decision asks.
    Escalation,
    /// Whole percent, from 50 to 100.
    Percent,
    /// Names of secrets and where each is found, never the secrets themselves. In the environment separated by `,`.
    References,
    /// Where traces are collected.
    Collector,
    /// How they are written.
    Encoding,
    /// Public keys with their ids. In the file a table or a list, in the environment separated by `,`.
    PublicKeys,
    /// Other hosts and where the key to each is found. In the file a table each, in the environment separated by `,`.
    Remotes,
    /// A database: may hold a password, so only the place is shown.
    Database,
    /// Never read from the file, never shown.
    Secret,
}

impl Kind {
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Address => "an address such as 127.0.0.1:7717",
            Self::Path => "a path",
            Self::Paths => "a list of folders",
            Self::Texts => "a list of texts",
            Self::Bool => "true or false",
            Self::Text => "a text",
            Self::HostId => "letters, digits, dots and dashes, such as baton.example.com",
            Self::Database => "postgres://user:password@host:5432/database",
            Self::Secret => "key:tenant[/subject][:scope+scope], comma separated",
            Self::Count => "a whole number of at least 0",
            Self::Seconds => "whole seconds, from 1 to 86400",
            Self::Level => "error, warn, info, debug or trace",
            Self::Format => "text or json",
            Self::Access => "owner, group or any",
            Self::Escalation => "approval, clarification or x-host-baton-low-confidence",
            Self::Percent => "a whole number from 50 to 100",
            Self::Collector => "an http:// or https:// address such as http://localhost:4318",
            Self::Encoding => "http/protobuf or http/json",
            Self::PublicKeys => "ID=KEY each, an id once; KEY is an Ed25519 public key as base64, or file:PATH of one",
            Self::References => "a list of ID=env:VARIABLE or ID=file:PATH",
            Self::Remotes => {
                "[remotes.NAME] with url = \"https://host\" and credential = \"env:VARIABLE\" or \"file:PATH\", \
                 or NAME=https://host@env:VARIABLE, each name once"
            }
        }
    }
}

/// A value of any layer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Bool(bool),
    Count(u64),
    List(Vec<String>),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Count(value) => write!(f, "{value}"),
            Self::List(items) => write!(f, "[{}]", items.join(", ")),
        }
    }
}

const fn setting(key: &'static str, env: &'static str, kind: Kind, help: &'static str) -> Setting {
    Setting { key, env, also_env: None, kind, help }
}

pub(crate) const SETTINGS: &[Setting] = &[
    setting("listen", "BATON_LISTEN", Kind::Address, "address to listen on; port 0 picks a free one"),
    setting("data", "BATON_DATA", Kind::Path, "data directory"),
    setting(
        "data_access",
        "BATON_DATA_ACCESS",
        Kind::Access,
        "who may read the data directory: owner closes it to everybody else; group or any accept more",
    ),
    setting(
        "database.url",
        "BATON_DATABASE_URL",
        Kind::Database,
        "PostgreSQL that several hosts share, instead of the data directory; may hold a password",
    ),
    setting(
        "database.pool_size",
        "BATON_DATABASE_POOL_SIZE",
        Kind::Count,
        "number of read connections. Each host opens four more: lookup, write, lease, notify",
    ),
    setting(
        "database.lease_ms",
        "BATON_DATABASE_LEASE_MS",
        Kind::Count,
        "other hosts take over a host's runs when it is silent for this long",
    ),
    setting(
        "database.listen",
        "BATON_DATABASE_LISTEN",
        Kind::Bool,
        "use LISTEN/NOTIFY to learn what other hosts do; with false, poll four times a second",
    ),
    setting(
        "workflows",
        "BATON_WORKFLOWS",
        Kind::Paths,
        "folders with *.json workflows to register at the start; in the variable separated by :",
    ),
    setting(
        "api_keys",
        "BATON_API_KEYS",
        Kind::Secret,
        "keys as key:tenant[/subject][:scope+scope], comma separated; not allowed in the file",
    ),
    setting("api_keys_file", "BATON_API_KEYS_FILE", Kind::Path, "file with keys, one per line or comma separated"),
    setting(
        "secrets",
        "BATON_SECRETS",
        Kind::References,
        "values that memory and workspace never store: ID=env:VARIABLE or ID=file:PATH, comma separated",
    ),
    setting(
        "remotes",
        "BATON_REMOTES",
        Kind::Remotes,
        "other hosts that may run workers: NAME=URL@env:VARIABLE or NAME=URL@file:PATH, comma separated; in the file [remotes.NAME]",
    ),
    setting(
        "remote_timeout_ms",
        "BATON_REMOTE_TIMEOUT_MS",
        Kind::Count,
        "a handoff fails, or a run ends without its remote worker, when the remote is silent for this long",
    ),
    setting("packs", "BATON_PACKS", Kind::Path, "folder of agent packs; packs under @TENANT/ are for that tenant only"),
    setting("prompts", "BATON_PROMPTS", Kind::Path, "folder of prompt templates"),
    setting(
        "show_prompts",
        "BATON_SHOW_PROMPTS",
        Kind::Bool,
        "write the text of agents' prompts to the log, not only the digest",
    ),
    setting(
        "runner_channel",
        "BATON_RUNNER_CHANNEL",
        Kind::Bool,
        "let runners sign in with tokens of their own, and calls of their tools wait for them",
    ),
    setting(
        "ignore_requirements",
        "BATON_IGNORE_REQUIREMENTS",
        Kind::Texts,
        "requirements of packs that may be missing on this host",
    ),
    setting(
        "trusted_keys",
        "BATON_TRUSTED_KEYS",
        Kind::PublicKeys,
        "public keys whose pack signatures are accepted: ID=KEY or ID=file:PATH, comma separated",
    ),
    setting("require_signed", "BATON_REQUIRE_SIGNED", Kind::Bool, "accept only packs signed by one of trusted_keys"),
    setting(
        "http.allow_private",
        "BATON_HTTP_ALLOW_PRIVATE",
        Kind::Bool,
        "let agents and workflows call private addresses and plain HTTP",
    ),
    setting(
        "http.allow",
        "BATON_HTTP_ALLOW",
        Kind::Texts,
        "single private addresses that they may call, as host:port, comma separated",
    ),
    setting(
        "tools.calls_per_minute",
        "BATON_TOOLS_CALLS_PER_MINUTE",
        Kind::Count,
        "tool calls per minute for each caller and tool; 0 = no limit",
    ),
    setting(
        "public_url",
        "BATON_PUBLIC_URL",
        Kind::Text,
        "address that callers use to reach this host; appears in links",
    ),
    setting(
        "host_id",
        "BATON_HOST_ID",
        Kind::HostId,
        "name of this host among others; must never change. Default: host and port of public_url, otherwise a generated name that is kept",
    ),
    setting(
        "rate_limit_per_second",
        "BATON_RATE_LIMIT_PER_SECOND",
        Kind::Count,
        "requests per second and key; 0 = no limit",
    ),
    setting(
        "rate_limit_per_second_per_tenant",
        "BATON_RATE_LIMIT_PER_SECOND_PER_TENANT",
        Kind::Count,
        "requests per second of all keys of a tenant; 0 = no limit",
    ),
    setting("max_in_flight", "BATON_MAX_IN_FLIGHT", Kind::Count, "requests and streams at the same time"),
    setting(
        "max_in_flight_per_tenant",
        "BATON_MAX_IN_FLIGHT_PER_TENANT",
        Kind::Count,
        "the same for one tenant; 0 = as many as are still free, if several tenants have keys",
    ),
    setting(
        "max_running_trees_per_tenant",
        "BATON_MAX_RUNNING_TREES_PER_TENANT",
        Kind::Count,
        "top-level runs of one tenant that are at work; 0 = no limit",
    ),
    setting(
        "max_waiting_trees_per_tenant",
        "BATON_MAX_WAITING_TREES_PER_TENANT",
        Kind::Count,
        "top-level runs of one tenant that wait for an answer; 0 = no limit",
    ),
    setting(
        "max_evaluation_units_per_second_per_tenant",
        "BATON_MAX_EVALUATION_UNITS_PER_SECOND_PER_TENANT",
        Kind::Count,
        "units of expressions that one tenant evaluates in a second; 0 = no limit",
    ),
    setting(
        "max_model_calls_per_provider",
        "BATON_MAX_MODEL_CALLS_PER_PROVIDER",
        Kind::Count,
        "calls of one model provider at the same time; a tenant has no more than are still free",
    ),
    setting(
        "max_stored_bytes_per_tenant",
        "BATON_MAX_STORED_BYTES_PER_TENANT",
        Kind::Count,
        "about how many bytes one tenant may have stored before nothing more is begun for it; 0 = no limit",
    ),
    setting(
        "max_streams_per_tenant",
        "BATON_MAX_STREAMS_PER_TENANT",
        Kind::Count,
        "event streams of one tenant; 0 = a quarter of max_in_flight, if several tenants have keys",
    ),
    setting(
        "max_reply_bytes_per_tenant",
        "BATON_MAX_REPLY_BYTES_PER_TENANT",
        Kind::Count,
        "bytes of replies of one tenant that wait for their readers",
    ),
    setting(
        "connections.max",
        "BATON_CONNECTIONS_MAX",
        Kind::Count,
        "connections at the same time; never more than the process has file descriptors for",
    ),
    setting(
        "connections.max_per_address",
        "BATON_CONNECTIONS_MAX_PER_ADDRESS",
        Kind::Count,
        "connections from one IPv4 address or IPv6 /64 network; 0 = no limit",
    ),
    setting(
        "connections.header_seconds",
        "BATON_CONNECTIONS_HEADER_SECONDS",
        Kind::Seconds,
        "time for the header of a request",
    ),
    setting(
        "connections.body_seconds",
        "BATON_CONNECTIONS_BODY_SECONDS",
        Kind::Seconds,
        "time for the body of a request",
    ),
    setting(
        "connections.body_idle_seconds",
        "BATON_CONNECTIONS_BODY_IDLE_SECONDS",
        Kind::Seconds,
        "time until the next piece of a body",
    ),
    setting(
        "connections.idle_seconds",
        "BATON_CONNECTIONS_IDLE_SECONDS",
        Kind::Seconds,
        "time that a connection stays open without a request",
    ),
    setting(
        "connections.write_seconds",
        "BATON_CONNECTIONS_WRITE_SECONDS",
        Kind::Seconds,
        "time that a client may take nothing of its reply",
    ),
    setting(
        "connections.max_http2_streams",
        "BATON_CONNECTIONS_MAX_HTTP2_STREAMS",
        Kind::Count,
        "requests at the same time on one HTTP/2 connection",
    ),
    setting(
        "readers",
        "BATON_READERS",
        Kind::Count,
        "number of read connections to the store, instead of database.pool_size; 0 = automatic",
    ),
    setting(
        "stuck_after_seconds",
        "BATON_STUCK_AFTER_SECONDS",
        Kind::Count,
        "work counts as stuck after this time; after twice this time the process ends itself",
    ),
    setting(
        "mirror_capabilities",
        "BATON_MIRROR_CAPABILITIES",
        Kind::Bool,
        "repeat capabilities at the place where older clients look",
    ),
    Setting {
        key: "conformance",
        env: "BATON_CONFORMANCE",
        also_env: Some("OPENWOP_TEST_SEAM_ENABLED"),
        kind: Kind::Bool,
        help: "test endpoints and conformance workflows; never in production",
    },
    Setting {
        key: "webhooks.allow_private",
        env: "BATON_WEBHOOKS_ALLOW_PRIVATE",
        also_env: Some("OPENWOP_WEBHOOK_ALLOW_PRIVATE"),
        kind: Kind::Bool,
        help: "let webhooks reach private addresses and plain HTTP; for tests on one machine",
    },
    setting(
        "webhooks.dead_letters",
        "BATON_WEBHOOKS_DEAD_LETTERS",
        Kind::Count,
        "undelivered events kept for one webhook; the oldest are dropped",
    ),
    setting(
        "webhooks.dead_letters_per_tenant",
        "BATON_WEBHOOKS_DEAD_LETTERS_PER_TENANT",
        Kind::Count,
        "the same for all webhooks of a tenant; the webhook with the most is cut first",
    ),
    setting(
        "webhooks.dead_letter_days",
        "BATON_WEBHOOKS_DEAD_LETTER_DAYS",
        Kind::Count,
        "how long undelivered events are kept",
    ),
    setting(
        "retention.max_age_days",
        "BATON_RETENTION_MAX_AGE_DAYS",
        Kind::Count,
        "prune ended runs after so many days; 0 = keep",
    ),
    setting(
        "retention.max_runs",
        "BATON_RETENTION_MAX_RUNS",
        Kind::Count,
        "keep the logs of so many top-level runs of each tenant, the newest; 0 = all",
    ),
    setting(
        "retention.max_bytes",
        "BATON_RETENTION_MAX_BYTES",
        Kind::Count,
        "keep about so many bytes of logs of each tenant, the newest; 0 = all",
    ),
    setting(
        "retention.window_days",
        "BATON_RETENTION_WINDOW_DAYS",
        Kind::Count,
        "days after its end in which no run is pruned by these rules",
    ),
    setting(
        "otlp_endpoint",
        "BATON_OTLP_ENDPOINT",
        Kind::Collector,
        "collector for spans, for example http://localhost:4318; without it nothing is sent",
    ),
    setting(
        "otlp_protocol",
        "BATON_OTLP_PROTOCOL",
        Kind::Encoding,
        "http/protobuf, or http/json for a collector without protobuf",
    ),
    setting(
        "otlp_headers",
        "BATON_OTLP_HEADERS",
        Kind::References,
        "headers for the collector: NAME=env:VARIABLE or NAME=file:PATH, comma separated",
    ),
    setting("otlp_events", "BATON_OTLP_EVENTS", Kind::Bool, "also send one span for every event; this is a lot"),
    setting(
        "escalation.min_confidence_percent",
        "BATON_ESCALATION_MIN_CONFIDENCE_PERCENT",
        Kind::Percent,
        "decisions with less confidence wait for a person; 50 to 100",
    ),
    setting(
        "escalation.interrupt",
        "BATON_ESCALATION_INTERRUPT",
        Kind::Escalation,
        "kind of question that such a decision asks: approval, clarification or x-host-baton-low-confidence",
    ),
    setting(
        "context.transcript_chars",
        "BATON_CONTEXT_TRANSCRIPT_CHARS",
        Kind::Count,
        "characters of earlier turns that a supervisor's model gets, 2000 to 400000",
    ),
    setting(
        "context.keep_last_turns",
        "BATON_CONTEXT_KEEP_LAST_TURNS",
        Kind::Count,
        "newest turns that are always included, 1 to 32, with 400 characters for each",
    ),
    setting("log.level", "BATON_LOG_LEVEL", Kind::Level, "error, warn, info, debug or trace; the log goes to stderr"),
    setting("log.format", "BATON_LOG_FORMAT", Kind::Format, "text or json"),
    setting("limits.max_node_executions", "BATON_LIMITS_MAX_NODE_EXECUTIONS", Kind::Count, "node starts per run"),
    setting(
        "limits.max_run_duration_ms",
        "BATON_LIMITS_MAX_RUN_DURATION_MS",
        Kind::Count,
        "wall-clock time per run (the default is 90 days)",
    ),
    setting("limits.max_nesting_depth", "BATON_LIMITS_MAX_NESTING_DEPTH", Kind::Count, "depth of child runs"),
    setting("limits.max_loop_iterations", "BATON_LIMITS_MAX_LOOP_ITERATIONS", Kind::Count, "supervisor turns per run"),
    setting("limits.max_fan_out", "BATON_LIMITS_MAX_FAN_OUT", Kind::Count, "parallel workers in one fan-out"),
    setting(
        "limits.max_children_per_tree",
        "BATON_LIMITS_MAX_CHILDREN_PER_TREE",
        Kind::Count,
        "descendants of one run",
    ),
    setting(
        "limits.max_memory_entry_bytes",
        "BATON_LIMITS_MAX_MEMORY_ENTRY_BYTES",
        Kind::Count,
        "size of a memory entry",
    ),
    setting("limits.max_memory_entries", "BATON_LIMITS_MAX_MEMORY_ENTRIES", Kind::Count, "entries in one memory scope"),
    setting(
        "limits.max_workspace_file_bytes",
        "BATON_LIMITS_MAX_WORKSPACE_FILE_BYTES",
        Kind::Count,
        "size of a workspace file",
    ),
    setting("limits.max_workspace_files", "BATON_LIMITS_MAX_WORKSPACE_FILES", Kind::Count, "files in one workspace"),
    setting(
        "limits.max_value_bytes",
        "BATON_LIMITS_MAX_VALUE_BYTES",
        Kind::Count,
        "size of one value of a run; you can only lower it",
    ),
    setting(
        "limits.max_run_bytes",
        "BATON_LIMITS_MAX_RUN_BYTES",
        Kind::Count,
        "variables, channels and outputs of a run together; you can only lower it",
    ),
    setting(
        "limits.max_request_body_bytes",
        "BATON_LIMITS_MAX_REQUEST_BODY_BYTES",
        Kind::Count,
        "size of a request body",
    ),
    setting("limits.max_metadata_bytes", "BATON_LIMITS_MAX_METADATA_BYTES", Kind::Count, "size of a run's metadata"),
    setting(
        "limits.clarification_rounds",
        "BATON_LIMITS_CLARIFICATION_ROUNDS",
        Kind::Count,
        "clarifications per agent invocation",
    ),
    setting(
        "limits.schema_rounds",
        "BATON_LIMITS_SCHEMA_ROUNDS",
        Kind::Count,
        "schema requests and refused envelopes per agent invocation",
    ),
    setting(
        "limits.envelopes_per_turn",
        "BATON_LIMITS_ENVELOPES_PER_TURN",
        Kind::Count,
        "envelopes in one model answer",
    ),
    setting(
        "limits.tool_rounds",
        "BATON_LIMITS_TOOL_ROUNDS",
        Kind::Count,
        "rounds of tool calls if neither node nor run sets a number; at most 1000",
    ),
    setting(
        "limits.max_budget_tokens",
        "BATON_LIMITS_MAX_BUDGET_TOKENS",
        Kind::Count,
        "tokens of one tree of runs; 0 = no limit",
    ),
    setting(
        "limits.max_budget_cost_cents",
        "BATON_LIMITS_MAX_BUDGET_COST_CENTS",
        Kind::Count,
        "cost of one tree of runs in US cents; needs prices; 0 = no limit",
    ),
];

pub(super) const DAY_MS: u64 = 24 * 3600 * 1000;

/// What holds when no layer says anything; `None` = unset.
pub(crate) fn default_of(key: &str) -> Option<Value> {
    let limits = Limits::default();
    let text = |value: &str| Some(Value::Text(value.to_owned()));
    let dead_letters = baton_runtime::DeadLetterBounds::default();
    let connections = baton_server::ConnectionLimits::default();
    let trees = baton_runtime::TreeLimits::default();
    let work = baton_runtime::WorkLimits::default();
    let seconds = |duration: std::time::Duration| Some(Value::Count(duration.as_secs()));
    match key {
        "listen" => text("127.0.0.1:7717"),
        "data" => text("./.baton"),
        "data_access" => text("owner"),
        "workflows"
        | "secrets"
        | "remotes"
        | "otlp_headers"
        | "ignore_requirements"
        | "trusted_keys"
        | "http.allow" => Some(Value::List(Vec::new())),
        "database.pool_size" => Some(Value::Count(8)),
        "database.lease_ms" => Some(Value::Count(10_000)),
        "database.listen" => Some(Value::Bool(true)),
        "remote_timeout_ms" => Some(Value::Count(120_000)),
        "rate_limit_per_second"
        | "rate_limit_per_second_per_tenant"
        | "tools.calls_per_minute"
        | "max_in_flight_per_tenant"
        | "max_streams_per_tenant" => Some(Value::Count(0)),
        "max_in_flight" => Some(Value::Count(10_000)),
        "max_running_trees_per_tenant" => trees.running.map(Value::Count),
        "max_waiting_trees_per_tenant" => trees.waiting.map(Value::Count),
        "max_evaluation_units_per_second_per_tenant" => work.evaluation_units.map(Value::Count),
        "max_model_calls_per_provider" => Some(Value::Count(work.model_calls as u64)),
        "max_stored_bytes_per_tenant" => work.stored_bytes.map(Value::Count),
        "max_reply_bytes_per_tenant" => Some(Value::Count(baton_server::TenantLimits::default().reply_bytes as u64)),
        "connections.max" => Some(Value::Count(connections.total as u64)),
        "connections.max_per_address" => Some(Value::Count(connections.per_address as u64)),
        "connections.header_seconds" => seconds(connections.header),
        "connections.body_seconds" => seconds(connections.body),
        "connections.body_idle_seconds" => seconds(connections.body_idle),
        "connections.idle_seconds" => seconds(connections.idle),
        "connections.write_seconds" => seconds(connections.write),
        "connections.max_http2_streams" => Some(Value::Count(connections.http2_streams.into())),
        "readers" => Some(Value::Count(0)),
        "stuck_after_seconds" => Some(Value::Count(30)),
        "mirror_capabilities" | "runner_channel" => Some(Value::Bool(true)),
        "conformance"
        | "require_signed"
        | "show_prompts"
        | "webhooks.allow_private"
        | "otlp_events"
        | "http.allow_private" => Some(Value::Bool(false)),
        "webhooks.dead_letters" => Some(Value::Count(dead_letters.per_webhook)),
        "webhooks.dead_letters_per_tenant" => Some(Value::Count(dead_letters.per_tenant)),
        "webhooks.dead_letter_days" => Some(Value::Count(dead_letters.days)),
        "retention.max_age_days" | "retention.max_runs" | "retention.max_bytes" => Some(Value::Count(0)),
        "retention.window_days" => Some(Value::Count(baton_runtime::RETENTION_WINDOW_MS / DAY_MS)),
        "otlp_protocol" => text("http/protobuf"),
        "log.level" => text("info"),
        "log.format" => text("text"),
        "limits.max_node_executions" => Some(Value::Count(limits.max_node_executions)),
        "limits.max_run_duration_ms" => Some(Value::Count(limits.max_run_duration_ms)),
        "limits.max_nesting_depth" => Some(Value::Count(limits.max_nesting_depth.into())),
        "limits.max_loop_iterations" => Some(Value::Count(limits.max_loop_iterations)),
        "limits.max_fan_out" => Some(Value::Count(limits.max_fan_out.into())),
        "limits.max_children_per_tree" => Some(Value::Count(limits.max_children_per_tree)),
        "context.transcript_chars" => Some(Value::Count(ContextBounds::default().transcript_chars.into())),
        "context.keep_last_turns" => Some(Value::Count(ContextBounds::default().keep_last_turns.into())),
        "escalation.min_confidence_percent" => Some(Value::Count(50)),
        "escalation.interrupt" => text("approval"),
        "limits.max_memory_entry_bytes" => Some(Value::Count(limits.max_memory_entry_bytes as u64)),
        "limits.max_memory_entries" => Some(Value::Count(limits.max_memory_entries)),
        "limits.max_workspace_file_bytes" => Some(Value::Count(limits.max_workspace_file_bytes as u64)),
        "limits.max_workspace_files" => Some(Value::Count(limits.max_workspace_files)),
        "limits.max_value_bytes" => Some(Value::Count(limits.max_value_bytes)),
        "limits.max_run_bytes" => Some(Value::Count(limits.max_run_bytes)),
        "limits.max_request_body_bytes" => Some(Value::Count(limits.max_request_body_bytes)),
        "limits.max_metadata_bytes" => Some(Value::Count(limits.max_metadata_bytes as u64)),
        "limits.clarification_rounds" => Some(Value::Count(limits.clarification_rounds.into())),
        "limits.schema_rounds" => Some(Value::Count(limits.schema_rounds.into())),
        "limits.envelopes_per_turn" => Some(Value::Count(limits.envelopes_per_turn.into())),
        "limits.tool_rounds" => Some(Value::Count(limits.tool_rounds.into())),
        "limits.max_budget_tokens" => Some(Value::Count(limits.max_budget_tokens)),
        "limits.max_budget_cost_cents" => Some(Value::Count(limits.max_budget_cost_cents)),
        _ => None,
    }
}
