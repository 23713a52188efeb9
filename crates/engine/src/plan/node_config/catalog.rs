//! The types of nodes there are. A type that is not listed here is refused, so the list is what there is.

use crate::nodes::conformance;

/// What every host has.
const ORDINARY: [&str; 32] = [
    "core.agents.run",
    "core.ai.structuredOutput",
    "core.approvalGate",
    "core.channelWrite",
    "core.clarificationGate",
    "core.conditional",
    "core.delay",
    "core.dispatch",
    "core.end",
    "core.fail",
    "core.getVariable",
    "core.identity",
    "core.interrupt",
    "core.loop",
    "core.merge",
    "core.noop",
    "core.orchestrator.supervisor",
    "core.parallel",
    "core.setVariable",
    "core.start",
    "core.subWorkflow",
    "vendor.baton.agent",
    "vendor.baton.http",
    "vendor.baton.map",
    "vendor.baton.memory.delete",
    "vendor.baton.memory.get",
    "vendor.baton.memory.list",
    "vendor.baton.memory.put",
    "vendor.baton.tool",
    "vendor.baton.workspace.get",
    "vendor.baton.workspace.list",
    "vendor.baton.workspace.put",
];

/// The types of nodes that definitions may use, by name. What a node wants of a model is in its configuration, not in its
/// type.
pub fn node_types(test_types: bool) -> Vec<&'static str> {
    let tests = conformance::TYPES.iter().filter(|_| test_types);
    let mut all: Vec<&str> = ORDINARY.iter().chain(tests).copied().collect();
    all.sort_unstable();
    all
}

pub(crate) fn knows(id: &str, test_types: bool) -> bool {
    ORDINARY.contains(&id) || (test_types && conformance::TYPES.contains(&id))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Features, Plan};

    /// What is said against a definition with one node of this type, without a configuration.
    fn problems(type_id: &str, conformance: bool) -> String {
        let node = json!({"id": "n", "typeId": type_id, "name": "n", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}});
        let definition = json!({"id": "conformance-w", "name": "w", "version": "1", "nodes": [node], "edges": [], "triggers": [],
            "variables": [], "metadata": {}, "settings": {}});
        let features = Features { conformance, ..Features::default() };
        Plan::compile(definition, features).err().map(|problems| format!("{problems:?}")).unwrap_or_default()
    }

    #[test]
    fn what_is_listed_is_there_and_what_is_not_is_refused() {
        const UNKNOWN: &str = "There is no node type";
        for test_types in [false, true] {
            let all = node_types(test_types);
            assert!(all.is_sorted() && all.contains(&"core.noop"));
            for id in all {
                let said = problems(id, test_types);
                assert!(!said.contains(UNKNOWN), "{id}: {said}");
            }
        }
        assert!(problems("core.unheardOf", true).contains(UNKNOWN));
        assert!(conformance::TYPES.iter().all(|id| problems(id, false).contains(UNKNOWN)));
    }
}
