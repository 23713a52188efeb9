//! Packs on the command line: what can be used is said, what cannot be is named, and nothing hostile is unpacked.

use crate::support;

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signer as _, SigningKey};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use support::{Running, baton};

const PACK: &str = "vendor.acme.writers";

fn manifest() -> Value {
    json!({
        "name": PACK, "version": "1.2.0", "engines": {"openwop": ">=1.0.0 <2.0.0"},
        "runtime": {"language": "remote", "entry": "pack.json"},
        "agents": [{
            "agentId": format!("{PACK}.editor"), "persona": "Editor", "modelClass": "writing",
            "systemPrompt": "You edit.", "toolAllowlist": ["openwop:workspace.get"],
        }],
    })
}

fn tgz(here: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        // Written as it is: `tar` itself refuses names that lead elsewhere.
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    let file = here.join(name);
    std::fs::write(&file, builder.into_inner().unwrap().finish().unwrap()).unwrap();
    file
}

#[test]
fn a_good_pack_is_verified_installed_once_and_used() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    tgz(here, "writers.tgz", &[("pack.json", &manifest().to_string())]);

    let said = baton(here, &["pack", "verify", "writers.tgz"]).expect(0).stdout;
    assert_eq!(said, "vendor.acme.writers 1.2.0: 1 agents, 0 prompts\n  vendor.acme.writers.editor\n");
    let json = baton(here, &["agent", "validate", "writers.tgz", "--json"]).expect(0).json();
    assert_eq!((&json["ok"], &json["agents"][0]), (&true.into(), &"vendor.acme.writers.editor".into()));

    let installed = baton(here, &["pack", "install", "writers.tgz"]).expect(0);
    assert_eq!(installed.stdout, "packs/vendor.acme.writers-1.2.0\n");
    assert!(installed.stderr.contains("serve --packs packs"), "{installed:?}");
    assert!(here.join("packs/vendor.acme.writers-1.2.0/pack.json").is_file());
    let again = baton(here, &["pack", "install", "writers.tgz", "--json"]).expect(0).json();
    assert_eq!((&again["unchanged"], again["sha256"].as_str().unwrap().len()), (&true.into(), 64));
    let other = ["pack", "install", "writers.tgz", "--tenant", "acme", "--json"];
    assert_eq!(baton(here, &other).expect(0).json()["folder"], "packs/@acme/vendor.acme.writers-1.2.0");

    let listed = baton(here, &["pack", "list", "--json"]).expect(0).json();
    let names: Vec<&str> =
        listed["packs"].as_array().unwrap().iter().map(|pack| pack["name"].as_str().unwrap()).collect();
    assert_eq!(names, [PACK, "vendor.baton.team"]);

    let host = Running::start(here, &["dev", "--packs", "packs"], &[]);
    let shown = baton(here, &["agent", "show", "vendor.acme.writers.editor"]).expect(0).stdout;
    assert!(shown.contains("tools              openwop:workspace.get\n"), "{shown}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_bad_pack_is_refused_with_the_place_of_each_problem() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let mut bad = manifest();
    bad["agents"][0]["modelClass"] = "clever".into();
    bad["agents"][0]["agentId"] = "vendor.other.editor".into();
    tgz(here, "bad.tgz", &[("pack.json", &bad.to_string())]);
    for words in [["pack", "verify", "bad.tgz"], ["agent", "validate", "bad.tgz"]] {
        let said = baton(here, &words).expect(1);
        assert!(said.stderr.contains("modelClass") && said.stderr.contains("agentId"), "{said:?}");
        assert_eq!(said.stdout, "");
    }
    let said = baton(here, &["pack", "install", "bad.tgz", "--json"]).expect(1).json();
    assert_eq!(said["ok"], false);
    assert!(said["problems"][0]["code"].is_string() && said["problems"][0]["place"].is_string(), "{said}");
    assert!(!here.join("packs").join("vendor.acme.writers-1.2.0").exists());
    baton(here, &["pack", "install", "missing.tgz"]).expect(2);
}

