//! A workflow drawn: as text for a terminal, as Mermaid for a page.

pub(crate) mod mermaid;
pub(crate) mod text;

use baton_model::workflow::{ConditionKind, Edge, EdgeCondition, TriggerRule};

use crate::render::brief;

const LONGEST_CONDITION: usize = 60;

/// What has to hold for an edge to be taken, if anything special.
fn label(edge: &Edge) -> Option<String> {
    let rule = match edge.trigger_rule {
        TriggerRule::AllSuccess => None,
        TriggerRule::AnySuccess => Some("any_success"),
        TriggerRule::AllComplete => Some("all_complete"),
        TriggerRule::NoneFailed => Some("none_failed"),
        TriggerRule::AnyFailed => Some("any_failed"),
    };
    // A port is where a branch, a loop or a gate says which way it went; the unnamed one is every node's.
    let port = edge.source_output.clone().filter(|port| port != "output");
    let parts = [port, edge.label.clone(), edge.condition.as_ref().map(condition), rule.map(str::to_owned)];
    let described = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    (!described.is_empty()).then_some(described)
}

fn condition(condition: &EdgeCondition) -> String {
    let left = condition.left.as_deref().unwrap_or_default();
    let right = condition.right.as_ref().map(|value| brief(value, LONGEST_CONDITION)).unwrap_or_default();
    match condition.kind {
        ConditionKind::Expression => {
            brief(&condition.expression.as_deref().unwrap_or_default().into(), LONGEST_CONDITION)
        }
        ConditionKind::Equals => format!("{left} == {right}"),
        ConditionKind::NotEquals => format!("{left} != {right}"),
        ConditionKind::Contains => format!("{left} contains {right}"),
        ConditionKind::Regex => format!("{left} =~ {right}"),
        ConditionKind::Truthy => left.to_owned(),
        ConditionKind::Falsy => format!("not {left}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub(crate) mod fixture {
    use baton_model::workflow::Definition;
    use serde_json::json;

    /// Two branches, a condition, a failure route and a gate.
    pub(crate) fn definition() -> Definition {
        let node = |id: &str, kind: &str| json!({"id": id, "typeId": kind, "name": id, "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}});
        serde_json::from_value(json!({
            "id": "w", "name": "Say \"hi\"", "version": "2", "triggers": [], "variables": [], "metadata": {},
            "settings": {},
            "nodes": [
                node("a", "core.start"), node("gate", "core.approvalGate"), node("sub", "core.subWorkflow"),
                node("end", "core.end"),
            ],
            "edges": [
                {"id": "1", "sourceNodeId": "a", "targetNodeId": "gate",
                 "condition": {"type": "expression", "expression": "variables.n > 1"}},
                {"id": "2", "sourceNodeId": "a", "targetNodeId": "sub",
                 "condition": {"type": "equals", "left": "variables.kind", "right": "x"}},
                {"id": "3", "sourceNodeId": "gate", "targetNodeId": "end", "triggerRule": "any_failed"},
                {"id": "5", "sourceNodeId": "gate", "targetNodeId": "end", "sourceOutput": "reject"},
                {"id": "4", "sourceNodeId": "sub", "targetNodeId": "end"},
            ],
        }))
        .unwrap()
    }
}
