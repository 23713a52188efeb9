//! Which agents a host has: versions, tenants, what packs want of it, and what clients see.

use crate::support;

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_agent::{Capabilities, Checks, Sources, TrustedKey, load};
use baton_model::code;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use support::{PACK, agent, assert_problem, ids, load_from, load_with, pack, tenant, with, write_pack};

fn editor() -> String {
    format!("{PACK}.editor")
}

#[test]
fn the_highest_version_is_used() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["1.9.0", "1.10.0", "1.10.0-rc.1", "1.2.0"] {
        let manifest = with(pack(vec![with(agent("editor"), json!({"label": version}))]), json!({"version": version}));
        write_pack(&folder.path().join(version), &manifest, &[]);
    }
    let broken = with(pack(vec![with(agent("editor"), json!({"modelClass": "magic"}))]), json!({"version": "2.0.0"}));
    write_pack(&folder.path().join("2.0.0"), &broken, &[]);
    write_pack(&folder.path().join("copy"), &with(pack(vec![agent("editor")]), json!({"version": "1.10.0"})), &[]);
    let registry = load_from(folder.path());
    let found = registry.agent(&tenant("t"), &editor()).unwrap();
    assert_eq!((found.card.pack_version.as_str(), found.card.label.as_str()), ("1.10.0", "1.10.0"));
    assert_eq!(registry.packs(&tenant("t")).len(), 1);
    // The others are there for whoever asks for them by their number.
    for version in ["1.9.0", "1.10.0", "1.10.0-rc.1", "1.2.0"] {
        let found = registry.agent_version(&tenant("t"), &editor(), version).unwrap();
        assert_eq!((found.card.pack_version.as_str(), found.card.label.as_str()), (version, version));
    }
    assert!(registry.agent_version(&tenant("t"), &editor(), "1.10").is_none(), "a version is exact");
    assert!(registry.agent_version(&tenant("t"), &editor(), "2.0.0").is_none());
    assert_eq!(registry.cards().count(), 4, "every version is kept");
    assert_eq!(registry.inventory(&tenant("t")).total, 1);
    assert_problem(registry.problems(), code::INVALID_MANIFEST, "2.0.0/pack.json#/agents/0/modelClass", "one of");
    assert_problem(registry.problems(), code::INVALID_MANIFEST, "copy", "same version");
    assert_eq!(registry.problems().len(), 2);
}

#[test]
fn a_tenant_sees_the_shared_packs_and_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str, label: &str| {
        let own = with(agent("x"), json!({"agentId": format!("{name}.a"), "label": label}));
        with(pack(vec![own]), json!({"name": name}))
    };
    write_pack(&folder.path().join("shared"), &named("vendor.acme.shared", "shared"), &[]);
    write_pack(&folder.path().join("@acme/own"), &named("vendor.acme.own", "own"), &[]);
    write_pack(&folder.path().join("@acme/better"), &named("vendor.acme.shared", "acme's"), &[]);
    write_pack(&folder.path().join("@other/own"), &named("vendor.other.own", "other"), &[]);
    write_pack(&folder.path().join("@other/@acme"), &named("vendor.other.nested", "nested"), &[]);
    let registry = load_from(folder.path());
    assert_eq!(ids(&registry, "acme"), ["vendor.acme.own.a", "vendor.acme.shared.a"]);
    assert_eq!(ids(&registry, "other"), ["vendor.acme.shared.a", "vendor.other.nested.a", "vendor.other.own.a"]);
    assert_eq!(ids(&registry, "stranger"), ["vendor.acme.shared.a"]);
    let label = |name: &str| registry.agent(&tenant(name), "vendor.acme.shared.a").unwrap().card.label.clone();
    assert_eq!((label("acme").as_str(), label("stranger").as_str()), ("acme's", "shared"));
    assert!(registry.agent(&tenant("stranger"), "vendor.acme.own.a").is_none());
    assert!(registry.agent_version(&tenant("stranger"), "vendor.acme.own.a", "1.0.0").is_none());
    assert_eq!(registry.inventory(&tenant("acme")).total, 2);
    assert_eq!(registry.cards().count(), 5, "every card is kept, whoever sees it");
}

