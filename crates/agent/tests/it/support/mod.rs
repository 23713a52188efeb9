//! Packs to test with.
#![allow(dead_code)]

use std::fs;
use std::path::Path;

use baton_agent::{Capabilities, Problem, Registry, Sources, load};
use baton_model::TenantId;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

pub(crate) const PACK: &str = "vendor.acme.writers";

/// A manifest that keeps every rule.
pub(crate) fn agent(name: &str) -> Value {
    json!({
        "agentId": format!("{PACK}.{name}"),
        "persona": "Editor",
        "modelClass": "writing",
        "systemPrompt": "You edit.",
    })
}

/// A pack that keeps every rule.
pub(crate) fn pack(agents: Vec<Value>) -> Value {
    json!({
        "name": PACK,
        "version": "1.0.0",
        "engines": {"openwop": ">=1.0.0 <2.0.0"},
        "runtime": {"language": "remote", "entry": "pack.json"},
        "agents": agents,
    })
}

/// The same object with something different in it; `null` takes a member out.
pub(crate) fn with(mut value: Value, changes: Value) -> Value {
    for (key, change) in changes.as_object().unwrap() {
        if change.is_null() {
            value.as_object_mut().unwrap().remove(key);
        } else {
            value[key] = change.clone();
        }
    }
    value
}

pub(crate) fn write_pack(folder: &Path, manifest: &Value, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("pack.json"), manifest.to_string()).unwrap();
    for (path, text) in files {
        let place = folder.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
}

pub(crate) fn load_from(folder: &Path) -> Registry {
    load(&Sources { packs: Some(folder.to_owned()), ..Sources::default() })
}

pub(crate) fn load_with(folder: &Path, capabilities: Capabilities) -> Registry {
    load(&Sources { packs: Some(folder.to_owned()), capabilities, ..Sources::default() })
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name)
}

pub(crate) fn ids(registry: &Registry, name: &str) -> Vec<String> {
    registry.agents(&tenant(name)).iter().map(|agent| agent.card.agent_id.clone()).collect()
}

/// A `.tgz` with these files, headers as given.
pub(crate) fn tgz(files: &[(&str, &[u8])]) -> Vec<u8> {
    archive(|builder| {
        for (path, bytes) in files {
            add(builder, path, bytes, tar::EntryType::Regular, None);
        }
    })
}

pub(crate) fn archive(fill: impl FnOnce(&mut tar::Builder<GzEncoder<Vec<u8>>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    fill(&mut builder);
    builder.into_inner().unwrap().finish().unwrap()
}

/// Adds an entry whose name is written as it is: `tar` itself refuses the hostile ones.
pub(crate) fn add(
    builder: &mut tar::Builder<GzEncoder<Vec<u8>>>,
    path: &str,
    bytes: &[u8],
    kind: tar::EntryType,
    link: Option<&str>,
) {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    if let Some(link) = link {
        header.as_old_mut().linkname[..link.len()].copy_from_slice(link.as_bytes());
    }
    header.set_cksum();
    builder.append(&header, bytes).unwrap();
}

/// Fails unless some problem has the code, is at the place and says the words.
#[track_caller]
pub(crate) fn assert_problem(problems: &[Problem], code: &str, place: &str, words: &str) {
    let found = problems.iter().any(|p| p.code == code && p.place.ends_with(place) && p.message.contains(words));
    assert!(found, "no `{code}` at `{place}` about `{words}` in {problems:#?}");
}
