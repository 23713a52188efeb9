//! What the supervisor loop offers. Each member is here because the engine does it; what later versions of the
//! execution model add (causation across hosts, replay, stateful resume) is left out until it is true.

use baton_model::event::EscalationInterrupt;
use baton_runtime::Options;
use serde_json::{Map, Value, json};

use super::object;
use crate::routes::vendor_extensions;

/// Handoff (1) and confidence (2).
const EXECUTION_MODEL: u32 = 2;

pub(super) fn families(host: &Options) -> Map<String, Value> {
    object(json!({
        "multiAgent": {"executionModel": {
            "supported": true,
            "version": EXECUTION_MODEL,
            "confidenceEscalationFloor": host.escalation.floor,
            "confidenceEscalationInterruptKind": host.escalation.interrupt.as_str(),
        }},
        // No agent runs from a manifest yet: supervisors decide by rules.
        "agents": {
            "supported": false,
            "orchestrator": true,
            "dispatch": true,
            "dispatchMapping": true,
            "subRunAttestation": true,
        },
        "orchestrator": {"supported": true, "fanOutSupported": true},
        "dispatch": {
            "supported": true,
            "models": ["child-run"],
            "askUserRoutings": ["clarification", "auto"],
            "fanOutSupported": true,
            "fanOutPolicies": ["sequential", "reject", "parallel"],
            "joinModes": ["wait-all", "quorum", "first", "race"],
            "onChildFailureModes": ["collect", "fail-fast", "absorb"],
            "maxFanOut": host.limits.max_fan_out,
            "perItemInput": true,
        },
    }))
}

/// Where a vendor interrupt kind is explained, if one is in use.
pub(super) fn vendor_extensions_url(host: &Options) -> Option<String> {
    let base = host.public_url.as_deref().unwrap_or_default().trim_end_matches('/');
    let vendor = host.escalation.interrupt == EscalationInterrupt::Vendor;
    vendor.then(|| format!("{base}{}", vendor_extensions::PATH))
}
