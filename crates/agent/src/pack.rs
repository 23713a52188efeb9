//! `pack.json`: what a pack is called, what it needs, and what is in it.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::code;
use semver::Version;
use serde_json::Value;

use crate::capabilities::Capabilities;
use crate::names;
use crate::problem::Problem;
use crate::range::Range;
use crate::shape::{self, Fields, Text};

/// The file that makes a folder a pack.
pub const MANIFEST: &str = "pack.json";

/// How many agents or templates one pack may have.
const MAX_ENTRIES: usize = 256;

/// A pack's manifest; its agents and templates have not been looked at.
#[derive(Clone, Debug)]
pub struct PackManifest {
    pub name: String,
    pub version: Version,
    pub description: Option<String>,
    pub license: Option<String>,
    /// Other packs this one builds on, with the versions that will do.
    pub dependencies: BTreeMap<String, String>,
    /// What the host has to offer.
    pub peers: Vec<Peer>,
    pub(crate) signed_by: SignedBy,
    pub(crate) contents: Contents,
}

/// Something a pack wants of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub key: String,
    pub wanted: String,
    /// Without it the pack still installs and says what is missing.
    pub optional: bool,
}

/// What a manifest says of its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SignedBy {
    /// Nothing: it lies where signatures usually do, if there is one.
    Unsaid,
    File(String),
    /// With certificates instead of keys, which nobody here looks at.
    Sigstore,
}

/// What is in a pack. A pack has agents or templates, never both.
#[derive(Clone, Debug)]
pub(crate) enum Contents {
    Agents(Vec<Value>),
    Prompts(Vec<Value>),
}

impl PackManifest {
    /// What the pack requires of its host and does without. A requirement that is neither met, optional nor ignored is a refusal;
    /// `origin` is where the pack was found.
    pub fn unmet_requirements(
        &self,
        origin: &str,
        host: &Capabilities,
        ignored_requirements: &BTreeSet<String>,
    ) -> Result<Vec<String>, Problem> {
        let unmet: Vec<&Peer> = self.peers.iter().filter(|peer| !host.meets(&peer.key, &peer.wanted)).collect();
        let needed = unmet.iter().filter(|peer| !peer.optional && !ignored_requirements.contains(&peer.key));
        let needed: Vec<String> = needed.map(|peer| format!("`{}` ({})", peer.key, peer.wanted)).collect();
        if needed.is_empty() {
            return Ok(unmet.into_iter().map(|peer| peer.key.clone()).collect());
        }
        let message = format!(
            "The pack needs {} of its host, which this one does not offer. Turn it on, ignore the requirement, or mark it optional in \
             `peerDependenciesMeta`.",
            needed.join(", ")
        );
        let place = format!("{origin}/pack.json#/peerDependencies");
        Err(Problem::new(code::PACK_PEER_DEPENDENCY_MISSING, place, message))
    }

    /// Reads a `pack.json`.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        let wrong = |message: String| vec![Problem::new(code::INVALID_MANIFEST, MANIFEST, message)];
        let value: Value =
            serde_json::from_str(text).map_err(|error| wrong(format!("This is not JSON: {error}. Mend it there.")))?;
        let mut problems = Vec::new();
        let at = format!("{MANIFEST}#");
        let manifest = match value.get("kind").map(|kind| kind.as_str().unwrap_or_default()) {
            None | Some("node") => shape::object(&value, &at, code::INVALID_MANIFEST, &mut problems, agents),
            Some("prompt") => shape::object(&value, &at, code::INVALID_MANIFEST, &mut problems, prompts),
            Some(_) => {
                let message = "This host takes packs of agents (`kind` left out or `node`) and of prompts (`prompt`).";
                return Err(vec![Problem::new(code::PACK_KIND_INVALID, format!("{at}/kind"), message)]);
            }
        };
        match manifest.flatten() {
            Some(manifest) if problems.is_empty() => Ok(manifest),
            _ => Err(problems),
        }
    }
}

/// What every kind of pack has.
struct ManifestHeader {
    name: Option<String>,
    version: Option<Version>,
    description: Option<String>,
    license: Option<String>,
    dependencies: BTreeMap<String, String>,
    signed_by: SignedBy,
}

fn header(fields: &mut Fields<'_, '_>) -> ManifestHeader {
    fields.value("kind");
    let name = Text::between(1, 256).which(names::is_pack_name, names::PACK_NAME);
    let name = fields.required_text("name", name);
    let version = fields.required_text("version", Text::ANY.which(names::is_version, names::VERSION));
    let description = fields.text("description", Text::up_to(1024));
    fields.text("author", Text::ANY);
    let license = fields.text("license", Text::ANY);
    fields.text("homepage", Text::ANY.which(names::is_uri, names::URI));
    fields.text("repository", Text::ANY.which(names::is_uri, names::URI));
    fields.texts("keywords", 50, Text::up_to(64));
    engines(fields);
    let dependencies = dependencies(fields);
    let signing = fields.nested("signing", |signing| {
        signing.text("publicKeyRef", Text::ANY);
        let method = signing.word("method", &["manual", "sigstore"]);
        let file = signing.text("signatureRef", Text::NOT_EMPTY);
        match (method.as_deref(), file) {
            (Some("sigstore"), _) => SignedBy::Sigstore,
            (_, Some(file)) => SignedBy::File(file),
            (_, None) => SignedBy::Unsaid,
        }
    });
    let version = version.and_then(|text| Version::parse(&text).ok());
    ManifestHeader { name, version, description, license, dependencies, signed_by: signing.unwrap_or(SignedBy::Unsaid) }
}

