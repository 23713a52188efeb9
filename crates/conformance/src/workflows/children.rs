//! Workflows that call others.

use serde_json::{Value, json};

use super::draft::{Draft, chain, node};

pub(super) fn workflows() -> Vec<Draft> {
    let noop = |id: &str| node(id, "core.noop", json!({}));
    let call = |id: &str, config: Value| node(id, "core.subWorkflow", config);
    let mapped = |child: &str| json!({"workflowId": child, "inputMapping": {"receivedPrdId": "currentPrdId"}});
    vec![
        chain("conformance-subworkflow-child", vec![noop("child-noop")]).variable(
            "childResult",
            "string",
            Some(json!("child-completed")),
        ),
        chain(
            "conformance-subworkflow-parent",
            vec![
                noop("parent-start"),
                call(
                    "subwf-call",
                    json!({
                        "workflowId": "conformance-subworkflow-child",
                        "waitForCompletion": true,
                        "onChildFailure": "fail-parent",
                        "outputMapping": {"childOutcome": "childResult"}
                    }),
                ),
                noop("parent-end"),
            ],
        )
        .settings(json!({"timeout": 60_000, "maxRetries": 0})),
        chain("conformance-subworkflow-input-mapping-child", vec![noop("child-noop")]).variable(
            "receivedPrdId",
            "string",
            Some(json!("baked-in")),
        ),
        chain(
            "conformance-subworkflow-input-mapping",
            vec![call("subwf-call", mapped("conformance-subworkflow-input-mapping-child"))],
        )
        .variable("currentPrdId", "string", Some(json!("prd-1"))),
        chain(
            "conformance-subworkflow-input-mapping-no-default",
            vec![call("subwf-call", mapped("conformance-subworkflow-input-mapping-child"))],
        )
        .variable("currentPrdId", "string", None),
        chain(
            "conformance-subworkflow-mid-run-mutation-child",
            vec![node(
                "child-gate",
                "core.approvalGate",
                json!({"title": "Hold the child", "actions": ["accept", "reject"]}),
            )],
        )
        .variable("receivedPrdId", "string", Some(json!("baked-in"))),
        chain(
            "conformance-subworkflow-mid-run-mutation",
            vec![call("subwf-call", mapped("conformance-subworkflow-mid-run-mutation-child"))],
        )
        .variable("currentPrdId", "string", Some(json!("seeded-id"))),
    ]
}
