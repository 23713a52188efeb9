//! Where sensitive values go. A variable is sensitive when it is declared so, or when some node computes it from one
//! that is: the rule is by name and decided once, so that masking never depends on what a value looks like.

use std::collections::BTreeSet;

use super::compiled::{Plan, PlanNode};
use super::node_config::Kind;
use super::ports::{Origin, Port};

/// Fills in which names are masked, for the run and for each node.
pub(super) fn mark(plan: &mut Plan) {
    let mut names: BTreeSet<String> =
        plan.definition.variables.iter().filter(|v| v.sensitive).map(|v| v.name.clone()).collect();
    names.extend(plan.definition.channels.iter().filter(|(_, c)| c.sensitive).map(|(name, _)| name.clone()));
    loop {
        let found: Vec<String> = plan
            .nodes
            .iter()
            .flat_map(|node| node.kind.stores(&node.inputs).into_iter().map(move |flow| (node, flow)))
            .filter(|(node, (name, origin))| !names.contains(*name) && reads(node, origin, &names))
            .map(|(_, (name, _))| name.to_owned())
            .collect();
        if found.is_empty() {
            break;
        }
        names.extend(found);
    }
    for node in &mut plan.nodes {
        node.hidden = hidden(node, &names);
        node.sensitive = tells_sensitive(node, &names);
    }
    plan.sensitive = names;
}

/// Ports and outputs of a node that carry a sensitive value under a name of their own.
fn hidden(node: &PlanNode, names: &BTreeSet<String>) -> BTreeSet<String> {
    let mut hidden = sensitive_ports(node, names);
    let own = match &node.kind {
        // What a model makes of a secret may repeat it.
        Kind::StructuredOutput(_) if !hidden.is_empty() => Some("data"),
        Kind::Http(_) if tells_sensitive(node, names) => Some("response"),
        Kind::Tool(_) if tells_sensitive(node, names) => Some("result"),
        Kind::Map(_) if tells_sensitive(node, names) => {
            hidden.insert("errors".to_owned());
            Some("results")
        }
        Kind::GetVariable(get) if names.contains(get.name()) => Some("value"),
        Kind::ChannelWrite(write) if names.contains(write.channel()) => Some("value"),
        Kind::Loop(head) if head.into().is_some_and(|name| names.contains(name)) => Some("item"),
        Kind::Loop(head) if head.items().is_some_and(|items| reads(node, &Origin::Expression(items), names)) => {
            Some("item")
        }
        kind => kind.fills().filter(|(_, into)| names.contains(*into)).map(|(output, _)| output),
    };
    hidden.extend(own.map(str::to_owned));
    hidden
}

/// Whether the node tells somebody outside what is sensitive: whatever it says from then on may repeat it.
fn tells_sensitive(node: &PlanNode, names: &BTreeSet<String>) -> bool {
    match &node.kind {
        Kind::Agent(_) => !sensitive_ports(node, names).is_empty(),
        Kind::Http(http) => http.sends().into_iter().any(|sent| reads(node, &Origin::Expression(sent), names)),
        Kind::Tool(step) if step.sends_inputs() => !sensitive_ports(node, names).is_empty(),
        Kind::Tool(step) => step.sends().is_some_and(|sent| reads(node, &Origin::Expression(sent), names)),
        Kind::Map(map) => map.tells().iter().any(|told| reads(node, told, names)),
        _ => false,
    }
}

fn sensitive_ports(node: &PlanNode, names: &BTreeSet<String>) -> BTreeSet<String> {
    let sensitive = node.inputs.iter().filter(|(_, port)| match port {
        Port::Variable { name, .. } => names.contains(name),
        Port::Expression(expression) => mentions(expression.source(), names),
        // What another node hides is masked before anybody reads it.
        Port::Connection { .. } | Port::Static(_) => false,
    });
    sensitive.map(|(name, _)| name.clone()).collect()
}

fn reads(node: &PlanNode, origin: &Origin<'_>, names: &BTreeSet<String>) -> bool {
    let ports = sensitive_ports(node, names);
    match origin {
        Origin::Port(name) => ports.contains(*name),
        Origin::Variable(name) => names.contains(*name),
        Origin::Expression(expression) => {
            mentions(expression.source(), names) || (!ports.is_empty() && mentions(expression.source(), &ports))
        }
    }
}

/// Whether the source names one of these, or reads all variables at once.
fn mentions(source: &str, names: &BTreeSet<String>) -> bool {
    let words = || source.split(|c: char| !is_word_part(c));
    !names.is_empty()
        && (words().any(|word| names.contains(word))
            || names.iter().any(|name| !name.chars().all(is_word_part) && source.contains(name.as_str()))
            || ["variables", "inputs"].iter().any(|map| reads_whole(source, map)))
}

/// Whether a map is used other than by a key that stands in the source.
fn reads_whole(source: &str, map: &str) -> bool {
    source.match_indices(map).any(|(at, _)| {
        let mut after = source[at + map.len()..].trim_start().chars();
        let inside_word = source[..at].ends_with(is_word_part) || source[at + map.len()..].starts_with(is_word_part);
        let by_key = match after.next() {
            Some('.') => true,
            Some('[') => after.find(|c| !c.is_whitespace()).is_some_and(|c| c == '\'' || c == '"'),
            _ => false,
        };
        !inside_word && !by_key
    })
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