/// `engines` is open: other engines may be named beside ours.
fn engines(fields: &mut Fields<'_, '_>) {
    let Some(engines) = fields.required("engines") else { return };
    let wanted = engines.get("openwop").and_then(Value::as_str);
    let range = wanted.and_then(Range::read);
    match (engines.is_object(), wanted, range) {
        (true, Some(_), Some(range)) if range.touches_major(1) => {}
        (true, Some(_), Some(_)) => {
            let place = format!("{}/openwop", fields.place("engines"));
            let message = "The pack is made for another major version of the protocol; this host speaks version 1.";
            fields.problems().push(Problem::new(code::PACK_RUNTIME_REQUIREMENT_UNMET, place, message));
        }
        _ => fields.problem("engines", "`engines.openwop` is a range of versions, such as `>=1.0 <2.0.0`."),
    }
}

fn dependencies(fields: &mut Fields<'_, '_>) -> BTreeMap<String, String> {
    let pairs = fields.text_map("dependencies");
    for (name, range) in &pairs {
        if !names::is_pack_name(name) {
            fields.problem("dependencies", format!("`{name}` is no pack: its name {}.", names::PACK_NAME));
        }
        if Range::read(range).is_none() {
            fields.problem("dependencies", format!("`{range}` is no range of versions; write `>=1.0.0 <2.0.0`."));
        }
    }
    pairs.into_iter().collect()
}

fn agents(fields: &mut Fields<'_, '_>) -> Option<PackManifest> {
    let header = header(fields);
    let peers = peers(fields);
    let nodes = fields.list("nodes").map_or(0, Vec::len);
    let agents = fields.list("agents").cloned().unwrap_or_default();
    if nodes == 0 && agents.is_empty() {
        fields.problem("", "A pack has something in it: list at least one agent under `agents`.");
    }
    if agents.len() > MAX_ENTRIES {
        fields.problem("agents", format!("A pack has at most {MAX_ENTRIES} agents; split it."));
    }
    runtime(fields, nodes);
    connector(fields);
    Some(PackManifest {
        name: header.name?,
        version: header.version?,
        description: header.description,
        license: header.license,
        dependencies: header.dependencies,
        peers,
        signed_by: header.signed_by,
        contents: Contents::Agents(agents),
    })
}

fn prompts(fields: &mut Fields<'_, '_>) -> Option<PackManifest> {
    let header = header(fields);
    fields.required("prompts");
    let prompts = fields.list("prompts").cloned().unwrap_or_default();
    if prompts.is_empty() {
        fields.problem("prompts", "A prompt pack has at least one template.");
    }
    if prompts.len() > MAX_ENTRIES {
        fields.problem("prompts", format!("A pack has at most {MAX_ENTRIES} templates; split it."));
    }
    Some(PackManifest {
        name: header.name?,
        version: header.version?,
        description: header.description,
        license: header.license,
        dependencies: header.dependencies,
        peers: Vec::new(),
        signed_by: header.signed_by,
        contents: Contents::Prompts(prompts),
    })
}

fn peers(fields: &mut Fields<'_, '_>) -> Vec<Peer> {
    let wanted = fields.text_map("peerDependencies");
    let mut optional = BTreeSet::new();
    if let Some(value) = fields.value("peerDependenciesMeta") {
        let Value::Object(entries) = value else {
            fields.problem("peerDependenciesMeta", "`peerDependenciesMeta` is an object.");
            return Vec::new();
        };
        for (key, entry) in entries {
            let place = format!("{}/{}", fields.place("peerDependenciesMeta"), key.replace('/', "~1"));
            let read = shape::object(entry, &place, code::INVALID_MANIFEST, fields.problems(), |meta| {
                meta.flag("optional").unwrap_or(false)
            });
            if read == Some(true) {
                optional.insert(key.clone());
            }
        }
    }
    let peer = |(key, wanted): (String, String)| Peer { optional: optional.contains(&key), key, wanted };
    wanted.into_iter().map(peer).collect()
}

/// Agents are read, never run, so a pack of them has no code: its runtime is `remote` and asks for nothing.
fn runtime(fields: &mut Fields<'_, '_>, nodes: usize) {
    fields.required("runtime");
    let place = fields.place("runtime");
    let read = fields.nested("runtime", |runtime| {
        runtime.required("language");
        let languages = ["javascript", "python", "go", "wasm", "wasm-component", "remote"];
        let language = runtime.word("language", &languages);
        runtime.required_text("entry", Text::ANY);
        runtime.word("format", &["esm", "cjs", "wheel", "binary", "shared-library", "wasm", "wasm-component"]);
        runtime.text("minRuntimeVersion", Text::ANY);
        (language, runtime.texts("requires", 64, Text::NOT_EMPTY).unwrap_or_default())
    });
    let Some((language, requires)) = read else { return };
    if nodes > 0 {
        let message = "This host runs no code of packs. Move the agents into a pack of their own, without `nodes`.";
        fields.problems().push(Problem::new(code::UNSUPPORTED_RUNTIME, place, message));
        return;
    }
    if language.is_some_and(|language| language != "remote") {
        fields.problem("runtime", "A pack of agents alone has `\"language\": \"remote\"`.");
    }
    if let Some(first) = requires.first() {
        let message = format!("The pack wants `{first}` of its runtime, and this host grants no such thing to packs.");
        fields.problems().push(Problem::new(code::PACK_RUNTIME_REQUIREMENT_UNMET, place, message));
    }
}

/// Connectors are made of nodes, which this host does not take.
fn connector(fields: &mut Fields<'_, '_>) {
    if fields.value("connector").is_some() {
        fields.problem("connector", "A connector is made of nodes, and a pack of agents has none; take it out.");
    }
}