#[test]
fn what_a_pack_wants_of_its_host() {
    let peers = json!({"aiProviders": "supported", "openwop.agents.memoryBackends": ">=longTerm"});
    let optional = json!({"openwop.agents.memoryBackends": {"optional": true}});
    let rich = Capabilities::new().with("aiProviders").with_values("agents.memoryBackends", ["long-term"]);
    let poor = Capabilities::new().with("aiProviders");
    for (meta, host, ignored_requirements, expected) in [
        (json!({}), &rich, None, Ok(None)),
        (json!({}), &poor, None, Err(())),
        (optional.clone(), &poor, None, Ok(Some("openwop.agents.memoryBackends"))),
        (json!({}), &poor, Some("openwop.agents.memoryBackends"), Ok(Some("openwop.agents.memoryBackends"))),
        (optional, &rich, None, Ok(None)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let manifest =
            with(pack(vec![agent("editor")]), json!({"peerDependencies": peers, "peerDependenciesMeta": meta}));
        write_pack(&folder.path().join("p"), &manifest, &[]);
        let registry = load(&Sources {
            packs: Some(folder.path().to_owned()),
            capabilities: host.clone(),
            ignored_requirements: ignored_requirements.map(str::to_owned).into_iter().collect::<BTreeSet<_>>(),
            ..Sources::default()
        });
        match expected {
            Err(()) => {
                assert!(ids(&registry, "t").is_empty());
                let place = "p/pack.json#/peerDependencies";
                assert_problem(
                    registry.problems(),
                    code::PACK_PEER_DEPENDENCY_MISSING,
                    place,
                    "`openwop.agents.memoryBackends`",
                );
            }
            Ok(degraded) => {
                assert_eq!(registry.problems(), []);
                let entry = &registry.agent(&tenant("t"), &editor()).unwrap().entry;
                assert_eq!(entry.degraded, degraded.into_iter().collect::<Vec<_>>());
            }
        }
    }
}

#[test]
fn the_inventory_is_closed_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let full = with(
        agent("editor"),
        json!({
            "systemPrompt": "The secret prompt.", "toolAllowlist": ["openwop:http.fetch"], "description": "Edits.",
            "requiresCapabilities": ["workspace", "host.magic"], "confidence": {"defaultThreshold": 0.5},
            "memoryShape": {"scratchpad": true, "longTerm": true}, "handoff": {"taskSchemaRef": "schemas/task.json"},
        }),
    );
    let manifest = with(
        pack(vec![full, agent("zed"), agent("bob")]),
        json!({"peerDependencies": {"voice": "supported"}, "peerDependenciesMeta": {"voice": {"optional": true}}}),
    );
    write_pack(&folder.path().join("p"), &manifest, &[("schemas/task.json", r#"{"title": "The secret schema"}"#)]);
    let inventory = load_with(folder.path(), Capabilities::new().with("workspace")).inventory(&tenant("t"));
    let answer = serde_json::to_value(&inventory).unwrap();
    assert_eq!(answer["total"], 3);
    let order: Vec<&str> =
        answer["agents"].as_array().unwrap().iter().map(|a| a["agentId"].as_str().unwrap()).collect();
    assert_eq!(order, ["vendor.acme.writers.bob", "vendor.acme.writers.editor", "vendor.acme.writers.zed"]);
    assert_eq!(
        answer["agents"][1],
        json!({
            "agentId": editor(), "persona": "Editor", "label": "Editor", "description": "Edits.",
            "modelClass": "writing", "packName": PACK, "packVersion": "1.0.0",
            "toolAllowlist": ["openwop:http.fetch"], "hasHandoffSchemas": true,
            "memoryShape": {"scratchpad": true, "conversation": false, "longTerm": true},
            "confidenceThreshold": 0.5, "degraded": ["host.magic", "voice"], "memoryDegraded": true,
            "degradedMemoryDimensions": ["read", "write", "long-term-durability"],
        })
    );
    assert_eq!(
        answer["agents"][0],
        json!({
            "agentId": "vendor.acme.writers.bob", "persona": "Editor", "label": "Editor", "modelClass": "writing",
            "packName": PACK, "packVersion": "1.0.0", "toolAllowlist": [], "hasHandoffSchemas": false,
            "degraded": ["voice"],
        })
    );
    assert!(!answer.to_string().contains("secret"));

    let rich = Capabilities::new()
        .with("workspace")
        .with("host.magic")
        .with("voice")
        .with("memory")
        .with_values("agents.memoryBackends", ["long-term"]);
    let whole = serde_json::to_value(load_with(folder.path(), rich).inventory(&tenant("t"))).unwrap();
    for absent in ["degraded", "memoryDegraded", "degradedMemoryDimensions"] {
        assert!(whole["agents"][1].get(absent).is_none(), "{absent}");
    }
    let short = Capabilities::new().with("memory");
    let entry = load_with(folder.path(), short).agent(&tenant("t"), &editor()).unwrap().entry.clone();
    assert_eq!(entry.degraded_memory_dimensions, ["long-term-durability"]);
}

#[test]
fn a_card_has_texts_where_the_manifest_has_references() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = pack(vec![with(
        agent("editor"),
        json!({
            "systemPrompt": null, "systemPromptRef": "./prompts/e.md",
            "handoff": {"taskSchemaRef": "task.json", "returnSchemaRef": "return.json"},
            "promptOverrides": {"user": "prompt:ask"}, "promptLibraryRef": "lib",
        }),
    )]);
    let files = [("prompts/e.md", "You edit."), ("task.json", "{}"), ("return.json", r#"{"type": "object"}"#)];
    write_pack(&folder.path().join("p"), &manifest, &files);
    let registry = load_from(folder.path());
    let found = registry.agent(&tenant("t"), &editor()).unwrap();
    assert_eq!(found.card.system_prompt, "You edit.");
    assert_eq!(found.card.task_schema, Some(json!({})));
    assert_eq!(found.card.return_schema, Some(json!({"type": "object"})));
    assert_eq!(found.card.prompt_overrides["user"], json!("prompt:ask"));
    assert_eq!(found.digest, found.card.digest());
    let same = load_from(folder.path()).agent(&tenant("t"), &editor()).unwrap().digest.clone();
    assert_eq!(same, found.digest);
    std::fs::write(folder.path().join("p/prompts/e.md"), "You edit more.").unwrap();
    let other = load_from(folder.path()).agent(&tenant("t"), &editor()).unwrap().digest.clone();
    assert_ne!(other, found.digest, "another prompt is another agent");
}

#[test]
fn packs_build_on_packs() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str, depends: Value| {
        let own = with(agent("x"), json!({"agentId": format!("{name}.a")}));
        with(pack(vec![own]), json!({"name": name, "dependencies": depends}))
    };
    write_pack(&folder.path().join("a"), &named("vendor.acme.a", json!({"vendor.acme.b": "^1.0.0"})), &[]);
    write_pack(&folder.path().join("b"), &named("vendor.acme.b", json!({"vendor.acme.a": "*"})), &[]);
    write_pack(&folder.path().join("c"), &named("vendor.acme.c", json!({"vendor.acme.d": "*"})), &[]);
    write_pack(&folder.path().join("d"), &named("vendor.acme.d", json!({"vendor.acme.a": ">=2"})), &[]);
    let registry = load_from(folder.path());
    assert_eq!(ids(&registry, "t"), ["vendor.acme.a.a", "vendor.acme.b.a"], "a circle does no harm");
    assert_problem(
        registry.problems(),
        code::PACK_VERSION_NOT_FOUND,
        "d/pack.json#/dependencies",
        "`vendor.acme.a` (>=2)",
    );
    assert_problem(registry.problems(), code::PACK_VERSION_NOT_FOUND, "c/pack.json#/dependencies", "`vendor.acme.d`");
}

/// A key pair, and what it makes of a manifest.
fn signer(seed: u8) -> (TrustedKey, impl Fn(&Value) -> String) {
    let pair = SigningKey::from_bytes(&[seed; 32]);
    let key = TrustedKey::read(&format!("key-{seed}"), &BASE64.encode(pair.verifying_key().to_bytes())).unwrap();
    (key, move |manifest: &Value| BASE64.encode(pair.sign(manifest.to_string().as_bytes()).to_bytes()))
}

fn named(name: &str) -> Value {
    let own = with(agent("x"), json!({"agentId": format!("vendor.acme.{name}.a")}));
    with(pack(vec![own]), json!({"name": format!("vendor.acme.{name}")}))
}

#[test]
fn a_signature_lies_in_one_of_two_places_and_fits_or_refuses() {
    let ((first, by_first), (second, by_second), (_, by_stranger)) = (signer(7), signer(8), signer(9));
    let folder = tempfile::tempdir().unwrap();
    let put =
        |name: &str, manifest: &Value, files: &[(&str, &str)]| write_pack(&folder.path().join(name), manifest, files);
    put("root", &named("root"), &[("pack.json.sig", &by_first(&named("root")))]);
    put("keys", &named("keys"), &[("keys/pack.json.sig", &by_second(&named("keys")))]);
    let both = named("both");
    put("both", &both, &[("pack.json.sig", &by_stranger(&both)), ("keys/pack.json.sig", &by_first(&both))]);
    let elsewhere = with(named("elsewhere"), json!({"signing": {"signatureRef": "sigs/sig"}}));
    put("elsewhere", &elsewhere, &[("sigs/sig", &by_first(&elsewhere))]);
    put("unsigned", &named("unsigned"), &[]);
    put("forged", &named("forged"), &[("keys/pack.json.sig", &by_first(&named("root")))]);
    put("strange", &named("strange"), &[("pack.json.sig", &by_stranger(&named("strange")))]);
    put("garbage", &named("garbage"), &[("pack.json.sig", "garbage")]);
    put("half", &named("half"), &[("pack.json.sig", &by_first(&named("half"))), ("keys/pack.json.sig", "")]);
    let climbing = with(named("climbing"), json!({"signing": {"signatureRef": "../root/pack.json.sig"}}));
    put("climbing", &climbing, &[]);
    let absent = with(named("absent"), json!({"signing": {"signatureRef": "sigs/none"}}));
    put("absent", &absent, &[]);
    let cloudy = with(named("cloudy"), json!({"signing": {"method": "sigstore"}}));
    put("cloudy", &cloudy, &[]);

    let of = |keys: &[TrustedKey], require_signed: bool| {
        let checks = Checks { keys: keys.to_vec(), require_signed };
        load(&Sources { packs: Some(folder.path().to_owned()), checks, ..Sources::default() })
    };
    let signed = |registry: &baton_agent::Registry| -> Vec<(String, String)> {
        let all = registry.packs(&tenant("t")).into_iter();
        all.map(|pack| (pack.name.clone(), pack.provenance.key().unwrap_or(pack.provenance.word()).to_owned()))
            .collect()
    };
    let told = |of: &[(&str, &str)]| -> Vec<(String, String)> {
        of.iter().map(|(name, how)| (format!("vendor.acme.{name}"), (*how).to_owned())).collect()
    };
    let trusted = [("both", "key-7"), ("elsewhere", "key-7"), ("keys", "key-8"), ("root", "key-7")];

    let both_keys = [first, second];
    let registry = of(&both_keys, true);
    assert_eq!(signed(&registry), told(&trusted));
    for (name, why) in [
        ("unsigned", "takes signed packs only"),
        ("forged", "None of the trusted keys (key-7, key-8)"),
        ("strange", "None of the trusted keys (key-7, key-8)"),
        ("garbage", "is no signature"),
        ("half", "`keys/pack.json.sig` is no signature"),
        ("climbing", "leads out of the pack"),
        ("absent", "is not in the pack"),
        ("cloudy", "sigstore"),
    ] {
        assert_problem(registry.problems(), code::PACK_SIGNATURE_INVALID, &format!("{name}/pack.json"), why);
    }
    assert_eq!(registry.problems().len(), 8);

    let lenient = of(&both_keys, false);
    let mut more = vec![("cloudy", "unchecked"), ("unsigned", "unsigned")];
    more.extend(trusted);
    more.sort_unstable();
    assert_eq!(signed(&lenient), told(&more), "unsigned packs are taken, forged ones are not");

    let trusting_nobody = of(&[], false);
    let shown = signed(&trusting_nobody);
    assert_eq!(shown.iter().filter(|(_, how)| how == "unchecked").count(), 7, "{shown:?}");
    for name in ["garbage", "half", "climbing", "absent"] {
        let place = format!("{name}/pack.json");
        assert!(trusting_nobody.problems().iter().any(|problem| problem.place.starts_with(&place)), "{name}");
    }
    assert_eq!(signed(&of(&[], true)), [], "nobody is trusted, so nothing is");
}

#[test]
fn every_changed_byte_of_a_signed_manifest_is_noticed() {
    let (key, sign) = signer(7);
    let manifest = named("solid");
    let text = manifest.to_string();
    let checks = Checks { keys: vec![key], require_signed: false };
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path(), &manifest, &[("keys/pack.json.sig", &sign(&manifest))]);
    assert!(baton_agent::inspect(folder.path(), &checks).is_ok());
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b' ' { b'_' } else { b' ' };
        std::fs::write(folder.path().join("pack.json"), bytes).unwrap();
        assert!(baton_agent::inspect(folder.path(), &checks).is_err(), "byte {at}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_a_problem_and_nothing_more() {
    let registry = load(&Sources {
        packs: Some("/nonexistent/packs".into()),
        prompts: Some("/nonexistent/prompts".into()),
        bundled: true,
        ..Sources::default()
    });
    assert_eq!(registry.problems().len(), 2);
    assert_eq!(ids(&registry, "t").len(), 3, "the bundled team is there");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let registry = load_from(folder.path());
    assert_problem(registry.problems(), code::INVALID_MANIFEST, "empty/pack.json", "is not in the pack");
}
