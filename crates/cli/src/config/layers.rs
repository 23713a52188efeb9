//! Laying defaults, file, environment and flags over each other, remembering where each value came from.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_model::event::{Escalation, EscalationInterrupt};
use baton_model::{ContextBounds, Limits, WorkflowId};
use baton_runtime::{DeadLetterBounds, RetentionPolicy, RetentionRule, TreeLimits, WorkLimits};
use baton_server::{ConnectionLimits, TenantLimits};
use baton_store_sqlite::DataAccess;
use baton_telemetry::export::Encoding;

use super::references::Reference;
use super::remotes::{Remote, Wrong};
use super::renamed::{RENAMED, warning};
use super::sections::{Sections, TABLES};
use super::settings::{DAY_MS, Kind, SETTINGS, Setting, Value, default_of};
use super::suggest::nearest;
use super::values::{from_text, from_toml, public_keys, references, remotes};
use super::{CONFIG_FILE_ENV, Config, Error, LogFormat};

/// Ours, but not settings of a host.
const OTHER_VARIABLES: [&str; 3] = [CONFIG_FILE_ENV, "BATON_URL", "BATON_API_KEY"];

/// Which layer a value came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    Default,
    File(PathBuf),
    Env(&'static str),
    /// It follows from another setting.
    Setting(&'static str),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Env(name) | Self::Setting(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// Every setting that has a value, and the value's origin.
#[derive(Debug)]
pub(crate) struct Layered {
    values: BTreeMap<&'static str, (Value, Origin)>,
    sections: Sections,
    /// Old names that were used.
    warnings: Vec<String>,
}

impl Layered {
    pub(crate) fn defaults() -> Self {
        let values = SETTINGS
            .iter()
            .filter_map(|setting| Some((setting.key, (default_of(setting.key)?, Origin::Default))))
            .collect();
        Self { values, sections: Sections::default(), warnings: Vec::new() }
    }

    pub(crate) fn file(&mut self, path: &Path) -> Result<(), Error> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|source| Error::Unreadable { file: file.clone(), source })?;
        let table: toml::Table =
            toml::from_str(&text).map_err(|source| Error::NotToml { file: file.clone(), source: Box::new(source) })?;
        let mut table = table;
        self.sections = Sections::take(&mut table).map_err(|why| Error::BadSection { file: file.clone(), why })?;
        if let Some(toml::Value::Table(remotes)) = table.get("remotes") {
            let lines = remote_lines(&file, path, remotes)?;
            table.insert("remotes".to_owned(), toml::Value::Array(lines));
        }
        if let Some(toml::Value::Table(keys)) = table.get("trusted_keys") {
            // What is no text is no key either, and is refused as such.
            let line = |(id, key): (&String, &toml::Value)| match key {
                toml::Value::String(key) => toml::Value::String(format!("{id}={key}")),
                other => other.clone(),
            };
            let lines = keys.iter().map(line).collect();
            table.insert("trusted_keys".to_owned(), toml::Value::Array(lines));
        }
        let mut flat = Vec::new();
        flatten("", &table, &mut flat);
        for renamed in RENAMED {
            let Some(old) = flat.iter().position(|(key, _)| key == renamed.old_key) else { continue };
            self.warnings.push(warning(&format!("{file}: `{}`", renamed.old_key), &format!("`{}`", renamed.key)));
            let (_, value) = flat.swap_remove(old);
            // Whoever says both means the new one.
            if flat.iter().all(|(key, _)| key != renamed.key) {
                flat.push((renamed.key.to_owned(), value));
            }
        }
        for (key, value) in flat {
            let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
                let suggestion = suggestion(&key);
                return Err(Error::UnknownKey { file, key, suggestion });
            };
            if setting.kind == Kind::Secret {
                return Err(Error::SecretInFile { file, key: setting.key, env: setting.env });
            }
            self.set(setting, from_toml(setting.kind, &value), Origin::File(path.to_owned()))?;
        }
        Ok(())
    }

    /// `read` is the environment; an argument, so that tests need not change the process. An empty variable counts as
    /// not set, as it does for `BATON_URL`: that is how many tools hand on what they have no value for.
    pub(crate) fn env(&mut self, read: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        self.env_below("", read)
    }

    /// The same for settings whose key begins like this.
    pub(crate) fn env_below(&mut self, prefix: &str, read: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
        for setting in SETTINGS.iter().filter(|setting| setting.key.starts_with(prefix)) {
            // The suite's switch can only turn a setting on; ours decides if both are set.
            if let Some(also) = setting.also_env.filter(|name| read(name).as_deref() == Some("true")) {
                self.set(setting, Some(Value::Bool(true)), Origin::Env(also))?;
            }
            let old = RENAMED.iter().find(|renamed| renamed.key == setting.key);
            if let Some((old, text)) = old.and_then(|old| Some((old.old_env, read(old.old_env)?)))
                && !text.is_empty()
            {
                self.warnings.push(warning(old, setting.env));
                self.set(setting, from_text(setting.kind, &text), Origin::Env(old))?;
            }
            if let Some(text) = read(setting.env).filter(|text| !text.is_empty()) {
                self.set(setting, from_text(setting.kind, &text), Origin::Env(setting.env))?;
            }
        }
        Ok(())
    }

    /// Variables that look like ours but name no setting. Worth a warning, not an error: a cluster may set
    /// `BATON_SERVICE_HOST` and the like by itself.
    pub(crate) fn unknown_vars(names: impl Iterator<Item = String>) -> Vec<(String, Option<&'static str>)> {
        let known = || SETTINGS.iter().map(|setting| setting.env);
        let old = |name: &str| RENAMED.iter().any(|renamed| renamed.old_env == name);
        names
            .filter(|name| name.starts_with("BATON_") && !OTHER_VARIABLES.contains(&name.as_str()))
            .filter(|name| known().all(|known| known != name) && !old(name))
            .map(|name| {
                let suggestion = nearest(&name, known());
                (name, suggestion)
            })
            .collect()
    }

    /// Another default than the usual one.
    pub(crate) fn default(&mut self, key: &'static str, value: Value) {
        self.values.insert(key, (value, Origin::Default));
    }

    pub(crate) fn flag(&mut self, key: &'static str, flag: &str, value: Value) {
        self.values.insert(key, (value, Origin::Flag(flag.to_owned())));
    }

    /// Fills in what no layer says but something else does.
    pub(crate) fn found(&mut self, key: &'static str, value: String, origin: Origin) {
        self.values.entry(key).or_insert((Value::Text(value), origin));
    }

    /// `--secret`, as often as it was given. Checked here, because the parser of the command line would repeat what is
    /// wrong with it.
    pub(crate) fn secret_flags(&mut self, items: &[String]) -> Result<(), Error> {
        self.list_flag("secrets", "--secret", items, references)
    }

    /// `--database-url`, in the same way.
    pub(crate) fn database_flag(&mut self, url: &str) -> Result<(), Error> {
        match SETTINGS.iter().find(|setting| setting.key == "database.url") {
            Some(setting) => self.set(setting, from_text(setting.kind, url), Origin::Flag("--database-url".to_owned())),
            None => Ok(()),
        }
    }

    /// `--remote`, in the same way.
    pub(crate) fn remote_flags(&mut self, items: &[String]) -> Result<(), Error> {
        self.list_flag("remotes", "--remote", items, remotes)
    }

    /// `--trusted-key`, in the same way.
    pub(crate) fn key_flags(&mut self, items: &[String]) -> Result<(), Error> {
        self.list_flag("trusted_keys", "--trusted-key", items, public_keys)
    }

    fn list_flag(
        &mut self,
        key: &str,
        flag: &str,
        items: &[String],
        read: impl Fn(Vec<String>) -> Option<Value>,
    ) -> Result<(), Error> {
        match SETTINGS.iter().find(|setting| setting.key == key) {
            Some(setting) if !items.is_empty() => {
                self.set(setting, read(items.to_vec()), Origin::Flag(flag.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Each setting in the table's order; secrets are hidden.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Setting, Option<Value>, Option<&Origin>)> {
        SETTINGS.iter().map(|setting| match self.values.get(setting.key) {
            Some((_, origin)) if setting.kind == Kind::Secret => {
                (setting, Some(Value::Text("(hidden)".to_owned())), Some(origin))
            }
            Some((Value::Text(url), origin)) if setting.kind == Kind::Database => {
                let place = baton_store_postgres::Settings::new(url.clone()).place();
                (setting, Some(Value::Text(place)), Some(origin))
            }
            Some((value, origin)) => (setting, Some(value.clone()), Some(origin)),
            None => (setting, None, None),
        })
    }

    pub(crate) fn config(&self) -> Result<Config, Error> {
        let listen = self.text("listen").unwrap_or_default();
        Ok(Config {
            listen: listen.parse().map_err(|_| self.bad("listen"))?,
            data: PathBuf::from(self.text("data").unwrap_or_default()),
            data_access: self.text("data_access").and_then(|text| DataAccess::parse(&text)).unwrap_or_default(),
            database: match self.text("database.url") {
                Some(url) => Some(baton_store_postgres::Settings {
                    pool_size: self.pool_size()?,
                    lease: self.lease()?,
                    listen: self.bool("database.listen"),
                    host: listen.clone(),
                    ..baton_store_postgres::Settings::new(url)
                }),
                None => None,
            },
            workflows: self.list("workflows").into_iter().map(PathBuf::from).collect(),
            conformance: self.bool("conformance"),
            api_keys: self.text("api_keys"),
            api_keys_file: self.text("api_keys_file").map(PathBuf::from),
            secrets: self.references("secrets"),
            remotes: self.list("remotes").iter().filter_map(|item| Remote::parse(item)).collect(),
            remote_timeout_ms: self.count("remote_timeout_ms")?,
            public_url: self.text("public_url"),
            host_id: self.text("host_id"),
            rate_limit_per_second: Some(self.count("rate_limit_per_second")?).filter(|limit| *limit > 0),
            max_in_flight: self.count("max_in_flight")?,
            tenants: self.tenants()?,
            connections: self.connections()?,
            readers: self.count("readers")?,
            stuck_after_seconds: self.count("stuck_after_seconds")?,
            packs: self.text("packs").map(PathBuf::from),
            prompts: self.text("prompts").map(PathBuf::from),
            ignored_requirements: self.list("ignore_requirements"),
            trusted_keys: self.list("trusted_keys"),
            require_signed: self.bool("require_signed"),
            http_allow_private: self.bool("http.allow_private"),
            http_allow: self.list("http.allow"),
            tool_calls_per_minute: self.count("tools.calls_per_minute")?,
            warnings: self.warnings.iter().chain(&self.sections.warnings).cloned().collect(),
            sections: self.sections.clone(),
            mirror_capabilities: self.bool("mirror_capabilities"),
            allow_private_webhooks: self.bool("webhooks.allow_private"),
            dead_letters: DeadLetterBounds {
                per_webhook: self.count("webhooks.dead_letters")?,
                per_tenant: self.count("webhooks.dead_letters_per_tenant")?,
                days: self.count("webhooks.dead_letter_days")?,
            },
            trees: self.trees()?,
            work: self.work()?,
            retention: self.retention()?,
            show_prompts: self.bool("show_prompts"),
            runner_channel: self.bool("runner_channel"),
            otlp_endpoint: self.text("otlp_endpoint"),
            otlp_encoding: self.text("otlp_protocol").and_then(|text| Encoding::parse(&text)).unwrap_or_default(),
            otlp_headers: self.references("otlp_headers"),
            otlp_events: self.bool("otlp_events"),
            log_level: self.text("log.level").unwrap_or_default(),
            log_format: match self.text("log.format").as_deref() {
                Some("json") => LogFormat::Json,
                _ => LogFormat::Text,
            },
            context: self.context()?,
            escalation: Escalation {
                floor: f64::from(self.count::<u32>("escalation.min_confidence_percent")?) / 100.0,
                interrupt: match self.text("escalation.interrupt").as_deref() {
                    Some("clarification") => EscalationInterrupt::Clarification,
                    Some("x-host-baton-low-confidence") => EscalationInterrupt::Vendor,
                    _ => EscalationInterrupt::Approval,
                },
                ..Escalation::default()
            },
            limits: Limits {
                max_node_executions: self.count("limits.max_node_executions")?,
                max_run_duration_ms: self.count("limits.max_run_duration_ms")?,
                max_nesting_depth: self.count("limits.max_nesting_depth")?,
                max_loop_iterations: self.count("limits.max_loop_iterations")?,
                max_fan_out: self.count("limits.max_fan_out")?,
                max_children_per_tree: self.count("limits.max_children_per_tree")?,
                max_memory_entry_bytes: self.count("limits.max_memory_entry_bytes")?,
                max_memory_entries: self.count("limits.max_memory_entries")?,
                max_workspace_file_bytes: self.count("limits.max_workspace_file_bytes")?,
                max_workspace_files: self.count("limits.max_workspace_files")?,
                max_value_bytes: self.count("limits.max_value_bytes")?,
                max_run_bytes: self.count("limits.max_run_bytes")?,
                max_request_body_bytes: self.count("limits.max_request_body_bytes")?,
                max_metadata_bytes: self.count("limits.max_metadata_bytes")?,
                clarification_rounds: self.count("limits.clarification_rounds")?,
                schema_rounds: self.count("limits.schema_rounds")?,
                envelopes_per_turn: self.count("limits.envelopes_per_turn")?,
                tool_rounds: self.count("limits.tool_rounds")?,
                max_budget_tokens: self.count("limits.max_budget_tokens")?,
                max_budget_cost_cents: self.count("limits.max_budget_cost_cents")?,
            },
        })
    }

    fn set(&mut self, setting: &'static Setting, value: Option<Value>, origin: Origin) -> Result<(), Error> {
        let Some(value) = value else {
            return Err(Error::BadValue { origin, key: setting.key, expected: setting.kind.expected() });
        };
        self.values.insert(setting.key, (value, origin));
        Ok(())
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        match self.values.get(key) {
            Some((Value::Text(text), _)) => Some(text.clone()),
            _ => None,
        }
    }

    pub(crate) fn bool(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some((Value::Bool(true), _)))
    }

    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        match self.values.get(key) {
            Some((Value::List(items), _)) => items.clone(),
            _ => Vec::new(),
        }
    }

    fn references(&self, key: &str) -> Vec<Reference> {
        self.list(key).iter().filter_map(|item| Reference::parse(item)).collect()
    }

    fn count<T: TryFrom<u64>>(&self, key: &'static str) -> Result<T, Error> {
        match self.values.get(key) {
            Some((Value::Count(count), _)) => T::try_from(*count).map_err(|_| self.bad(key)),
            _ => Err(self.bad(key)),
        }
    }

    /// A count of which none means that there is no such limit.
    fn limit<T: TryFrom<u64>>(&self, key: &'static str) -> Result<Option<T>, Error> {
        match self.count::<u64>(key)? {
            0 => Ok(None),
            _ => self.count(key).map(Some),
        }
    }

    fn seconds(&self, key: &'static str) -> Result<Duration, Error> {
        Ok(Duration::from_secs(self.count(key)?))
    }

    fn trees(&self) -> Result<TreeLimits, Error> {
        Ok(TreeLimits {
            running: self.limit("max_running_trees_per_tenant")?,
            waiting: self.limit("max_waiting_trees_per_tenant")?,
        })
    }

    fn work(&self) -> Result<WorkLimits, Error> {
        Ok(WorkLimits {
            model_calls: self.count("max_model_calls_per_provider")?,
            evaluation_units: self.limit("max_evaluation_units_per_second_per_tenant")?,
            stored_bytes: self.limit("max_stored_bytes_per_tenant")?,
        })
    }

    fn tenants(&self) -> Result<TenantLimits, Error> {
        Ok(TenantLimits {
            in_flight: self.limit("max_in_flight_per_tenant")?,
            streams: self.limit("max_streams_per_tenant")?,
            reply_bytes: self.count("max_reply_bytes_per_tenant")?,
            rate_per_second: self.limit("rate_limit_per_second_per_tenant")?,
        })
    }

    fn connections(&self) -> Result<ConnectionLimits, Error> {
        Ok(ConnectionLimits {
            total: self.count("connections.max")?,
            per_address: self.count("connections.max_per_address")?,
            header: self.seconds("connections.header_seconds")?,
            idle: self.seconds("connections.idle_seconds")?,
            write: self.seconds("connections.write_seconds")?,
            body: self.seconds("connections.body_seconds")?,
            body_idle: self.seconds("connections.body_idle_seconds")?,
            http2_streams: self.count("connections.max_http2_streams")?,
        })
    }

    fn pool_size(&self) -> Result<usize, Error> {
        const KEY: &str = "database.pool_size";
        // Whoever says how many may read says so of any store.
        let readers: usize = self.count("readers")?;
        if readers > 0 {
            return Ok(readers);
        }
        match self.count(KEY)? {
            // Whoever wants to read would wait for ever.
            0 => {
                let origin = self.values.get(KEY).map_or(Origin::Default, |(_, origin)| origin.clone());
                Err(Error::BadValue { origin, key: KEY, expected: "1 or more: every read needs a connection" })
            }
            size => Ok(size),
        }
    }

    fn retention(&self) -> Result<RetentionPolicy, Error> {
        let rule = |days: u64, runs: u64, bytes: u64| {
            let given = |number: u64| Some(number).filter(|number| *number > 0);
            let max_age_ms = given(days).map(|days| days.saturating_mul(DAY_MS));
            RetentionRule { max_age_ms, max_runs: given(runs), max_bytes: given(bytes) }
        };
        let general = rule(
            self.count("retention.max_age_days")?,
            self.count("retention.max_runs")?,
            self.count("retention.max_bytes")?,
        );
        let of_workflows = self.sections.retention.iter().map(|(workflow, section)| {
            let rule = rule(section.max_age_days, section.max_runs, section.max_bytes);
            (WorkflowId::new(workflow.as_str()), rule)
        });
        let window_ms = self.count::<u64>("retention.window_days")?.saturating_mul(DAY_MS);
        Ok(RetentionPolicy { window_ms, general, workflows: of_workflows.collect() })
    }

    fn context(&self) -> Result<ContextBounds, Error> {
        let within = |key: &'static str, range: RangeInclusive<u32>, expected: &'static str| {
            let value = self.count::<u32>(key).ok().filter(|value| range.contains(value));
            value.ok_or_else(|| Error::BadValue { origin: self.origin(key), key, expected })
        };
        let (chars, turns) = ("context.transcript_chars", "context.keep_last_turns");
        let bounds = ContextBounds {
            transcript_chars: within(chars, ContextBounds::CHARS, "from 2000 to 400000")?,
            keep_last_turns: within(turns, ContextBounds::TURNS, "from 1 to 32")?,
        };
        if bounds.at_most(None) != bounds {
            let expected = "a smaller number: each turn that is kept needs 400 of context.transcript_chars";
            return Err(Error::BadValue { origin: self.origin(turns), key: turns, expected });
        }
        Ok(bounds)
    }

    fn origin(&self, key: &str) -> Origin {
        self.values.get(key).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    fn lease(&self) -> Result<Duration, Error> {
        const KEY: &str = "database.lease_ms";
        let lease = Duration::from_millis(self.count(KEY)?);
        if (Duration::from_secs(1)..=Duration::from_secs(3600)).contains(&lease) {
            return Ok(lease);
        }
        let origin = self.values.get(KEY).map_or(Origin::Default, |(_, origin)| origin.clone());
        Err(Error::BadValue { origin, key: KEY, expected: "from 1000 (a second) to 3600000 (an hour)" })
    }

    fn bad(&self, key: &'static str) -> Error {
        let origin = self.values.get(key).map_or(Origin::Default, |(_, origin)| origin.clone());
        let kind = SETTINGS.iter().find(|setting| setting.key == key).map_or(Kind::Text, |setting| setting.kind);
        let expected = if kind == Kind::Count { "a smaller number" } else { kind.expected() };
        Error::BadValue { origin, key, expected }
    }
}

/// What a key that nobody knows was meant to be: a setting, or the table it stands in.
fn suggestion(key: &str) -> Option<String> {
    let table = key.split('.').next().unwrap_or_default();
    nearest(key, SETTINGS.iter().map(|setting| setting.key))
        .map(str::to_owned)
        .or_else(|| nearest(table, TABLES.into_iter()).map(|name| format!("[{name}]")))
}

/// The tables of other hosts as the lines that other layers have.
fn remote_lines(file: &str, path: &Path, tables: &toml::Table) -> Result<Vec<toml::Value>, Error> {
    let line = |(name, table): (&String, &toml::Value)| match Remote::from_table(name, table) {
        Ok(line) => Ok(toml::Value::String(line)),
        Err(Wrong::Unknown(key, suggestion)) => Err(Error::UnknownKey { file: file.to_owned(), key, suggestion }),
        Err(Wrong::Value) => {
            let expected = Kind::Remotes.expected();
            Err(Error::BadValue { origin: Origin::File(path.to_owned()), key: "remotes", expected })
        }
    };
    tables.iter().map(line).collect()
}

fn flatten(prefix: &str, table: &toml::Table, flat: &mut Vec<(String, toml::Value)>) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&key, inner, flat),
            other => flat.push((key, other.clone())),
        }
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
