//! Every rule of manifests and packs, broken once.

use crate::support;

use baton_agent::{AgentManifest, PackManifest, PromptSource, Role};
use baton_model::{ModelClass, code};
use serde_json::{Value, json};
use support::{PACK, agent, assert_problem, load_from, pack, tenant, with, write_pack};

fn read(value: &Value) -> Result<AgentManifest, Vec<baton_agent::Problem>> {
    AgentManifest::read(value, "pack.json#/agents/0", PACK)
}

#[test]
fn a_full_manifest_is_read() {
    let manifest = read(&with(
        agent("editor"),
        json!({
            "systemPrompt": null, "systemPromptRef": "prompts/editor.md",
            "toolAllowlist": ["openwop:http.fetch", "mcp:search", "openwop:http.fetch"],
            "requiresCapabilities": ["host.workspace"],
            "memoryShape": {"scratchpad": true},
            "confidence": {"defaultThreshold": 0.25},
            "handoff": {"taskSchemaRef": "a.json", "returnSchemaRef": "b.json"},
            "label": "Ed", "description": "Edits.", "promptLibraryRef": "vendor.acme.prompts",
            "promptOverrides": {"user": "prompt:ask@1.0.0", "few-shot": {"templateId": "x"}},
            "evalSuiteRef": "evals/editor.json", "role": "skill",
        }),
    ))
    .unwrap();
    assert_eq!(manifest.prompt, PromptSource::File("prompts/editor.md".to_owned()));
    assert_eq!(manifest.tools, ["openwop:http.fetch", "mcp:search"], "once each");
    assert_eq!(manifest.threshold, Some(0.25));
    assert_eq!(manifest.role, Some(Role::Skill));
    assert_eq!(manifest.model_class, ModelClass::Writing);
    assert_eq!(manifest.prompt_overrides.len(), 2);
    let bare = read(&agent("editor")).unwrap();
    assert!(bare.tools.is_empty() && bare.memory.is_none() && bare.role.is_none());
}

#[test]
fn each_rule_of_a_manifest_is_kept() {
    let long = |n: usize| "x".repeat(n);
    for (changes, place, words) in [
        (json!({"agentId": null}), "/agents/0", "`agentId` is missing"),
        (json!({"agentId": "host:editor"}), "/agentId", "`host:` ids are not for packs"),
        (json!({"agentId": "vendor.acme.other.editor"}), "/agentId", "name space of its pack"),
        (json!({"agentId": format!("{PACK}.a.b")}), "/agentId", "name space of its pack"),
        (json!({"agentId": format!("{PACK}.{}", long(256))}), "/agentId", "3 to 256 characters"),
        (json!({"agentId": 5}), "/agentId", "is a text"),
        (json!({"persona": null}), "/agents/0", "`persona` is missing"),
        (json!({"persona": ""}), "/persona", "is not empty"),
        (json!({"persona": long(201)}), "/persona", "1 to 200 characters"),
        (json!({"modelClass": null}), "/agents/0", "`modelClass` is missing"),
        (json!({"modelClass": "tool-using"}), "/modelClass", "one of `reasoning`, `writing`, `coding`, `research`"),
        (json!({"modelClass": "Writing"}), "/modelClass", "one of"),
        (json!({"systemPrompt": null}), "/agents/0", "neither is there; add one"),
        (json!({"systemPromptRef": "a.md"}), "/agents/0", "both are there; keep one"),
        (json!({"systemPrompt": ""}), "/systemPrompt", "is not empty"),
        (json!({"systemPrompt": null, "systemPromptRef": ""}), "/systemPromptRef", "is not empty"),
        (json!({"toolAllowlist": "openwop:x"}), "/toolAllowlist", "is a list"),
        (json!({"toolAllowlist": ["openwop:x", ""]}), "/toolAllowlist/1", "is not empty"),
        (json!({"toolAllowlist": ["fetch"]}), "/toolAllowlist/0", "`scope:tool`"),
        (json!({"toolAllowlist": [5]}), "/toolAllowlist/0", "is a text"),
        (json!({"requiresCapabilities": ["a", "a"]}), "/requiresCapabilities", "listed twice"),
        (json!({"requiresCapabilities": [""]}), "/requiresCapabilities/0", "is not empty"),
        (json!({"memoryShape": []}), "/memoryShape", "is an object"),
        (json!({"memoryShape": {"longTerm": "yes"}}), "/memoryShape/longTerm", "`true` or `false`"),
        (json!({"memoryShape": {"long": true}}), "/memoryShape/long", "not known here"),
        (json!({"confidence": {"defaultThreshold": 1.5}}), "/confidence/defaultThreshold", "from 0 to 1"),
        (json!({"confidence": {"threshold": 1}}), "/confidence/threshold", "not known here"),
        (json!({"handoff": {"taskSchemaRef": ""}}), "/handoff/taskSchemaRef", "is not empty"),
        (json!({"handoff": {"schema": "x"}}), "/handoff/schema", "not known here"),
        (json!({"label": ""}), "/label", "is not empty"),
        (json!({"label": long(101)}), "/label", "1 to 100 characters"),
        (json!({"description": long(501)}), "/description", "at most 500"),
        (json!({"promptLibraryRef": "Acme"}), "/promptLibraryRef", "1 to 128"),
        (json!({"promptOverrides": {"system": "writer"}}), "/promptOverrides/system", "no reference to a prompt"),
        (json!({"promptOverrides": {"assistant": "prompt:a"}}), "/promptOverrides/assistant", "not known here"),
        (json!({"evalSuiteRef": ""}), "/evalSuiteRef", "is not empty"),
        (json!({"role": "helper"}), "/role", "one of `skill`, `assistant`"),
        (json!({"role": "skill"}), "/role", "add `handoff`"),
        (
            json!({"role": "skill", "handoff": {}, "memoryShape": {"longTerm": true}}),
            "/memoryShape",
            "has no `longTerm` memory",
        ),
        (
            json!({"role": "skill", "handoff": {}, "memoryShape": {"conversation": true}}),
            "/memoryShape",
            "has no `conversation` memory",
        ),
        (json!({"tools": []}), "/tools", "not known here"),
    ] {
        let problems = read(&with(agent("editor"), changes.clone())).expect_err(&changes.to_string());
        assert_problem(&problems, code::INVALID_MANIFEST, place, words);
    }
    assert_problem(&read(&json!([])).unwrap_err(), code::INVALID_MANIFEST, "/agents/0", "is an object");
    for good in [
        json!({"role": "assistant", "memoryShape": {"longTerm": true, "conversation": true}}),
        json!({"role": "skill", "handoff": {}, "memoryShape": {"scratchpad": true}}),
        json!({"confidence": {}}),
    ] {
        read(&with(agent("editor"), good.clone())).unwrap_or_else(|problems| panic!("{good}: {problems:?}"));
    }
}

