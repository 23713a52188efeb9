//! Tables of the file whose entries the operator names: providers, models, MCP servers, prices. They have no variables
//! and no flags; a key that is spelt wrong is refused like any other.

use std::collections::BTreeMap;

use baton_model::{ModelChoice, ModelClass};
use baton_provider::{Price, ProviderSettings};
use baton_tool::mcp::McpSettings;
use baton_tool::runner::PoolSettings;

use super::references::{Place, Reference};
use super::renamed::warning;

/// The names of these tables.
pub(super) const TABLES: [&str; 8] =
    ["providers", "models", "mcp", "prices", "secret_hosts", "tool_aliases", "runners", "workers"];

/// What the tables say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections {
    pub(crate) providers: BTreeMap<String, ProviderSection>,
    /// By class; `default` stands for those that are not listed.
    pub(crate) models: BTreeMap<Option<ModelClass>, ModelChoice>,
    pub(crate) mcp: BTreeMap<String, McpSettings>,
    /// By pool.
    pub(crate) runners: BTreeMap<String, PoolSettings>,
    /// Programs that `dev` makes runners of, by pool.
    pub(crate) workers: BTreeMap<String, WorkerSection>,
    /// By `provider/model`.
    pub(crate) prices: BTreeMap<String, Price>,
    /// The hosts that a secret may be sent to, by its id.
    pub(crate) secret_hosts: BTreeMap<String, Vec<String>>,
    /// What packs call a tool, and the tool.
    pub(crate) tool_aliases: BTreeMap<String, String>,
    /// What is kept of the runs of one workflow, by its id.
    pub(crate) retention: BTreeMap<String, RetentionSection>,
    /// Old names that were used.
    pub(super) warnings: Vec<String>,
}

/// A provider, and where its key and some of its headers are found.
#[derive(Clone, Debug)]
pub(crate) struct ProviderSection {
    pub(crate) settings: ProviderSettings,
    pub(crate) api_key: Option<Reference>,
    /// Headers whose value is somewhere else. They are not among those of the settings.
    pub(crate) headers: BTreeMap<String, Reference>,
}

/// What is kept of the runs of one workflow; 0 or nothing keeps all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionSection {
    pub(crate) max_age_days: u64,
    pub(crate) max_runs: u64,
    pub(crate) max_bytes: u64,
}

/// A program that `dev` makes a runner of.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSection {
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Files and folders whose changes start it again, beside the files that the command names.
    #[serde(default)]
    pub(crate) watch: Vec<std::path::PathBuf>,
    #[serde(default)]
    pub(crate) concurrency: Option<u16>,
}

impl ProviderSection {
    /// What stands for a header's value where that may not be shown.
    pub(crate) fn header_id(provider: &str, header: &str) -> String {
        format!("provider-{provider}-{}", header.to_ascii_lowercase())
    }
}

