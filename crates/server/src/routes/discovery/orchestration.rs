//! What the supervisor loop offers. Each member is here because the engine does it. The transcript of a turn is bounded
//! in characters and not in events, so there is no `transcriptWindow`.

use baton_model::event::EscalationInterrupt;
use baton_runtime::Options;
use serde_json::{Map, Value, json};

use super::object::object;
use crate::routes::vendor_extensions;

/// Handoff (1), confidence and memory (2), causation across hosts (3), deterministic replay (4), the stateful loop (5).
const EXECUTION_MODEL: u32 = 5;
/// What the bound on a turn's transcript counts.
pub const TOKEN_COUNTER: &str = "chars";

pub(super) fn families(host: &Options) -> Map<String, Value> {
    let mut families = object(json!({
        "multiAgent": {"executionModel": {
            "supported": true,
            "version": EXECUTION_MODEL,
            "confidenceEscalationFloor": host.escalation.floor,
            "confidenceEscalationInterruptKind": host.escalation.interrupt.as_str(),
            "crossChildMemoryConcurrency": "strict",
            "crossHostCausation": {
                "supported": true,
                "hostId": host.host_id,
                "ancestryEndpointSupported": true,
            },
            "replayDeterminism": {
                "supported": true,
                "llmCacheKeyRecipe": "spec-rfc-0041",
                "refusalDivergenceEmission": true,
            },
            "statefulResume": true,
        }},
        // What live agents add is said in `agents.rs`.
        "agents": {
            "orchestrator": true,
            "dispatch": true,
            "dispatchMapping": true,
            "subRunAttestation": true,
            "memoryBackends": ["long-term"],
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
    }));
    // A bound on what a model is told says something only where a model is told. Older turns are left out, not summed up.
    // `every_window_is_whole_and_read_off_the_log` in the engine, `a_turns_window_is_read_off_its_log` here
    if host.models.infer() {
        families["multiAgent"]["executionModel"]["contextBudget"] = json!({
            "transcriptTokenBudget": host.context.transcript_chars,
            "tokenCounter": TOKEN_COUNTER,
            "summarization": {"supported": false},
        });
    }
    families
}

/// Where a vendor interrupt kind is explained, if one is in use.
pub(super) fn vendor_extensions_url(host: &Options) -> Option<String> {
    let base = host.public_url.as_deref().unwrap_or_default().trim_end_matches('/');
    let vendor = host.escalation.interrupt == EscalationInterrupt::Vendor;
    vendor.then(|| format!("{base}{}", vendor_extensions::path()))
}