#[test]
fn all_problems_are_found_at_once() {
    let problems = read(&json!({"persona": "", "label": "", "extra": 1})).unwrap_err();
    assert!(problems.len() >= 5, "{problems:#?}");
}

#[test]
fn each_rule_of_a_pack_is_kept() {
    let read = |value: &Value| PackManifest::read(&value.to_string());
    let good = pack(vec![agent("editor")]);
    assert_eq!(read(&good).unwrap().name, PACK);
    let many = vec![agent("editor"); 257];
    for (changes, code, place, words) in [
        (json!({"name": null}), code::INVALID_MANIFEST, "pack.json#", "`name` is missing"),
        (json!({"name": "acme"}), code::INVALID_MANIFEST, "#/name", "an owner and a name"),
        (json!({"name": "local.acme.x"}), code::INVALID_MANIFEST, "#/name", "an owner and a name"),
        (json!({"version": "1.0"}), code::INVALID_MANIFEST, "#/version", "semantic version"),
        (json!({"version": null}), code::INVALID_MANIFEST, "pack.json#", "`version` is missing"),
        (json!({"description": "x".repeat(1025)}), code::INVALID_MANIFEST, "#/description", "at most 1024"),
        (json!({"author": {}}), code::INVALID_MANIFEST, "#/author", "is a text"),
        (json!({"homepage": "example.com"}), code::INVALID_MANIFEST, "#/homepage", "absolute address"),
        (json!({"keywords": ["x".repeat(65)]}), code::INVALID_MANIFEST, "#/keywords/0", "at most 64"),
        (json!({"keywords": vec!["x"; 51]}), code::INVALID_MANIFEST, "#/keywords", "at most 50"),
        (json!({"engines": null}), code::INVALID_MANIFEST, "pack.json#", "`engines` is missing"),
        (json!({"engines": {}}), code::INVALID_MANIFEST, "#/engines", "range of versions"),
        (json!({"engines": {"openwop": "soon"}}), code::INVALID_MANIFEST, "#/engines", "range of versions"),
        (json!({"engines": {"openwop": ">=2"}}), code::PACK_RUNTIME_REQUIREMENT_UNMET, "/openwop", "version 1"),
        (json!({"runtime": null}), code::INVALID_MANIFEST, "pack.json#", "`runtime` is missing"),
        (json!({"runtime": {"language": "remote"}}), code::INVALID_MANIFEST, "#/runtime", "`entry` is missing"),
        (json!({"runtime": {"language": "perl", "entry": "x"}}), code::INVALID_MANIFEST, "/language", "one of"),
        (
            json!({"runtime": {"language": "go", "entry": "x"}}),
            code::INVALID_MANIFEST,
            "#/runtime",
            "`\"language\": \"remote\"`",
        ),
        (
            json!({"runtime": {"language": "remote", "entry": "x", "requires": ["subprocess"]}}),
            code::PACK_RUNTIME_REQUIREMENT_UNMET,
            "#/runtime",
            "`subprocess`",
        ),
        (
            json!({"runtime": {"language": "remote", "entry": "x", "image": 1}}),
            code::INVALID_MANIFEST,
            "/image",
            "not known",
        ),
        (json!({"agents": []}), code::INVALID_MANIFEST, "pack.json#", "at least one agent"),
        (json!({"agents": null}), code::INVALID_MANIFEST, "pack.json#", "at least one agent"),
        (json!({"agents": {}}), code::INVALID_MANIFEST, "#/agents", "is a list"),
        (json!({"agents": many}), code::INVALID_MANIFEST, "#/agents", "at most 256"),
        (json!({"nodes": [{"typeId": "x"}]}), code::UNSUPPORTED_RUNTIME, "#/runtime", "runs no code of packs"),
        (json!({"nodes": "x"}), code::INVALID_MANIFEST, "#/nodes", "is a list"),
        (json!({"connector": {"id": "x"}}), code::INVALID_MANIFEST, "#/connector", "made of nodes"),
        (json!({"dependencies": {"acme": "*"}}), code::INVALID_MANIFEST, "#/dependencies", "is no pack"),
        (json!({"dependencies": {"vendor.a.b": "new"}}), code::INVALID_MANIFEST, "#/dependencies", "no range"),
        (json!({"dependencies": []}), code::INVALID_MANIFEST, "#/dependencies", "object of texts"),
        (json!({"peerDependencies": {"a": 1}}), code::INVALID_MANIFEST, "#/peerDependencies", "is a text"),
        (json!({"peerDependenciesMeta": {"a": true}}), code::INVALID_MANIFEST, "Meta/a", "is an object"),
        (json!({"peerDependenciesMeta": {"a": {"opt": true}}}), code::INVALID_MANIFEST, "Meta/a/opt", "not known"),
        (json!({"signing": {"method": "trust me"}}), code::INVALID_MANIFEST, "/method", "one of"),
        (json!({"signing": {"key": "x"}}), code::INVALID_MANIFEST, "#/signing/key", "not known"),
        (json!({"kind": "workflow-chain"}), code::PACK_KIND_INVALID, "#/kind", "packs of agents"),
        (json!({"kind": 5}), code::PACK_KIND_INVALID, "#/kind", "packs of agents"),
        (json!({"prompts": []}), code::INVALID_MANIFEST, "#/prompts", "not known here"),
    ] {
        let problems = read(&with(good.clone(), changes.clone())).map(drop).expect_err(&changes.to_string());
        assert_problem(&problems, code, place, words);
    }
    assert_problem(&PackManifest::read("{").unwrap_err(), code::INVALID_MANIFEST, "pack.json", "not JSON");
    for fine in [json!({"kind": "node"}), json!({"nodes": []}), json!({"engines": {"openwop": "*", "node": ">=20"}})] {
        read(&with(good.clone(), fine.clone())).map(drop).unwrap_or_else(|problems| panic!("{fine}: {problems:?}"));
    }
}