impl Sections {
    /// Takes these tables out of a file and reads them. The error says which entry is wrong, and why.
    pub(super) fn take(table: &mut toml::Table) -> Result<Self, String> {
        let mut sections = Self::default();
        for (name, entry) in entries(table, "providers")? {
            if entry.get("cassette").is_some() {
                let (old, new) = (format!("`providers.{name}.cassette`"), format!("`providers.{name}.recording`"));
                sections.warnings.push(warning(&old, &new));
            }
            sections.providers.insert(name.to_ascii_lowercase(), provider(&name, entry)?);
        }
        for (class, entry) in entries(table, "models")? {
            let key = match (class.as_str(), ModelClass::read(&class)) {
                ("default", _) => None,
                (_, Some(known)) => Some(known),
                _ => {
                    let known: Vec<&str> = ModelClass::ALL.iter().map(|class| class.as_str()).collect();
                    return Err(format!("`models.{class}`: the classes are {}, and default", known.join(", ")));
                }
            };
            let choice = entry.as_str().and_then(ModelChoice::read);
            let choice = choice.ok_or_else(|| format!("`models.{class}` must be \"provider/model\""))?;
            sections.models.insert(key, choice);
        }
        for (name, entry) in entries(table, "mcp")? {
            let settings = entry.try_into().map_err(|error| describe("mcp", &name, &error))?;
            sections.mcp.insert(name, settings);
        }
        for (pool, entry) in entries(table, "runners")? {
            let settings: PoolSettings = entry.try_into().map_err(|error| describe("runners", &pool, &error))?;
            settings.check(&pool)?;
            sections.runners.insert(pool, settings);
        }
        for (name, entry) in entries(table, "workers")? {
            let worker: WorkerSection = entry.try_into().map_err(|error| describe("workers", &name, &error))?;
            let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
            if name.is_empty() || name.len() > 64 || !name.chars().all(letter) {
                return Err(format!("`workers.{name}` is not a name for a pool: use 1 to 64 of a-z 0-9 - _"));
            }
            if worker.command.is_empty() {
                return Err(format!("`workers.{name}.command` must name a program"));
            }
            if worker.concurrency.is_some_and(|number| number == 0 || number > 64) {
                return Err(format!("`workers.{name}.concurrency` must be 1 to 64"));
            }
            sections.workers.insert(name, worker);
        }
        for (name, entry) in entries(table, "prices")? {
            let price = entry.try_into().map_err(|error| describe("prices", &name, &error))?;
            sections.prices.insert(name, price);
        }
        for (id, entry) in entries(table, "secret_hosts")? {
            let hosts = entry.try_into().map_err(|error| describe("secret_hosts", &id, &error))?;
            sections.secret_hosts.insert(id, hosts);
        }
        for (name, entry) in entries(table, "tool_aliases")? {
            let is_id =
                |text: &str| text.split_once(':').is_some_and(|(scope, id)| !scope.is_empty() && !id.is_empty());
            match entry.as_str() {
                Some(tool) if is_id(&name) && is_id(tool) => drop(sections.tool_aliases.insert(name, tool.to_owned())),
                _ => {
                    return Err(format!(
                        "`tool_aliases.{name}`: write \"scope:name\" = \"scope:tool\", such as \
                         \"openwop:core.rag.retriever-basic\" = \"mcp:docs.search\""
                    ));
                }
            }
        }
        if let Some(toml::Value::Table(retention)) = table.get_mut("retention") {
            for (workflow, entry) in
                entries(retention, "workflows").map_err(|_| "`retention.workflows` must be a table")?
            {
                let rule = entry.try_into().map_err(|error| describe("retention.workflows", &workflow, &error))?;
                sections.retention.insert(workflow, rule);
            }
        }
        Ok(sections)
    }
}

fn entries(table: &mut toml::Table, name: &str) -> Result<toml::Table, String> {
    match table.remove(name) {
        None => Ok(toml::Table::new()),
        Some(toml::Value::Table(entries)) => Ok(entries),
        Some(_) => Err(format!("`{name}` must be a table")),
    }
}

fn provider(name: &str, entry: toml::Value) -> Result<ProviderSection, String> {
    let toml::Value::Table(mut table) = entry else { return Err(format!("`providers.{name}` must be a table")) };
    if table.contains_key("api_key") {
        return Err(format!(
            "`providers.{name}.api_key`: a key does not belong into a file; say `api_key_env = \"VARIABLE\"` or `api_key_file = \"PATH\"`"
        ));
    }
    let mut text = |key: &str| match table.remove(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(_) => Err(format!("`providers.{name}.{key}` must be a text")),
    };
    let place = match (text("api_key_env")?, text("api_key_file")?) {
        (Some(variable), None) => Some(Place::Variable(variable)),
        (None, Some(path)) => Some(Place::File(path.into())),
        (None, None) => None,
        (Some(_), Some(_)) => {
            return Err(format!("`providers.{name}`: give `api_key_env` or `api_key_file`, not both"));
        }
    };
    let headers = referred_headers(name, &mut table)?;
    let settings =
        toml::Value::Table(table).try_into().map_err(|error: toml::de::Error| describe("providers", name, &error))?;
    let api_key = place.map(|place| Reference { id: format!("provider-{name}"), place });
    Ok(ProviderSection { settings, api_key, headers })
}

