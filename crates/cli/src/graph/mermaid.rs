use std::fmt::Write as _;

use baton_model::workflow::Definition;

use super::label;

/// A Mermaid flowchart. Nodes are numbered because node ids may hold anything.
pub(crate) fn draw(workflow: &Definition) -> String {
    let mut text = String::from("flowchart TD\n");
    for (index, node) in workflow.nodes.iter().enumerate() {
        let (open, close) = shape(&node.type_id);
        let name = quoted(node.id.as_str());
        let _ = writeln!(text, "  n{index}{open}\"{name}<br/><small>{}</small>\"{close}", quoted(&node.type_id));
    }
    let number = |id: &baton_model::NodeId| workflow.nodes.iter().position(|node| node.id == *id);
    for edge in &workflow.edges {
        let (Some(from), Some(to)) = (number(&edge.source_node_id), number(&edge.target_node_id)) else { continue };
        let _ = match label(edge) {
            Some(label) => writeln!(text, "  n{from} -->|\"{}\"| n{to}", quoted(&label)),
            None => writeln!(text, "  n{from} --> n{to}"),
        };
    }
    text.truncate(text.trim_end().len());
    text
}

/// Humans are asked in hexagons, children are framed, decisions are diamonds, ends are round.
fn shape(type_id: &str) -> (&'static str, &'static str) {
    match type_id {
        "core.start" | "core.end" => ("([", "])"),
        "core.approvalGate" | "core.clarificationGate" | "core.interrupt" => ("{{", "}}"),
        "core.subWorkflow" | "core.dispatch" | "vendor.baton.map" => ("[[", "]]"),
        "core.conditional" | "core.loop" => ("{", "}"),
        _ => ("[", "]"),
    }
}

fn quoted(text: &str) -> String {
    text.replace('#', "#35;").replace('"', "#quot;").replace('<', "#lt;").replace('>', "#gt;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_a_flowchart() {
        assert_eq!(
            super::draw(&super::super::fixture::definition()),
            "\
flowchart TD
  n0([\"a<br/><small>core.start</small>\"])
  n1{{\"gate<br/><small>core.approvalGate</small>\"}}
  n2[[\"sub<br/><small>core.subWorkflow</small>\"]]
  n3([\"end<br/><small>core.end</small>\"])
  n0 -->|\"variables.n #gt; 1\"| n1
  n0 -->|\"variables.kind == x\"| n2
  n1 -->|\"any_failed\"| n3
  n1 -->|\"reject\"| n3
  n2 --> n3"
        );
    }
}
