//! From a definition to a plan. Every problem is reported at once.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::workflow::{Definition, Node, OutputRole};
use baton_model::{Digest, NodeId, code};
use serde_json::Value;

use super::compiled::{Plan, PlanEdge, PlanNode};
use super::condition::Condition;
use super::features::Features;
use super::header::{check_header, switched_off};
use super::node_config::{self, Kind};
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
    let test_workflow = features.for_test_endpoint || named();
    node_config::compile(
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
    let timeouts = [own.timeout.filter(|&ms| ms > 0), kind.timeout_ms()];
    PlanNode {
        id: node.id.clone(),
        type_id: node.type_id.clone(),
        kind,
        inputs,
        incoming: Vec::new(),
        outgoing: Vec::new(),
        max_retries: own.max_retries.or(definition.settings.max_retries).unwrap_or(0),
        retry_delay_ms: own.retry_delay_ms.or(definition.settings.retry_delay_ms).unwrap_or(DEFAULT_RETRY_DELAY_MS),
        timeout_ms: timeouts.into_iter().flatten().min(),
        disabled: node.disabled,
        primary: node.output_role == Some(OutputRole::Primary),
        hidden: BTreeSet::new(),
        sensitive: false,
        loop_: None,
        partner: None,
    }
}