/// Takes out the headers that say where their value is instead of what it is.
fn referred_headers(name: &str, table: &mut toml::Table) -> Result<BTreeMap<String, Reference>, String> {
    let mut referred = BTreeMap::new();
    let Some(toml::Value::Table(headers)) = table.get_mut("headers") else { return Ok(referred) };
    let is_place = |text: &str| text.starts_with("env:") || text.starts_with("file:");
    let named: Vec<String> = headers
        .iter()
        .filter(|(_, value)| value.as_str().is_some_and(is_place))
        .map(|(header, _)| header.clone())
        .collect();
    for header in named {
        let Some(toml::Value::String(text)) = headers.remove(&header) else { continue };
        let place = Place::parse(&text).ok_or_else(|| {
            format!("`providers.{name}.headers.{header}`: say `env:VARIABLE` or `file:PATH` for a value that is kept elsewhere")
        })?;
        let id = ProviderSection::header_id(name, &header);
        referred.insert(header, Reference { id, place });
    }
    Ok(referred)
}

/// The first line is the one that says it; the rest quotes the file, which may hold what should not be shown.
fn describe(section: &str, name: &str, error: &toml::de::Error) -> String {
    format!("`{section}.{name}`: {}", error.message().lines().next().unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn take(text: &str) -> Result<Sections, String> {
        Sections::take(&mut toml::from_str(text).unwrap())
    }

    #[test]
    fn providers_models_and_servers_are_read() {
        let read = take(
            "[providers.local]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:11434/v1\"\n\
             [providers.claude]\nkind = \"anthropic\"\napi_key_env = \"ANTHROPIC_API_KEY\"\n\
             [models]\nreasoning = \"claude/some-model\"\ndefault = \"local/a/b\"\n\
             [mcp.files]\ncommand = \"server\"\nargs = [\"--root\", \".\"]\n",
        )
        .unwrap();
        assert_eq!(read.providers.keys().collect::<Vec<_>>(), ["claude", "local"]);
        let key = read.providers["claude"].api_key.clone().unwrap();
        assert_eq!(key.place, Place::Variable("ANTHROPIC_API_KEY".to_owned()));
        assert_eq!(read.models[&None].model, "a/b");
        assert_eq!(read.models[&Some(ModelClass::Reasoning)].provider, "claude");
        assert!(read.mcp.contains_key("files"));
    }

    #[test]
    fn a_header_may_say_where_its_value_is() {
        let read = take(
            "[providers.gate]\nbase_url = \"http://127.0.0.1:1/v1\"\n[providers.gate.headers]\nX-Key = \"env:GATE_KEY\"\n\
             x-file = \"file:/run/key\"\nx-title = \"environment: mine\"\n",
        )
        .unwrap();
        let gate = &read.providers["gate"];
        assert_eq!(gate.headers["X-Key"].place, Place::Variable("GATE_KEY".to_owned()));
        assert_eq!(gate.headers["X-Key"].id, "provider-gate-x-key");
        assert_eq!(gate.headers["x-file"].place, Place::File("/run/key".into()));
        assert_eq!(gate.settings.headers.keys().collect::<Vec<_>>(), ["x-title"]);
        let error = take("[providers.gate.headers]\nx-key = \"env:\"\n").unwrap_err();
        assert!(error.contains("`providers.gate.headers.x-key`"), "{error}");
    }

    #[test]
    fn what_is_wrong_is_named_and_keys_are_never_repeated() {
        for (text, named) in [
            ("[providers.a]\nkin = 1\n", "`providers.a`"),
            ("[providers.a]\napi_key = \"sk-canary-canary\"\n", "`providers.a.api_key`"),
            ("[models]\nclever = \"a/b\"\n", "`models.clever`"),
            ("[models]\ngeneral = \"b\"\n", "`models.general`"),
            ("models = 3\n", "`models`"),
            ("[mcp.a]\ncomand = \"x\"\n", "`mcp.a`"),
        ] {
            let error = take(text).unwrap_err();
            assert!(error.contains(named) && !error.contains("canary"), "{text}: {error}");
        }
    }
}