#[test]
fn each_rule_of_a_prompt_pack_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let template = json!({"templateId": "t", "version": "1.0.0", "kind": "user", "text": "Hello {{name}} at {{now}}",
        "variables": [{"name": "name", "type": "string", "required": true}]});
    let good = json!({"name": "vendor.acme.prompts", "version": "1.0.0", "kind": "prompt",
        "engines": {"openwop": "*"}, "prompts": [template]});
    write_pack(&folder.path().join("good"), &good, &[]);
    let registry = load_from(folder.path());
    assert_eq!(registry.problems(), []);
    let library = registry.library(&tenant("t"));
    let (id, found) = library.iter().next().unwrap();
    assert_eq!((id, found.reference().as_str()), ("vendor.acme.prompts", "prompt:t@1.0.0"));
    let meta = serde_json::to_value(&found.meta).unwrap();
    assert_eq!(meta, json!({"source": "pack", "packName": "vendor.acme.prompts", "packVersion": "1.0.0"}));

    for (changes, code, place, words) in [
        (json!({"prompts": []}), code::INVALID_MANIFEST, "#/prompts", "at least one template"),
        (json!({"nodes": []}), code::INVALID_MANIFEST, "#/nodes", "not known here"),
        (json!({"runtime": {}}), code::INVALID_MANIFEST, "#/runtime", "not known here"),
        (json!({"prompts": [template, template]}), code::PROMPT_TEMPLATE_INVALID, "#/prompts/1", "twice"),
        (
            json!({"prompts": [with(template.clone(), json!({"variables": null}))]}),
            code::PROMPT_TEMPLATE_INVALID,
            "#/prompts/0",
            "`{{name}}` is not declared",
        ),
        (
            json!({"prompts": [{"templateId": "t"}]}),
            code::PROMPT_TEMPLATE_INVALID,
            "#/prompts/0",
            "`version` is missing",
        ),
        (
            json!({"dependencies": {"vendor.acme.base": "^1.0.0"}}),
            code::PROMPT_PACK_DEPENDENCY_UNRESOLVABLE,
            "/dependencies",
            "`vendor.acme.base`",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write_pack(&folder.path().join("p"), &with(good.clone(), changes), &[]);
        assert_problem(load_from(folder.path()).problems(), code, place, words);
    }
}

