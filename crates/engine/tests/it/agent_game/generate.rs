//! Workflows of agents, and what may happen to them.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::support::minds::{Given, Said, given, said};
use crate::support::{agents, beside, models};

#[derive(Clone, Debug)]
pub enum Act {
    Think(Index, Said),
    /// The model that was asked last says the same until nobody asks it any more.
    Insist(Said),
    Return(Index, Given),
    /// The model that was asked last thinks aloud, from this piece on: mostly the next one.
    Mutter(u32, bool),
    /// Somebody answers an open question, mostly with something that fits.
    Answer(Index, Index),
    Wait(u64),
    NextTimer,
    Pause(bool),
    Resume,
    Cancel,
    /// From now on questions about memory, workspace and agents are answered at once, or only when it is their turn.
    Prompt(bool),
    NodeRequest,
    Unreadable,
    Child,
    Crash,
}

/// What somebody may say to a question of this kind.
pub fn answers(kind: &str) -> Vec<Value> {
    let edit = |data: Value| json!({"action": "edit-accept", "editedArtifactData": data});
    let mut all = match kind {
        agents::UNKNOWN_EFFECT => {
            vec![json!({"action": "done", "result": {"n": 1}}), json!({"action": "retry"}), json!("fail")]
        }
        "low-confidence" => vec![
            json!("accept"),
            edit(json!({"verdict": "edited"})),
            edit(json!({"kind": "terminate"})),
            json!({"verdict": "given"}),
            json!({"kind": "terminate"}),
        ],
        "clarification" => vec![json!({"answers": {"answer": "red"}})],
        _ => vec![json!({"action": "accept"}), json!({"action": "refine", "refineFeedback": {"scope": "whole"}})],
    };
    all.extend([json!({"action": "reject"}), json!(5)]);
    all
}

pub fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        15 => (any::<Index>(), said()).prop_map(|(which, said)| Act::Think(which, said)),
        1 => said().prop_map(Act::Insist),
        6 => (0_u32..4, proptest::bool::weighted(0.8)).prop_map(|(piece, next)| Act::Mutter(piece, next)),
        12 => (any::<Index>(), given()).prop_map(|(which, given)| Act::Return(which, given)),
        5 => (any::<Index>(), any::<Index>()).prop_map(|(which, answer)| Act::Answer(which, answer)),
        2 => (0_u64..80).prop_map(Act::Wait),
        1 => Just(Act::NextTimer),
        1 => any::<bool>().prop_map(Act::Pause),
        2 => Just(Act::Resume),
        1 => proptest::bool::weighted(0.2).prop_map(|now| if now { Act::Cancel } else { Act::Resume }),
        1 => any::<bool>().prop_map(Act::Prompt),
        3 => Just(Act::NodeRequest),
        1 => Just(Act::Unreadable),
        2 => Just(Act::Child),
        2 => Just(Act::Crash),
    ]
}

/// Agents and calls side by side and one after the other, perhaps with more attempts, a time limit and somebody who
/// takes over; perhaps a supervisor that is an agent.
pub fn definition() -> impl Strategy<Value = Value> {
    let node = || {
        let shape = prop_oneof![
            4 => Just((agents::AGENT, json!({"agentId": agents::FREE}))),
            4 => Just((agents::AGENT, json!({"agentId": agents::STRICT, "maxToolRounds": 2, "maxTokens": 40_000}))),
            1 => Just((agents::AGENT, json!({"agentId": agents::STRICT, "escalationTimeoutMs": 50, "tools": ["mcp:mail"]}))),
            1 => Just((agents::AGENT, json!({"agentId": agents::PICKY}))),
            1 => select(vec!["retry", "verify", "ask", "fail"]).prop_map(|policy| ("vendor.baton.http", json!({
                "method": "POST", "url": "https://example.com", "bodyExpression": "variables.secret", "into": "late",
                "outcomePolicy": policy, "verifyUrl": "https://example.com/look",
            }))),
            1 => select(vec!["GET", "PUT"]).prop_map(|method| ("vendor.baton.http", json!({"method": method, "url": "https://example.com"}))),
            1 => Just((models::CALL, models::config())),
        ];
        let told = select(vec![None, Some("n"), Some("secret")]);
        (shape, told, 0_u32..3, proptest::option::weighted(0.4, 20_u64..100))
    };
    let wired = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let live = proptest::option::weighted(0.4, Just(json!({"agentId": agents::PLANNER, "maxToolRounds": 3})));
    (proptest::collection::vec(node(), 1..4), wired, live).prop_map(|(seeds, (chain, handled, routed, slow), live)| {
        let mut nodes = Vec::new();
        let mut edges = Vec::new();
        for (i, ((type_id, config), told, retries, timeout)) in seeds.iter().enumerate() {
            let mut settings = json!({"maxRetries": retries, "retryDelayMs": 10});
            if let Some(timeout) = timeout {
                settings["timeout"] = json!(timeout);
            }
            let mut inputs = json!({});
            if *type_id == models::CALL {
                inputs["prompt"] = json!({"type": "static", "value": "Is it?"});
            } else if let Some(name) = told {
                let port = if *name == "secret" { "token" } else { "diff" };
                inputs[port] = json!({"type": "variable", "variableName": name});
            }
            nodes.push(json!({
                "id": format!("n{i}"), "typeId": type_id, "name": "", "position": {"x": 0, "y": 0}, "config": config,
                "inputs": inputs, "settings": settings, "agent": {"agentId": config["agentId"], "name": "Pinned"}
            }));
            if config["agentId"].is_null() {
                nodes[i].as_object_mut().unwrap().remove("agent");
            }
            if chain && i > 0 {
                let condition = json!({"type": "expression", "expression": "size(string(variables.late)) > 0"});
                let mut edge = json!({"id": format!("e{i}"), "sourceNodeId": format!("n{}", i - 1), "targetNodeId": format!("n{i}")});
                if routed {
                    edge["condition"] = condition;
                }
                edges.push(edge);
            }
        }
        if handled {
            nodes.push(json!({"id": "rescue", "typeId": "core.noop", "name": "", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}));
            edges.push(json!({"id": "r", "sourceNodeId": "n0", "targetNodeId": "rescue", "triggerRule": "any_failed"}));
        }
        let mut definition = json!({
            "id": "conformance-agents", "name": "Agents", "version": "1", "nodes": nodes, "edges": edges,
            "triggers": [], "metadata": {}, "settings": {},
            "variables": [
                {"name": "n", "type": "object", "defaultValue": 0},
                {"name": "secret", "type": "object", "sensitive": true, "defaultValue": "first-secret"}
            ],
        });
        if let Some(live) = live {
            beside::add_orchestration(&mut definition, (live, json!({"fanOutPolicy": "sequential"})));
            if slow {
                let nodes = definition["nodes"].as_array_mut().unwrap();
                let supervisor = nodes.iter_mut().find(|node| node["id"] == "sup").unwrap();
                supervisor["settings"] = json!({"maxRetries": 1, "retryDelayMs": 5, "timeout": 60});
            }
        }
        definition
    })
}
