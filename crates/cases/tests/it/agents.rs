//! Agents in cases: scripts, recordings, cost.

use std::collections::BTreeMap;

use crate::support::{fails, passes, project};
use baton_cases::Project;
use baton_model::{AgentCard, MemoryShape, ModelClass};
use baton_runtime::AgentRegistry;

fn clerk() -> Project {
    let card = AgentCard {
        agent_id: "private.me.helpers.clerk".to_owned(),
        persona: "Clerk".to_owned(),
        label: "clerk".to_owned(),
        description: None,
        pack_name: "private.me.helpers".to_owned(),
        pack_version: "1.0.0".to_owned(),
        model_class: ModelClass::General,
        system_prompt: "You look things up.".to_owned(),
        tools: vec!["mcp:shop.lookup".to_owned()],
        memory: MemoryShape::default(),
        threshold: None,
        task_schema: None,
        return_schema: None,
        prompt_overrides: BTreeMap::new(),
        prompt_library: None,
    };
    let mut project = project([]);
    project.options.agent_registry = AgentRegistry::default().with(None, card);
    project
}

const CASE: &str = r"
agent: private.me.helpers.clerk
inputs: { task: How much is tea? }
prices: { scripted/test: { input: 1, output: 10 } }
tools:
  mcp:shop.lookup: { tier: read, returns: { price: 3 } }
cases:
  - name: it looks it up
    model:
      - when: { call: 1 }
        reply: { tools: [{ name: 'mcp:shop.lookup', arguments: { id: tea } }], usage: { inputTokens: 100, outputTokens: 10 } }
      - when: { tool: 'mcp:shop.lookup' }
        reply: { text: It is 3., usage: { inputTokens: 200, outputTokens: 20 } }
    expect:
      events:
        - type: agent.toolCalled
        - type: agent.toolReturned
        - type: run.completed
      tools: [{ tool: 'mcp:shop.lookup', arguments: { id: tea } }]
      usage: { inputTokens: 300, outputTokens: 30, costUsd: 0.0006, modelCalls: 2, toolCalls: 1 }
";

#[test]
fn a_script_and_stubs_stand_in_for_the_world() {
    passes(clerk(), CASE);
}

#[test]
fn what_a_script_lacks_or_has_too_much_fails_the_case() {
    let case = |model: &str| {
        format!("cases: [{{name: x, agent: private.me.helpers.clerk, inputs: {{task: tea}}, model: {model}}}]")
    };
    fails(clerk(), &case("[]"), &["call 1 of a model, by the node", "has no reply", "add to `model`"]);
    fails(
        clerk(),
        &case("[{text: done}, {when: {call: 7}, reply: {text: never}}]"),
        &["a reply was asked for 0 times, not 1"],
    );
    passes(clerk(), &case("[{text: done}, {when: {call: 7}, reply: {text: never}, times: any}]"));
    fails(
        clerk(),
        &case("[{tools: [{name: 'mcp:shop.lookup'}]}, {text: done}]"),
        &["`mcp:shop.lookup` was called with {}, and is not stubbed"],
    );
    fails(
        clerk(),
        &case("[{tools: [{name: 'mcp:other.thing'}]}, {text: done}]"),
        &["the model calls `mcp:other.thing`, which nothing here answers"],
    );
    fails(
        clerk(),
        "cases: [{name: x, agent: private.me.helpers.nobody}]",
        &["the run was not started", "there are the agents private.me.helpers.clerk"],
    );
}

#[test]
fn a_recording_answers_the_very_same_requests_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answers.jsonl");
    std::fs::write(&path, "").unwrap();
    let case = format!(
        "cases: [{{name: x, agent: private.me.helpers.clerk, inputs: {{task: tea}}, recording: '{}'}}]",
        path.display()
    );
    fails(clerk(), &case, &["the recording has no answer for this request", "record again"]);
    fails(clerk(), &case.replace("answers.jsonl", "none.jsonl"), &["cannot be opened", "recording = {"]);
}

#[test]
fn cost_without_a_price_says_what_to_add() {
    let case = "cases: [{name: x, agent: private.me.helpers.clerk, inputs: {task: tea}, model: [{text: done}], expect: {usage: {costUsd: {max: 1}}}}]";
    fails(clerk(), case, &["nothing has a price", "scripted/test"]);
}