#[test]
fn files_a_manifest_names_have_to_be_good() {
    const SCHEMA: &str = r#"{"type": "object"}"#;
    let handoff = |path: &str| json!({"handoff": {"taskSchemaRef": path}});
    let prompt = |path: &str| json!({"systemPrompt": null, "systemPromptRef": path});
    for (changes, place, words) in [
        (prompt("prompts/none.md"), "/systemPromptRef", "is not in the pack"),
        (prompt("../secret.md"), "/systemPromptRef", "leads out of the pack"),
        (prompt("/etc/passwd"), "/systemPromptRef", "is absolute"),
        (prompt("https://example.com/p.md"), "/systemPromptRef", "a colon"),
        (prompt("prompts/binary.md"), "/systemPromptRef", "is not UTF-8"),
        (prompt("prompts/blank.md"), "/systemPromptRef", "is empty"),
        (prompt("prompts"), "/systemPromptRef", "is not a file"),
        (prompt("prompts/large.md"), "/systemPromptRef", "more than 1048576 bytes"),
        (handoff("schemas/none.json"), "/taskSchemaRef", "is not in the pack"),
        (handoff("prompts/blank.md"), "/taskSchemaRef", "is not JSON"),
        (handoff("schemas/wrong.json"), "/taskSchemaRef", "no JSON Schema 2020-12"),
        (handoff("schemas/remote.json"), "/taskSchemaRef", "no JSON Schema 2020-12"),
        (handoff("schemas/sibling.json"), "/taskSchemaRef", "Keep it in one file"),
        (handoff("schemas/old.json"), "/taskSchemaRef", "`$schema`"),
        (json!({"handoff": {"returnSchemaRef": "schemas/wrong.json"}}), "/returnSchemaRef", "no JSON Schema"),
        (json!({"evalSuiteRef": "evals/none.json"}), "/evalSuiteRef", "is not in the pack"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("p");
        let bad = with(agent("bad"), changes.clone());
        write_pack(
            &root,
            &pack(vec![bad, with(agent("good"), handoff("schemas/good.json"))]),
            &[
                ("prompts/blank.md", " \n"),
                ("prompts/large.md", &"x".repeat(1024 * 1024 + 1)),
                ("schemas/good.json", SCHEMA),
                ("schemas/wrong.json", r#"{"type": 5}"#),
                ("schemas/remote.json", r#"{"$ref": "https://example.com/x.json"}"#),
                ("schemas/sibling.json", r#"{"$ref": "good.json"}"#),
                ("schemas/old.json", r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#),
            ],
        );
        std::fs::write(root.join("prompts/binary.md"), [0xff, 0xfe, 0x00]).unwrap();
        std::fs::write(folder.path().join("secret.md"), "a secret").unwrap();
        let registry = load_from(folder.path());
        assert_problem(registry.problems(), code::INVALID_MANIFEST, place, words);
        assert_eq!(support::ids(&registry, "t"), [format!("{PACK}.good")], "the other agent is fine: {changes}");
    }
}
