//! What live agents, their models, tools and prompts offer. The test that shows each claim is named beside it; those are
//! in `tests/it/http_agent_claims.rs`.

use baton_agent::prompts::{MAX_TEMPLATE_BYTES, PromptKind};
use baton_model::MODEL_CAPABILITIES;
use baton_runtime::Options;
use serde_json::{Map, Value, json};

use super::object::object;

/// About what a summary of a thought may have.
const SUMMARY_TOKENS: u32 = 512;
/// Calls of a model for one answer.
const MAX_ATTEMPTS: u32 = 3;
/// How much more room an answer gets that was cut off.
const MORE_ROOM: u32 = 2;

/// What `agents` says beyond the supervisor loop.
pub(super) fn runtime(host: &Options) -> Map<String, Value> {
    if host.agent_registry.is_empty() {
        return object(json!({"supported": false}));
    }
    object(json!({
        "supported": true,
        // `a_manifest_agent_is_listed_and_dispatched`, `tasks_are_held_against_their_schema`, `each_tenant_has_its_own`
        "manifestRuntime": {"supported": true, "handoffValidation": true, "installScope": "tenant"},
        // `the_bracket_holds_everything`, `an_answer_of_another_shape_fails`, `a_doubtful_answer_waits_for_a_human`,
        // `three_doors_one_log`
        "liveRuntime": {
            "supported": true,
            "structuredOutput": true,
            "confidenceEscalation": true,
            "sources": ["workflow-node", "run-api", "chat-mention"],
        },
        // `thoughts_are_as_long_as_the_run_wants`, `thoughts_are_told_while_they_are_thought`
        "reasoning": {"verbosity": "summary", "tokenLimit": SUMMARY_TOKENS, "streaming": true},
    }))
}

pub(super) fn families(host: &Options) -> Map<String, Value> {
    let kinds: Vec<&str> = PromptKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let mut families = object(json!({
        // `prompts_are_listed_read_and_rendered`, `the_way_to_a_prompt_is_on_the_log`
        "prompts": {
            "supported": true,
            "agentBindings": true,
            "endpointsSupported": true,
            "mutableLibrary": false,
            "packsSupported": true,
            "templateKinds": kinds,
            // Not `secret`: no prompt of a run has one.
            "variableSources": ["input", "variable", "context"],
            "maxTemplateBytes": MAX_TEMPLATE_BYTES,
            // `the_way_to_a_prompt_is_on_the_log`, `prompts_can_be_shown_whole`
            "observability": if host.show_prompts { "full" } else { "hashed" },
        },
        // `tools_are_listed_for_whoever_may_use_them`
        "toolCatalog": {"supported": true, "sources": ["host-extension", "mcp"], "sessionLifecycle": false},
        // `a_call_leaves_a_pair_without_its_arguments`, `a_tool_is_only_for_who_holds_its_scopes`,
        // `a_bucket_that_is_empty_stops_a_call`
        "toolHooks": {
            "supported": true,
            "prePostEvents": true,
            "perToolAuthorization": true,
            "perToolRateLimit": host.tool_limits.is_some(),
        },
    }));
    if host.runner_channel {
        // `tests/it/http_runners.rs`
        families.insert("selfHostedRunner".to_owned(), json!({"supported": true, "dispatchKinds": ["tool"]}));
    }
    let mut providers = host.models.vendors();
    if host.test_hooks.is_some() {
        providers.insert("mock");
    }
    if !providers.is_empty() {
        let mut usage = json!({"supported": true, "costEstimates": !host.prices.is_empty()});
        if !host.prices.is_empty() {
            usage["currency"] = "USD".into();
        }
        families.extend(object(json!({
            // `a_provider_that_is_not_here_is_refused`
            "aiProviders": {"supported": providers},
            // `a_model_that_cannot_do_it_is_not_asked`
            "modelCapabilities": {
                "supported": true,
                "advertised": advertised(host),
                "substitutionSupported": true,
            },
            // `every_call_is_counted_once`, `what_a_call_costs_is_said_where_it_is_known`
            "providerUsage": usage,
            // `an_answer_is_asked_for_again_as_often_as_advertised`
            "envelopes": {"reliability": {
                "supported": true,
                "events": [
                    "envelope.retry.attempted",
                    "envelope.retry.exhausted",
                    "envelope.refusal",
                    "envelope.truncated",
                    "envelope.nlToFormat.engaged",
                    "envelope.recovery.applied",
                ],
                "maxRetryAttempts": MAX_ATTEMPTS,
                "completion": {"distinguishesTruncation": true, "truncationBudgetMultiplier": MORE_ROOM},
            }},
        })));
    }
    families
}

/// What nodes may need of any model here. Suites in use know the first five words and those of hosts; what models see and
/// hear is judged like the rest, and not listed.
fn advertised(host: &Options) -> Vec<String> {
    let listed = |name: &String| MODEL_CAPABILITIES[..5].contains(&name.as_str()) || name.starts_with("x-host-");
    host.offered_by_all().into_iter().filter(listed).collect()
}
