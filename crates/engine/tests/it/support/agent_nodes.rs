//! Random nodes that ask models and call tools.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::generate::set;
use super::{agents, models};

fn agent() -> impl Strategy<Value = (&'static str, Value)> {
    let who = prop_oneof![4 => Just(agents::FREE), 4 => Just(agents::STRICT), 1 => Just(agents::PICKY)];
    (who, 0_u64..4, proptest::option::weighted(0.3, 1_u64..60)).prop_map(|(who, rounds, patience)| {
        let config = json!({"agentId": who, "maxToolRounds": rounds});
        (agents::AGENT, set(config, "escalationTimeoutMs", patience))
    })
}

fn http() -> impl Strategy<Value = (&'static str, Value)> {
    let policy = select(vec!["retry", "verify", "ask", "fail"]);
    let body = select(vec!["1 + 1", "variables.n", "variables.secret", "inputs.value", "variables.missing"]);
    let into = proptest::option::of(select(vec!["late", "found", "secret"]));
    (policy, body, into, any::<bool>()).prop_map(|(policy, body, into, posts)| {
        let mut config =
            json!({"url": "https://example.com/x", "outcomePolicy": policy, "verifyUrl": "https://example.com/y"});
        if posts {
            config["method"] = "POST".into();
            config["bodyExpression"] = body.into();
        }
        ("vendor.baton.http", set(config, "into", into))
    })
}

fn mock_agent() -> impl Strategy<Value = (&'static str, Value)> {
    let confidence = proptest::option::of(select(vec![0.2, 0.7, 1.0]));
    (confidence, any::<bool>()).prop_map(|(confidence, streams)| {
        let mut config = json!({
            "mockReasoning": {"summary": "Hm.", "streamChunks": if streams { vec!["H", "m"] } else { vec![] }},
            "mockToolCalls": [
                {"toolId": "x:echo", "arguments": {"x": 1}, "result": null, "durationMs": 1},
                {"toolId": "x:echo", "error": {"error": "broken", "message": "No."}},
            ],
            "mockHandoff": {"toAgentId": "test.agents.other", "context": {"why": "because"}},
            "mockDecision": {"decision": {"next": "done"}},
        });
        if let Some(confidence) = confidence {
            config["mockConfidence"] = json!(confidence);
        }
        ("core.conformance.mock-agent", config)
    })
}

pub fn shape() -> impl Strategy<Value = (&'static str, Value)> {
    prop_oneof![
        4 => agent(),
        2 => http(),
        1 => Just((models::CALL, models::config())),
        1 => mock_agent(),
    ]
}
