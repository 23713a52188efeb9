//! What a definition says before its nodes: its name, variables, channels and settings.

use std::borrow::Cow;
use std::collections::BTreeSet;

use baton_model::workflow::{Access, Definition};
use baton_model::{BudgetPolicy, ValueBounds, WorkflowId, json};
use serde_json::Value;

use super::features::Features;
use super::problem::{Problem, escape};

/// Readers or writers of a channel. Each look at the channel goes through them.
const MAX_LISTED: usize = 256;

/// A mapping whose capability is off is refused before anything else is looked at, so that a client learns which
/// capability it lacks even if the rest is not to this host's taste.
pub(super) fn switched_off(raw: &Value, features: Features) -> Option<Problem> {
    let dispatch: &[&str] = &["inputMapping", "outputMapping", "perWorkerInputMappings", "perWorkerOutputMappings"];
    let rules: [(&str, bool, &[&str], &str); 2] = [
        ("core.dispatch", features.no_dispatch_mapping, dispatch, "agents.dispatchMapping"),
        ("core.subWorkflow", features.no_sub_workflow_mapping, &["inputMapping"], "subWorkflow.inputMapping"),
    ];
    for (i, node) in raw.get("nodes")?.as_array()?.iter().enumerate() {
        for (type_id, off, keys, capability) in rules {
            if !off || node.get("typeId").and_then(Value::as_str) != Some(type_id) {
                continue;
            }
            let used = |key: &&&str| {
                node.get("config").and_then(|config| config.get(**key)?.as_object()).is_some_and(|map| !map.is_empty())
            };
            if let Some(key) = keys.iter().find(used) {
                let message = format!("`{key}` needs the capability `{capability}`, which is switched off.");
                let mut problem = Problem::at(format!("/nodes/{i}/config/{key}"), message);
                problem.details.insert("requiredCapability".into(), capability.into());
                return Some(problem);
            }
        }
    }
    None
}

pub(super) fn check_header(definition: &Definition, features: Features, problems: &mut Vec<Problem>) {
    let id = definition.id.as_str();
    let id = if features.for_test_endpoint { Cow::Owned(id.replace('.', "-")) } else { Cow::Borrowed(id) };
    if !WorkflowId::is_valid(&id) && !stands_for_one_agent(definition) {
        problems
            .push(Problem::at("/id", "An id starts with a lowercase letter and has only a-z, 0-9, _ and - (≤128)."));
    }
    if definition.name.is_empty() || definition.name.chars().count() > 256 {
        problems.push(Problem::at("/name", "A name has 1 to 256 characters."));
    }
    if definition.nodes.is_empty() {
        problems.push(Problem::at("/nodes", "A workflow needs at least one node."));
    }
    if let Some(Err((path, why))) = definition.budget().map(BudgetPolicy::read) {
        problems.push(Problem::at(format!("/settings/budget{path}"), why));
    }
    check_defaults(definition, features, problems);
    let mut seen = BTreeSet::new();
    for (i, variable) in definition.variables.iter().enumerate() {
        if !seen.insert(variable.name.as_str()) {
            problems.push(Problem::at(
                format!("/variables/{i}/name"),
                format!("There are two variables named `{}`.", variable.name),
            ));
        }
    }
    for (name, channel) in &definition.channels {
        let place = format!("/channels/{}", escape(name));
        if seen.contains(name.as_str()) {
            problems.push(Problem::at(&place, "A channel and a variable cannot share a name."));
        }
        if channel.ttl_ms.is_some_and(|ttl| ttl == 0 || ttl > 31_536_000_000) {
            problems.push(Problem::at(format!("{place}/ttlMs"), "A channel's ttlMs is 1 to 31536000000."));
        }
        if channel.schema_version == Some(0) {
            problems.push(Problem::at(format!("{place}/schemaVersion"), "A channel's schemaVersion is at least 1."));
        }
        if channel.max_size == Some(0) {
            problems.push(Problem::at(format!("{place}/maxSize"), "A channel's maxSize is at least 1."));
        }
    }
}

/// Whether this is what a run of one agent is made of: `agent:<id>`, and nothing in it but that agent. Nobody can give
/// such an id to anything else.
fn stands_for_one_agent(definition: &Definition) -> bool {
    let (Some(id), [node]) = (definition.id.as_str().strip_prefix("agent:"), definition.nodes.as_slice()) else {
        return false;
    };
    let pinned = node.agent.as_ref().and_then(|agent| agent.get("agentId"));
    node.type_id == "vendor.baton.agent" && pinned.is_some_and(|agent| agent == id)
}

/// No run could begin with values that are over the largest bounds there are. On record they are read all the same.
fn check_defaults(definition: &Definition, features: Features, problems: &mut Vec<Problem>) {
    if features.recorded {
        return;
    }
    let bounds = ValueBounds::default();
    let mut all = 0_u64;
    let variables = definition.variables.iter().enumerate().filter_map(|(i, variable)| {
        Some((format!("/variables/{i}/defaultValue"), variable.name.as_str(), variable.default_value.as_ref()?))
    });
    let channels = definition.channels.iter().filter_map(|(name, channel)| {
        Some((format!("/channels/{}/default", escape(name)), name.as_str(), channel.default.as_ref()?))
    });
    for (pointer, name, value) in variables.chain(channels) {
        let size = json::size(value);
        all = all.saturating_add(json::named_size(name, value));
        if size > bounds.largest_value() || all > bounds.max_run_bytes {
            let most = bounds.max_value_bytes;
            let message = format!("This has about {size} bytes; a value may have {most}, and all together ");
            problems.push(Problem::at(pointer, format!("{message}{}.", bounds.max_run_bytes)));
        }
    }
    for (name, channel) in &definition.channels {
        let Some(Access::Listed { readers, writers }) = &channel.access else { continue };
        if readers.iter().chain(writers).any(|list| list.len() > MAX_LISTED) {
            let message = format!("A channel lists at most {MAX_LISTED} readers and as many writers.");
            problems.push(Problem::at(format!("/channels/{}/access", escape(name)), message));
        }
    }
}
