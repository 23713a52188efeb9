//! What this host's own names mean in the protocol's terms, for whoever meets one in a log or a webhook.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use baton_model::event::EscalationInterrupt;
use baton_runtime::{Options, UNKNOWN_EFFECT};
use serde_json::{Value, json};
use utoipa::Path as _;

use crate::app::App;
use crate::auth::access::Public;
use crate::document::Document;

/// Where the mapping is.
pub(crate) fn path() -> String {
    __path_get::path()
}

/// How the names this host adds map to the protocol's own (host extension).
#[utoipa::path(get, path = "/v1/host/baton/vendor-extensions", tag = "discovery",
    responses(
        (status = 200, description = "The mapping document", body = Object),
        (status = 304, description = "Unchanged")))]
pub(crate) async fn get(_: Public, State(app): State<App>, headers: HeaderMap) -> Response {
    app.documents.vendor_extensions.respond(&headers)
}

pub(crate) fn document(host: &Options) -> Document {
    Document::new(&mapping(host))
}

fn mapping(host: &Options) -> Value {
    let vendor = EscalationInterrupt::Vendor;
    json!({
        "host": "baton",
        "interruptKinds": [{
            "kind": vendor.as_str(),
            "inUse": host.escalation.interrupt == vendor,
            "capability": "multiAgent.executionModel.confidenceEscalationInterruptKind",
            "meaning": "A supervisor's decision was less sure than the floor and is held until a human ratifies it.",
            "canonicalEscalationKind": "escalate",
            "canonicalInterruptKind": EscalationInterrupt::Approval.as_str(),
            "waitingStatus": baton_model::RunStatus::WaitingApproval.as_str(),
            "data": "As for `approval`: artifactType `orchestrator-decision`, artifactData the held decision.",
            "resumeActions": ["accept", "reject", "refine", "edit-accept"],
            "consumers": consumers(),
        }, {
            "kind": UNKNOWN_EFFECT,
            // Of any tool that an agent calls, and of any request that a node makes.
            "inUse": true,
            "meaning": "A tool was called, and nobody knows whether the call took place. A human says what became of it.",
            "canonicalInterruptKind": EscalationInterrupt::Approval.as_str(),
            "waitingStatus": baton_model::RunStatus::WaitingApproval.as_str(),
            "data": "callId, toolName, inputs, question, actions.",
            "resumeActions": ["retry", "done", "fail"],
            "resumeValue": "{action, result?}: with `done`, `result` is what the call returned.",
            "consumers": consumers(),
        }],
    })
}

/// Where the name of a kind is met.
fn consumers() -> [&'static str; 4] {
    [
        "Run snapshots: `interrupt.kind`",
        "Event log, streams and webhooks: `kind` of interrupt.requested and node.suspended",
        "GET /v1/interrupts and GET /v1/interrupts/{token}: `kind`",
        "Command line: `baton interrupt list`, `show` and `resolve`",
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_its_own_is_mapped_to_one_of_the_protocol() {
        let mapping = mapping(&Options::default());
        let kinds: Vec<_> = mapping["interruptKinds"].as_array().into_iter().flatten().collect();
        let names: Vec<_> = kinds.iter().filter_map(|kind| kind["kind"].as_str()).collect();
        assert_eq!(names, ["x-host-baton-low-confidence", "x-host-baton-effect-unknown"]);
        for kind in kinds {
            assert_eq!(kind["canonicalInterruptKind"], "approval");
            for member in ["meaning", "data", "waitingStatus"] {
                assert!(kind[member].is_string(), "{member}");
            }
            assert!(kind["resumeActions"].as_array().is_some_and(|actions| !actions.is_empty()));
        }
    }

    #[test]
    fn the_vendor_kind_is_mapped_whether_or_not_it_is_in_use() {
        for interrupt in
            [EscalationInterrupt::Approval, EscalationInterrupt::Clarification, EscalationInterrupt::Vendor]
        {
            let mut host = Options::default();
            host.escalation.interrupt = interrupt;
            let kind = &mapping(&host)["interruptKinds"][0];
            assert_eq!(kind["kind"], "x-host-baton-low-confidence");
            assert_eq!(kind["inUse"], interrupt == EscalationInterrupt::Vendor);
            assert_eq!(
                (&kind["canonicalEscalationKind"], &kind["waitingStatus"]),
                (&json!("escalate"), &json!("waiting-approval"))
            );
            assert!(kind["consumers"].as_array().is_some_and(|consumers| !consumers.is_empty()));
        }
    }
}