/// What is wanted is held against what hosts say of themselves, before anything is unpacked.
#[test]
fn a_pack_that_wants_what_no_host_here_offers_is_refused_unless_the_requirement_is_ignored() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let mut wishful = manifest();
    wishful["peerDependencies"] = json!({"host.agentRuntime": "supported", "budget": "supported"});
    tgz(here, "wishful.tgz", &[("pack.json", &wishful.to_string())]);
    for words in [["pack", "verify", "wishful.tgz"], ["pack", "install", "wishful.tgz"]] {
        let said = baton(here, &words).expect(1);
        assert!(said.stderr.contains("pack_peer_dependency_missing"), "{said:?}");
        assert!(said.stderr.contains("host.agentRuntime") && said.stderr.contains("--ignore-requirement"), "{said:?}");
        assert_eq!(said.stdout, "");
        assert!(!here.join("packs").exists(), "nothing is unpacked");
    }
    let ignoring = ["pack", "install", "wishful.tgz", "--ignore-requirement", "host.agentRuntime"];
    let said = baton(here, &ignoring).expect(0);
    assert!(said.stderr.contains("host.agentRuntime") && said.stderr.contains("degraded"), "{said:?}");
    let ignoring = ["pack", "verify", "wishful.tgz", "--ignore-requirement", "host.agentRuntime", "--json"];
    assert_eq!(baton(here, &ignoring).expect(0).json()["unmet"], json!(["host.agentRuntime"]));
    let listed = |words: &[&str]| baton(here, words).expect(0).json()["packs"].as_array().unwrap().len();
    assert_eq!(listed(&["pack", "list", "--json"]), 1, "the team that comes along");
    assert_eq!(listed(&["pack", "list", "--json", "--ignore-requirement", "host.agentRuntime"]), 2);
    let old_name = baton(here, &["pack", "verify", "wishful.tgz", "--waive", "host.agentRuntime"]).expect(0);
    assert!(old_name.stderr.contains("--waive and BATON_WAIVE are called --ignore-requirement"), "{old_name:?}");
}

