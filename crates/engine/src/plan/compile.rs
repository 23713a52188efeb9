//! From a definition to a plan. Every problem is reported at once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use baton_model::workflow::{Access, Definition, Node, OutputRole};
use baton_model::{BudgetPolicy, Digest, NodeId, ValueBounds, WorkflowId, code, json};
use serde_json::Value;

use super::compiled::{Plan, PlanEdge, PlanNode};
use super::condition::Condition;
use super::features::Features;
use super::nodes::{self, Kind};
use super::ports::Port;
use super::problem::{Problem, escape};
use super::sensitive;
use super::wiring::connect;
use crate::expr::{Strictness, reading};
use crate::nodes::conformance;
use crate::schema::Schema;

impl Plan {
    /// Compiles a definition, or says everything that is wrong with it.
    pub fn compile(definition: Value, features: Features) -> Result<Self, Vec<Problem>> {
        // Where no thread is to be had, each expression tries again for itself.
        let given = std::sync::Mutex::new(Some(definition));
        let take = || given.lock().ok().and_then(|mut given| given.take());
        let compile = || take().map(|definition| compile(definition, features));
        let compiled = reading::with_room(compile).flatten().or_else(compile);
        compiled.unwrap_or_else(|| Err(vec![Problem::at("", "This definition cannot be read.")]))
    }
}

const DEFAULT_RETRY_DELAY_MS: u64 = 1000;

/// Node types of the protocol that need a capability this host does not offer yet.
const GATED: &[(&str, &str)] = &[("core.conversationGate", "conversationPrimitive")];

/// Problems that are told of one definition. More would help nobody, and each takes room.
const MAX_PROBLEMS: usize = 50;

fn compile(raw: Value, features: Features) -> Result<Plan, Vec<Problem>> {
    compile_all(raw, features).map_err(|mut problems| {
        if let Some(more) = problems.len().checked_sub(MAX_PROBLEMS).filter(|more| *more > 0) {
            problems.truncate(MAX_PROBLEMS);
            problems.push(Problem::at("", format!("There are {more} more problems.")));
        }
        problems
    })
}

