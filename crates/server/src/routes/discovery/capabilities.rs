//! What a host offers, put together from what enforces it. A capability is listed only when something does.

use baton_runtime::Options;
use baton_runtime::acceptor::UNIVERSAL;
use serde_json::{Map, Value, json};

use super::object::object;
use super::{agents, budget, orchestration, versioned};
use crate::ServerOptions;
use crate::negotiate::PROTOCOL_VERSION;
use crate::routes::dead_letters::MAX_LIMIT;
use crate::routes::runs::economy::ENCODINGS;

pub const ENGINE_VERSION: u32 = 1;
const EVENT_LOG_SCHEMA_VERSION: u32 = 2;
/// Root members that describe the document or the host and are no capability family.
const NOT_MIRRORED: [&str; 4] = ["protocolVersion", "protocolVersions", "implementation", "baton"];

pub(crate) fn capabilities(options: &ServerOptions, host: &Options) -> Map<String, Value> {
    let limits = &host.limits;
    let mut root = object(json!({
        "protocolVersion": PROTOCOL_VERSION,
        "protocolVersions": [PROTOCOL_VERSION],
        "implementation": {"name": "Baton", "version": options.version, "vendor": "Baton"},
        "engineVersion": ENGINE_VERSION,
        "eventLogSchemaVersion": EVENT_LOG_SCHEMA_VERSION,
        // `an_agent_asks_people_and_goes_on`, and in the engine `agent_envelopes.rs`
        "supportedEnvelopes": UNIVERSAL,
        "schemaVersions": UNIVERSAL.iter().map(|kind| ((*kind).to_owned(), 1.into())).collect::<Map<_, Value>>(),
        "envelopeStrictness": "warn",
        // `what_follows_from_an_envelope_is_shown_and_belongs_to_no_run`; in runs `agent_envelopes.rs` of the engine
        "envelopeContracts": {"advertised": true},
        "supportedTransports": ["rest"],
        "limits": {
            "clarificationRounds": limits.clarification_rounds,
            "schemaRounds": limits.schema_rounds,
            "envelopesPerTurn": limits.envelopes_per_turn,
            "maxNodeExecutions": limits.max_node_executions,
            "maxRunDurationMs": limits.max_run_duration_ms,
            "maxLoopIterations": limits.max_loop_iterations,
            "maxRequestBodyBytes": options.max_body_bytes,
        },
        "runs": {"pauseResume": {"supported": true, "drainPolicies": ["immediate", "drain-current-node"]}},
        "idempotency": {"supported": true, "layer1RetentionSeconds": 86_400, "crossRegion": "single-region"},
        // Retried and, where that does not help, kept: `webhooks_are_durable_as_advertised` and `dead_letters.rs` in the
        // runtime's tests.
        "webhooks": {"supported": true, "signatureAlgorithms": ["v1"], "durable": true},
        // Every record says whether the world or the engine said it, and a replay reaches nobody: its calls are counted in
        // `runtime/tests/it/agents_forks.rs`.
        "replay": {
            "supported": true, "modes": ["replay", "branch"], "sideEffectSuppression": "recorded-outcome",
        },
        "debugBundle": {"supported": true},
        // `a_key_is_told_of_what_it_opens`
        "discovery": {"authScoped": {"supported": true, "mode": "same-endpoint"}},
        // `tests/it/http_annotations.rs`
        "feedback": {
            "supported": true,
            "targets": ["run", "event", "node"],
            "signals": ["rating", "correction", "label", "flag"],
        },
        "subWorkflow": {"inputMapping": true},
        // `a_run_that_did_not_change_is_not_sent_again`, `a_run_is_packed_for_whoever_takes_it_so`
        "restTransport": {"conditionalRunGet": true, "contentEncodings": ENCODINGS},
        "extensions": {"interrupts": {
            "profiles": [
                "openwop-interrupt-quorum",
                "openwop-interrupt-auth-required",
                "openwop-interrupt-external-event",
                "openwop-interrupt-cascade-cancel",
            ],
            "signedCallbackTokens": true,
        }},
        "baton": {
            "version": options.version,
            "conformance": options.test_capabilities.is_some(),
            "webhooks": {"deadLetters": {
                "retentionDays": host.dead_letters.days,
                "maxPerWebhook": host.dead_letters.per_webhook,
                "maxPerTenant": host.dead_letters.per_tenant,
                "maxPageSize": MAX_LIMIT,
            }},
        },
    }));
    root.extend(orchestration::families(host));
    root.extend(versioned::families(host));
    root.extend(budget::families(host));
    if let Some(limits) = root.get_mut("limits").and_then(Value::as_object_mut) {
        limits.extend(budget::limits(host));
    }
    root.extend(agents::families(host));
    if let Some(block) = root.get_mut("agents").and_then(Value::as_object_mut) {
        block.extend(agents::runtime(host));
    }
    if let Some(url) = orchestration::vendor_extensions_url(host) {
        root["baton"]["vendorExtensionsUrl"] = url.into();
    }
    root.extend(observability(host));
    if host.retention.is_on() {
        // `runs_of_the_last_days_stay_as_advertised`
        root["replay"]["retention"] = json!({"windowSeconds": host.retention.window_ms / 1000});
    }
    for (name, family) in options.test_capabilities.iter().flatten() {
        match (root.get_mut(name), family) {
            (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
            _ => drop(root.insert(name.clone(), family.clone())),
        }
    }
    if options.mirror_capabilities {
        let families = root.iter().filter(|(name, _)| !NOT_MIRRORED.contains(&name.as_str()));
        let mirror: Map<String, Value> = families.map(|(name, family)| (name.clone(), family.clone())).collect();
        root.insert("capabilities".to_owned(), mirror.into());
    }
    root
}

/// Only a host that sends spans says how.
fn observability(host: &Options) -> Option<(String, Value)> {
    // `a_span_arrives_as_it_was_told`, `a_span_arrives_in_json_where_that_is_wanted`
    let family = json!({"otel": {"exportProtocols": ["http/json", "http/protobuf"]}});
    host.observer.is_some().then(|| ("observability".to_owned(), family))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::event::EscalationInterrupt;

    fn build(conformance: bool, mirror_capabilities: bool) -> Value {
        let test = json!({"fixtures": ["a", "b"], "webhooks": {"tested": true}});
        let test_capabilities = conformance.then(|| object(test));
        let options = ServerOptions { test_capabilities, mirror_capabilities, ..ServerOptions::default() };
        capabilities(&options, &Options::default()).into()
    }

    #[test]
    fn the_required_members_are_there_with_their_types() {
        let document = build(false, true);
        assert_eq!(document["protocolVersion"], "1.0");
        assert!(document["protocolVersions"].as_array().unwrap().contains(&document["protocolVersion"]));
        assert!(document["supportedEnvelopes"].as_array().unwrap().contains(&"clarification.request".into()));
        assert!(document["schemaVersions"].as_object().unwrap().values().all(Value::is_u64));
        let allowed = [
            "clarificationRounds",
            "schemaRounds",
            "envelopesPerTurn",
            "maxNodeExecutions",
            "maxRunDurationMs",
            "maxLoopIterations",
            "maxBudgetTokens",
            "maxBudgetCostUsd",
            "maxRequestBodyBytes",
        ];
        for (name, limit) in document["limits"].as_object().unwrap() {
            assert!(allowed.contains(&name.as_str()) && limit.is_u64(), "{name}");
        }
        for name in &allowed[..3] {
            assert!(document["limits"][name].is_u64(), "{name}");
        }
        let mut implementation: Vec<_> = document["implementation"].as_object().unwrap().keys().collect();
        implementation.sort();
        assert_eq!(implementation, ["name", "vendor", "version"]);
    }

    #[test]
    fn test_surfaces_show_only_in_conformance_mode() {
        let live = build(false, true);
        assert!(live.get("fixtures").is_none() && live.get("testing").is_none());
        assert_eq!(live["baton"]["conformance"], false);
        let test = build(true, true);
        assert_eq!(test["fixtures"], json!(["a", "b"]));
        // A family that is there already is not lost.
        assert_eq!(
            test["webhooks"],
            json!({"supported": true, "signatureAlgorithms": ["v1"], "durable": true, "tested": true})
        );
        assert_eq!(test["baton"]["conformance"], true);
    }

    #[test]
    fn the_mirror_repeats_families_and_can_be_switched_off() {
        let document = build(true, true);
        for (name, family) in document["capabilities"].as_object().unwrap() {
            assert_eq!(&document[name], family, "{name}");
        }
        assert!(document["capabilities"].get("webhooks").is_some());
        assert!(document["capabilities"].get("implementation").is_none());
        assert!(build(true, false).get("capabilities").is_none());
    }

    #[test]
    fn the_legacy_action_name_does_not_appear() {
        assert!(!build(true, true).to_string().contains("\"edit\""));
    }

    #[test]
    fn families_that_are_not_built_are_not_claimed() {
        let document = build(true, true);
        for family in ["conformance", "production"] {
            assert!(document.get(family).is_none(), "{family}");
        }
        // Without an agent nothing is said about running one, and without a provider nothing about asking one.
        assert_eq!(document["agents"]["supported"], false);
        for block in ["manifestRuntime", "liveRuntime", "reasoning", "modelClasses"] {
            assert!(document["agents"].get(block).is_none(), "{block}");
        }
        for family in ["aiProviders", "providerUsage", "envelopes", "modelCapabilities"] {
            assert!(document.get(family).is_none(), "{family}");
        }
        assert_eq!(document["toolHooks"]["perToolRateLimit"], false, "nobody has set a limit");
        let model = document["multiAgent"]["executionModel"].as_object().unwrap();
        let mut members: Vec<_> = model.keys().map(String::as_str).collect();
        members.sort_unstable();
        let claimed = [
            "confidenceEscalationFloor",
            "confidenceEscalationInterruptKind",
            "crossChildMemoryConcurrency",
            "crossHostCausation",
            "replayDeterminism",
            "statefulResume",
            "supported",
            "version",
        ];
        assert_eq!(members, claimed);
        assert_eq!(model["version"], 5);
        let members = |family: &str| document[family].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(!members("memory").iter().any(|name| name == "compaction" || name == "writable"));
        assert!(!members("workspace").iter().any(|name| name == "maxVersions"), "no version is dropped by count");
    }

    #[test]
    fn memory_and_workspace_are_advertised_with_the_bounds_in_force() {
        let mut host = Options::default();
        host.limits.max_memory_entry_bytes = 10;
        host.limits.max_workspace_file_bytes = 20;
        host.limits.max_workspace_files = 30;
        let document: Value = capabilities(&ServerOptions::default(), &host).into();
        assert_eq!(document["memory"]["maxEntrySizeBytes"], 10);
        assert_eq!(document["workspace"]["maxFileBytes"], 20);
        assert_eq!(document["workspace"]["maxFiles"], 30);
    }

    #[test]
    fn the_loop_is_advertised_as_it_is_configured() {
        let mut host = Options { public_url: Some("https://baton.test/".to_owned()), ..Options::default() };
        host.limits.max_fan_out = 7;
        host.limits.max_loop_iterations = 12;
        host.escalation.floor = 0.8;
        for interrupt in
            [EscalationInterrupt::Approval, EscalationInterrupt::Clarification, EscalationInterrupt::Vendor]
        {
            host.escalation.interrupt = interrupt;
            let document: Value = capabilities(&ServerOptions::default(), &host).into();
            let model = &document["multiAgent"]["executionModel"];
            assert_eq!(model["confidenceEscalationFloor"], 0.8);
            assert_eq!(model["confidenceEscalationInterruptKind"], interrupt.as_str());
            assert_eq!(document["dispatch"]["maxFanOut"], 7);
            assert_eq!(document["limits"]["maxLoopIterations"], 12);
            // The mapping document is pointed at where somebody could meet the vendor's name.
            let url = "https://baton.test/v1/host/baton/vendor-extensions";
            let expected = if interrupt == EscalationInterrupt::Vendor { json!(url) } else { Value::Null };
            assert_eq!(document["baton"]["vendorExtensionsUrl"], expected);
        }
    }
}
