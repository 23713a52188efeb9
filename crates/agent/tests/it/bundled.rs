//! The team that comes with the binary.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use baton_agent::{Capabilities, Sources, bundled, load};
use baton_model::Decision;
use serde_json::{Value, json};
use support::{ids, load_from, tenant};

const NAME: &str = "vendor.baton.team";

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs")
}

const TOOLS: &[&str] = &[
    "openwop:memory.list",
    "openwop:memory.get",
    "openwop:memory.put",
    "openwop:workspace.list",
    "openwop:workspace.get",
    "openwop:workspace.put",
    "openwop:http.fetch",
    "openwop:http.request",
];

#[test]
fn the_binary_has_the_pack_that_is_in_the_repository() {
    let (inside, outside) = (bundled().unwrap(), load_from(&sources()));
    assert_eq!(inside.problems, []);
    assert_eq!(outside.problems(), []);
    assert_eq!(inside.agents.len(), 3);
    for agent in &inside.agents {
        let same = outside.agent(&tenant("t"), &agent.card.agent_id).unwrap();
        assert_eq!(same.digest, agent.card.digest(), "{}", agent.card.agent_id);
        assert!(agent.card.tools.iter().all(|tool| TOOLS.contains(&tool.as_str())), "{:?}", agent.card.tools);
        assert!(agent.card.system_prompt.contains("<UNTRUSTED>"), "each prompt says what the fence means");
    }
}

#[test]
fn a_copy_in_a_folder_goes_before_the_bundled_one() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("mine");
    for part in ["prompts", "schemas"] {
        fs::create_dir_all(copy.join(part)).unwrap();
        for entry in fs::read_dir(sources().join(NAME).join(part)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.join(part).join(entry.file_name())).unwrap();
        }
    }
    fs::copy(sources().join(NAME).join("pack.json"), copy.join("pack.json")).unwrap();
    fs::write(copy.join("prompts/reviewer.md"), "Mine.").unwrap();
    let registry = load(&Sources { packs: Some(folder.path().to_owned()), bundled: true, ..Sources::default() });
    assert_eq!(registry.problems(), []);
    assert_eq!(registry.agent(&tenant("t"), "vendor.baton.team.reviewer").unwrap().card.system_prompt, "Mine.");
    assert_eq!(registry.packs(&tenant("t"))[0].origin, "mine");
}

#[test]
fn nothing_is_missing_where_the_host_has_it_all_and_all_are_there_where_it_has_not() {
    let whole =
        Capabilities::new().with("aiProviders").with("memory").with_values("agents.memoryBackends", ["long-term"]);
    let registry = load(&Sources { bundled: true, capabilities: whole, ..Sources::default() });
    assert_eq!(ids(&registry, "t").len(), 3);
    for entry in registry.inventory(&tenant("t")).agents {
        assert!(entry.degraded.is_empty() && !entry.memory_degraded, "{entry:?}");
    }
    let bare = load(&Sources { bundled: true, ..Sources::default() });
    assert_eq!(ids(&bare, "t").len(), 3);
    assert_eq!(bare.inventory(&tenant("t")).agents[0].degraded, ["aiProviders"]);
}

fn schema(agent: &str, of: impl Fn(&baton_model::AgentCard) -> Option<Value>) -> jsonschema::Validator {
    let pack = bundled().unwrap();
    let id = format!("{NAME}.{agent}");
    let card = pack.agents.iter().map(|agent| &agent.card).find(|card| card.agent_id == id).unwrap();
    jsonschema::draft202012::new(&of(card).unwrap()).unwrap()
}

#[test]
fn a_supervisor_answers_with_a_decision_and_nothing_else() {
    let schema = schema("supervisor", |card| card.return_schema.clone());
    for (answer, good) in [
        (json!({"kind": "next-worker", "nextWorkerIds": ["w"], "confidence": 0.4}), true),
        (json!({"kind": "next-worker", "nextWorkerIds": ["w", "v"], "nextWorkerInputs": [{"a": 1}, {}]}), true),
        (json!({"kind": "ask-user", "prompt": "Which one?"}), true),
        (json!({"kind": "terminate"}), true),
        (json!({"kind": "terminate", "reason": "goal-reached", "confidence": 1}), true),
        (json!({"kind": "next-worker", "nextWorkerIds": []}), false),
        (json!({"kind": "next-worker"}), false),
        (json!({"kind": "next-worker", "nextWorkerIds": ["w"], "prompt": "?"}), false),
        (json!({"kind": "next-worker", "nextWorkerIds": ["w"], "confidence": 1.5}), false),
        (json!({"kind": "ask-user"}), false),
        (json!({"kind": "ask-user", "prompt": "?", "confidence": 0.5}), false),
        (json!({"kind": "terminate", "nextWorkerIds": ["w"]}), false),
        (json!({"kind": "terminate", "reason": ""}), false),
        (json!({"kind": "escalate"}), false),
        (json!({"kind": "terminate", "note": 1}), false),
        (json!("terminate"), false),
    ] {
        assert_eq!(schema.is_valid(&answer), good, "{answer}");
        assert_eq!(Decision::read(&answer).is_ok(), good, "the engine agrees: {answer}");
        // What the engine asks for besides the decision is allowed with each of them.
        if let Value::Object(mut whole) = answer {
            whole.extend([("agentConfidence".to_owned(), json!(0.9)), ("reasoning".to_owned(), json!("So."))]);
            assert_eq!(schema.is_valid(&Value::Object(whole.clone())), good, "{whole:?}");
        }
    }
}

#[test]
fn the_others_answer_in_their_shapes() {
    let review = schema("reviewer", |card| card.return_schema.clone());
    assert!(
        review.is_valid(&json!({"verdict": "revise", "reasons": ["Line 3 contradicts line 1."], "confidence": 0.8}))
    );
    for bad in [
        json!({"verdict": "maybe", "reasons": ["x"], "confidence": 1}),
        json!({"verdict": "accept", "reasons": [], "confidence": 1}),
        json!({"verdict": "accept", "reasons": ["x"]}),
        json!({"verdict": "accept", "reasons": ["x"], "confidence": 1, "extra": 1}),
    ] {
        assert!(!review.is_valid(&bad), "{bad}");
    }
    let found = schema("researcher", |card| card.return_schema.clone());
    let finding = json!({"claim": "c", "source": "https://example.com", "confidence": 0.9});
    assert!(found.is_valid(&json!({"answer": "a", "findings": [finding], "openQuestions": [], "confidence": 0.9})));
    assert!(
        !found.is_valid(&json!({"answer": "a", "findings": [{"claim": "c"}], "openQuestions": [], "confidence": 0.9}))
    );
    for agent in ["researcher", "reviewer"] {
        let task = schema(agent, |card| card.task_schema.clone());
        assert!(task.is_valid(&json!({"text": "@anyone, look at this"})) && !task.is_valid(&json!({})), "{agent}");
    }
}
