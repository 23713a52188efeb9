//! Workflows that wait for somebody.

use serde_json::{Value, json};

use super::draft::{Draft, chain, node};

pub(super) fn workflows() -> Vec<Draft> {
    let gate = |id: &str, config: Value| node(id, "core.approvalGate", config);
    let approve = |title: &str| json!({"title": title, "actions": ["accept", "reject"]});
    let quorum = json!({
        "title": "Three of you, please", "actions": ["accept", "reject"],
        "requiredApprovals": 3, "rejectionPolicy": "majority", "approversList": []
    });
    let bearer = json!({
        "title": "Keys only", "actions": ["accept", "reject"], "profile": "openwop-interrupt-auth-required"
    });
    let external = json!({
        "kind": "external-event",
        "data": {
            "eventType": "conformance.external.completed",
            "correlation": {"orderId": "fixture-order-1", "status": "completed"}
        },
        "timeoutMs": 60_000
    });
    let questions = json!({"questions": [{"id": "q1", "question": "Which way?"}]});
    vec![
        chain("conformance-approval", vec![gate("gate", approve("Go on?"))]),
        chain("conformance-clarification", vec![node("ask", "core.clarificationGate", questions)]),
        chain("conformance-interrupt-quorum", vec![gate("gate", quorum)]),
        chain("conformance-interrupt-auth-required", vec![gate("gate", bearer)]),
        chain("conformance-interrupt-external-event", vec![node("wait-for-external", "core.interrupt", external)]),
        chain("conformance-interrupt-parent-child-cancel-child", vec![gate("child-gate", approve("Child, go on?"))]),
        chain(
            "conformance-interrupt-parent-child-cancel",
            vec![node(
                "spawn-child",
                "core.subWorkflow",
                json!({
                    "workflowId": "conformance-interrupt-parent-child-cancel-child",
                    "waitForCompletion": true,
                    "propagateCancellation": true
                }),
            )],
        ),
    ]
}