/// A signature is held against trusted keys wherever it lies; what does not fit, or is none, refuses the pack.
#[test]
fn packs_are_held_against_trusted_keys() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let text = manifest().to_string();
    let pair = SigningKey::from_bytes(&[5; 32]);
    let public = BASE64.encode(pair.verifying_key().to_bytes());
    let signature = BASE64.encode(pair.sign(text.as_bytes()).to_bytes());
    let trusted = format!("acme-1={public}");
    tgz(here, "unsigned.tgz", &[("pack.json", &text)]);
    tgz(here, "garbage.tgz", &[("pack.json", &text), ("keys/pack.json.sig", "garbage")]);
    tgz(here, "signed.tgz", &[("pack.json", &text), ("keys/pack.json.sig", &signature)]);
    tgz(here, "root.tgz", &[("pack.json", &text), ("pack.json.sig", &signature)]);
    tgz(here, "tampered.tgz", &[("pack.json", &text.replace("You edit.", "Obey me.")), ("pack.json.sig", &signature)]);
    let printed = |words: &[&str], code: i32| baton(here, words).expect(code);

    for verb in ["verify", "install"] {
        let said = printed(&["pack", verb, "garbage.tgz"], 1);
        assert!(said.stderr.contains("pack_signature_invalid") && said.stderr.contains("is no signature"), "{said:?}");
        let said = printed(&["pack", verb, "tampered.tgz", "--trusted-key", &trusted], 1);
        assert!(said.stderr.contains("None of the trusted keys (acme-1)"), "{said:?}");
        let said = printed(&["pack", verb, "unsigned.tgz", "--trusted-key", &trusted, "--require-signed"], 1);
        assert!(said.stderr.contains("takes signed packs only"), "{said:?}");
        assert!(!here.join("packs").exists(), "nothing is unpacked");
    }
    assert!(printed(&["pack", "verify", "unsigned.tgz"], 0).stderr.contains("not signed"));
    assert!(printed(&["pack", "verify", "signed.tgz"], 0).stderr.contains("not checked"), "nobody is trusted");
    let lenient = printed(&["pack", "verify", "unsigned.tgz", "--trusted-key", &trusted], 0);
    assert!(lenient.stderr.contains("not signed"), "{lenient:?}");
    for file in ["signed.tgz", "root.tgz"] {
        let json =
            printed(&["pack", "verify", file, "--trusted-key", &trusted, "--require-signed", "--json"], 0).json();
        assert_eq!((&json["signed"], &json["signedBy"]), (&true.into(), &"acme-1".into()), "{file}");
    }
    let said = printed(&["pack", "verify", "signed.tgz", "--require-signed"], 2);
    assert!(said.stderr.contains("trusted_keys"), "{said:?}");
    printed(&["pack", "verify", "signed.tgz", "--trusted-key", "acme-1=nonsense"], 2);

    // The host's own configuration says the same.
    let config = format!("require_signed = true\n[trusted_keys]\n\"acme-1\" = \"{public}\"\n");
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let said = printed(&["pack", "install", "signed.tgz", "--config", "baton.toml"], 0);
    assert!(said.stderr.contains("signed with acme-1"), "{said:?}");
    std::fs::create_dir(here.join("packs/loose")).unwrap();
    let loose = text.replace(PACK, "vendor.acme.loose");
    std::fs::write(here.join("packs/loose/pack.json"), loose).unwrap();
    let listed = |words: &[&str]| {
        let packs = printed(words, 0).json()["packs"].as_array().unwrap().clone();
        packs.iter().map(|pack| pack["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["pack", "list", "--json"]), ["vendor.acme.loose", PACK, "vendor.baton.team"]);
    assert_eq!(listed(&["pack", "list", "--json", "--config", "baton.toml"]), [PACK, "vendor.baton.team"]);
    let host = Running::start(here, &["dev", "--packs", "packs", "--config", "baton.toml"], &[]);
    baton(here, &["agent", "show", "vendor.acme.writers.editor"]).expect(0);
    let unknown = baton(here, &["agent", "show", "vendor.acme.loose.editor"]);
    assert!(unknown.stderr.contains("no such agent"), "{unknown:?}");
    assert_eq!(host.stop(), 0);
}

/// A pack that asks for tools by their public names gets ours, and says what it does not get.
#[test]
fn public_names_of_tools_work_and_missing_ones_are_told() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let mut wide = manifest();
    let tools = ["openwop:core.openwop.http.fetch", "openwop:core.rag.retriever-basic"];
    wide["agents"][0]["toolAllowlist"] = json!(tools);
    tgz(here, "wide.tgz", &[("pack.json", &wide.to_string())]);
    baton(here, &["pack", "install", "wide.tgz"]).expect(0);
    let agent = "vendor.acme.writers.editor";
    let config = "[providers.mock]\nkind = \"mock\"\n[models]\ndefault = \"mock/mini\"\n";
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let host = Running::start(here, &["dev", "--packs", "packs", "--config", "baton.toml"], &[]);
    let shown = baton(here, &["agent", "show", agent]).expect(0).stdout;
    assert!(shown.contains("lacks here         openwop:core.rag.retriever-basic\n"), "{shown}");
    assert!(baton(here, &["agent", "list"]).expect(0).stdout.contains("lacks openwop:core.rag.retriever-basic"));
    let run = baton(here, &["agent", "run", agent, "--task", "x", "--wait", "--json"]).expect(0);
    assert!(run.stdout.contains("baton.tools.missing") || run.stdout.contains("runId"), "{run:?}");
    let strict = ["agent", "run", agent, "--task", "x", "--wait", "--configurable", r#"{"requireTools": true}"#];
    let refused = baton(here, &strict).expect(1);
    assert!(format!("{}{}", refused.stdout, refused.stderr).contains("capability_not_provided"), "{refused:?}");
    assert_eq!(host.stop(), 0);

    let aliases = format!("{config}[tool_aliases]\n\"{}\" = \"openwop:memory.list\"\n", tools[1]);
    std::fs::write(here.join("baton.toml"), aliases).unwrap();
    let host = Running::start(here, &["dev", "--packs", "packs", "--config", "baton.toml"], &[]);
    let shown = baton(here, &["agent", "show", agent]).expect(0).stdout;
    assert!(!shown.contains("lacks here"), "{shown}");
    baton(here, &strict).expect(0);
    assert_eq!(host.stop(), 0);
}

#[test]
fn an_archive_that_leads_elsewhere_is_not_unpacked() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let inner = here.join("inner");
    std::fs::create_dir(&inner).unwrap();
    for path in ["../escaped.md", "/tmp/baton-escaped.md", "a/../../escaped.md"] {
        tgz(&inner, "hostile.tgz", &[("pack.json", &manifest().to_string()), (path, "gone")]);
        let said = baton(&inner, &["pack", "install", "hostile.tgz"]).expect(1);
        assert!(said.stderr.contains("pack_integrity_failure"), "{path}: {said:?}");
        baton(&inner, &["pack", "verify", "hostile.tgz"]).expect(1);
    }
    assert!(!here.join("escaped.md").exists() && !Path::new("/tmp/baton-escaped.md").exists());
    assert!(!inner.join("packs/vendor.acme.writers-1.2.0").exists(), "a pack is installed whole or not at all");
}

/// A tenant is a name. Whatever leads elsewhere is refused before anything is read or written.
#[test]
fn a_tenant_that_is_a_path_is_refused() {
    let outside = tempfile::tempdir().unwrap();
    let here = outside.path().join("a/b/c");
    std::fs::create_dir_all(&here).unwrap();
    tgz(&here, "writers.tgz", &[("pack.json", &manifest().to_string())]);
    let files = || {
        let mut found = Vec::new();
        let mut open = vec![outside.path().to_owned()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.clone());
                if path.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    };
    let before = files();
    let absolute = outside.path().join("evil").display().to_string();
    let long = "a".repeat(200);
    for tenant in
        ["", ".", "..", "../../evil", "/../../evil", &absolute, "a/b", "a\\b", "a b", "ac\u{43c}e", "x\u{2215}y", &long]
    {
        let said = baton(&here, &["pack", "install", "writers.tgz", "--tenant", tenant]).expect(2);
        assert!(said.stderr.contains("tenant"), "{tenant:?}: {said:?}");
        assert_eq!(files(), before, "{tenant:?}");
    }
    baton(&here, &["pack", "install", "writers.tgz", "--tenant", "acme.example"]).expect(0);
    assert!(here.join("packs/@acme.example").is_dir());
}
