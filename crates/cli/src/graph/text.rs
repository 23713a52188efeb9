use std::fmt::Write as _;

use baton_model::workflow::Definition;

use super::label;

/// Each node with what follows it, in the order of the definition.
pub(crate) fn draw(workflow: &Definition) -> String {
    let widest = workflow.nodes.iter().map(|node| node.id.as_str().chars().count()).max().unwrap_or(0);
    let mut text = format!("{} {} ({})\n", workflow.id, workflow.version, workflow.name);
    for node in &workflow.nodes {
        let disabled = if node.disabled { "  (disabled)" } else { "" };
        let _ = writeln!(text, "\n{:<widest$}  {}{disabled}", node.id.as_str(), node.type_id);
        for edge in workflow.edges.iter().filter(|edge| edge.source_node_id == node.id) {
            match label(edge) {
                Some(label) => {
                    let _ = writeln!(text, "  -> {}  [{label}]", edge.target_node_id);
                }
                None => {
                    let _ = writeln!(text, "  -> {}", edge.target_node_id);
                }
            }
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn reads_top_down() {
        assert_eq!(
            super::draw(&super::super::fixture::definition()),
            "\
w 2 (Say \"hi\")

a     core.start
  -> gate  [variables.n > 1]
  -> sub  [variables.kind == x]

gate  core.approvalGate
  -> end  [any_failed]
  -> end  [reject]

sub   core.subWorkflow
  -> end

end   core.end"
        );
    }
}