fn compile_all(raw: Value, features: Features) -> Result<Plan, Vec<Problem>> {
    if let Some(problem) = switched_off(&raw, features) {
        return Err(vec![problem]);
    }
    let digest = Digest::of_json(&raw);
    let definition: Definition = match read(raw) {
        Ok(definition) => definition,
        Err(problem) => return Err(vec![problem]),
    };
    let mut problems = Vec::new();
    check_header(&definition, features, &mut problems);
    let index = index_nodes(&definition, &mut problems);
    let edges = compile_edges(&definition, &index, features.strictness(), &mut problems);
    let nodes = compile_nodes(&definition, &index, features, &mut problems);
    let configurable = definition.configurable_schema.as_ref().and_then(|schema| {
        match Schema::compile(schema, features.strictness()) {
            Ok(schema) => Some(schema),
            Err(error) => {
                problems.push(Problem::at("/configurableSchema", format!("Not a valid JSON Schema: {error}")));
                None
            }
        }
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    let entries = Vec::new();
    let mut plan = Plan { definition, digest, nodes, edges, index, entries, configurable, sensitive: BTreeSet::new() };
    connect(&mut plan, features.strictness())?;
    sensitive::mark(&mut plan);
    Ok(plan)
}

/// A mapping whose capability is off is refused before anything else is looked at, so that a client learns which
/// capability it lacks even if the rest is not to this host's taste.
fn switched_off(raw: &Value, features: Features) -> Option<Problem> {
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

/// Shape errors keep the place they were found at.
fn read(raw: Value) -> Result<Definition, Problem> {
    if !raw.is_object() {
        return Err(Problem::at("", "A workflow definition is a JSON object."));
    }
    serde_path_to_error::deserialize(raw).map_err(|error| {
        let pointer = pointer_of(error.path());
        Problem::at(pointer, format!("{}.", error.into_inner()))
    })
}

fn pointer_of(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter().fold(String::new(), |pointer, segment| match segment {
        Segment::Seq { index } => format!("{pointer}/{index}"),
        Segment::Map { key } => format!("{pointer}/{}", escape(key)),
        Segment::Enum { .. } | Segment::Unknown => pointer,
    })
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

fn check_header(definition: &Definition, features: Features, problems: &mut Vec<Problem>) {
    let id = definition.id.as_str();
    let id = if features.seam { Cow::Owned(id.replace('.', "-")) } else { Cow::Borrowed(id) };
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

/// Readers or writers of a channel. Each look at the channel goes through them.
const MAX_LISTED: usize = 256;

fn index_nodes(definition: &Definition, problems: &mut Vec<Problem>) -> BTreeMap<NodeId, usize> {
    let mut index = BTreeMap::new();
    for (i, node) in definition.nodes.iter().enumerate() {
        if node.id.as_str().is_empty() {
            problems.push(Problem::at(format!("/nodes/{i}/id"), "A node id is not empty."));
        }
        if index.insert(node.id.clone(), i).is_some() {
            problems.push(Problem::at(format!("/nodes/{i}/id"), format!("There are two nodes with id `{}`.", node.id)));
        }
    }
    index
}

fn compile_edges(
    definition: &Definition,
    index: &BTreeMap<NodeId, usize>,
    strictness: Strictness,
    problems: &mut Vec<Problem>,
) -> Vec<PlanEdge> {
    let mut seen = BTreeSet::new();
    let mut edges = Vec::with_capacity(definition.edges.len());
    for (i, edge) in definition.edges.iter().enumerate() {
        let place = format!("/edges/{i}");
        if !seen.insert(edge.id.as_str()) {
            problems.push(Problem::at(format!("{place}/id"), format!("There are two edges with id `{}`.", edge.id)));
        }
        let mut end = |key: &str, node: &NodeId| match index.get(node) {
            Some(&position) => Some(position),
            None => {
                problems.push(Problem::at(format!("{place}/{key}"), format!("There is no node `{node}`.")));
                None
            }
        };
        let source = end("sourceNodeId", &edge.source_node_id);
        let target = end("targetNodeId", &edge.target_node_id);
        let compiled = edge.condition.as_ref().map(|condition| {
            let words = format!("edge `{}`, condition", edge.id);
            Condition::compile(condition, &format!("{place}/condition"), &words, strictness)
        });
        let condition = match compiled {
            Some(Ok(condition)) => Some(condition),
            Some(Err(problem)) => {
                problems.push(problem);
                None
            }
            None => None,
        };
        if let (Some(source), Some(target)) = (source, target) {
            let output = edge.source_output.clone().unwrap_or_else(|| "output".to_owned());
            edges.push(PlanEdge {
                source,
                target,
                output,
                condition,
                rule: edge.trigger_rule,
                back: false,
                pair: false,
            });
        }
    }
    edges
}

fn compile_nodes(
    definition: &Definition,
    index: &BTreeMap<NodeId, usize>,
    features: Features,
    problems: &mut Vec<Problem>,
) -> Vec<PlanNode> {
    let mut nodes = Vec::with_capacity(definition.nodes.len());
    for (i, node) in definition.nodes.iter().enumerate() {
        let place = format!("/nodes/{i}");
        let mut inputs = Vec::new();
        for (name, value) in &node.inputs {
            let pointer = format!("{place}/inputs/{}", escape(name));
            let words = format!("node `{}`, inputs/{name}", node.id);
            match Port::compile(value, &pointer, &words, features.strictness(), |id| index.get(id).copied()) {
                Ok(port) => inputs.push((name.clone(), port)),
                Err(problem) => problems.push(problem),
            }
        }
        // A channel is resolved by deployments, which this host has none of: whoever asks for one would get any version.
        if node.agent.as_ref().and_then(|agent| agent.get("channel")).is_some_and(|channel| !channel.is_null()) {
            let told = "This host has no deployment channels; pin the agent by `version`, or leave both out.";
            problems.push(Problem::at(format!("{place}/agent/channel"), told));
        }
        match compile_kind(definition, node, &place, features) {
            Ok(kind) => nodes.push(plan_node(definition, node, kind, inputs)),
            Err(found) => problems.extend(found),
        }
    }
    nodes
}

fn compile_kind(definition: &Definition, node: &Node, place: &str, features: Features) -> Result<Kind, Vec<Problem>> {
    if let Some((type_id, capability)) = GATED.iter().find(|(type_id, _)| *type_id == node.type_id) {
        let mut problem = Problem::at(
            format!("{place}/typeId"),
            format!("`{type_id}` needs the capability `{capability}`, which this host does not offer."),
        );
        problem.code = code::CAPABILITY_REQUIRED;
        problem.details.insert("requiredCapability".into(), (*capability).into());
        problem.details.insert("offendingTypeId".into(), node.type_id.clone().into());
        problem.details.insert("nodeId".into(), node.id.as_str().into());
        return Err(vec![problem]);
    }
    // Test-only types belong to test-only workflows, so that a production definition cannot lean on one.
    let named = || ["conformance-", "openwop-smoke-"].iter().any(|p| definition.id.as_str().starts_with(p));
    let test_workflow = features.seam || named();
    nodes::compile(
        node,
        definition,
        place,
        conformance::AVAILABLE && features.conformance && test_workflow,
        features.live_agents,
        features.strictness(),
    )
}

fn plan_node(definition: &Definition, node: &Node, kind: Kind, inputs: Vec<(String, Port)>) -> PlanNode {
    let own = node.settings.clone().unwrap_or_default();
    PlanNode {
        id: node.id.clone(),
        type_id: node.type_id.clone(),
        kind,
        inputs,
        incoming: Vec::new(),
        outgoing: Vec::new(),
        max_retries: own.max_retries.or(definition.settings.max_retries).unwrap_or(0),
        retry_delay_ms: own.retry_delay_ms.or(definition.settings.retry_delay_ms).unwrap_or(DEFAULT_RETRY_DELAY_MS),
        timeout_ms: own.timeout.filter(|&ms| ms > 0),
        disabled: node.disabled,
        primary: node.output_role == Some(OutputRole::Primary),
        hidden: BTreeSet::new(),
        sensitive: false,
        loop_: None,
        partner: None,
    }
}
