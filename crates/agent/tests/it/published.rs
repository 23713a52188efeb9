//! Holds what we ship, take and answer against the protocol's own schemas, where a copy of them is at hand: point
//! `OPENWOP_SCHEMAS` at their folder. Without it there is nothing to compare with, and nothing is said.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};

use baton_agent::prompts::PromptTemplate;
use baton_agent::{AgentManifest, PackManifest, Sources, load};
use baton_engine::acceptor::{Host, Kinds, Offer, Strictness, UNIVERSAL, accept};
use serde_json::{Value, json};
use support::{PACK, agent, pack, tenant, with};

struct Published {
    folder: PathBuf,
    registry: jsonschema::Registry<'static>,
}

impl Published {
    fn at_hand() -> Option<Self> {
        let folder = PathBuf::from(std::env::var_os("OPENWOP_SCHEMAS")?);
        let mut registry = jsonschema::Registry::new();
        for name in ["agent-manifest", "prompt-ref", "prompt-kind", "prompt-template"] {
            let schema = read(&folder.join(format!("{name}.schema.json")));
            let id = schema["$id"].as_str().unwrap().to_owned();
            registry = registry.add(id, schema).unwrap();
        }
        Some(Self { registry: registry.prepare().unwrap(), folder })
    }

    fn schema(&self, name: &str) -> jsonschema::Validator {
        let schema = read(&self.folder.join(format!("{name}.schema.json")));
        jsonschema::draft202012::options().with_registry(&self.registry).build(&schema).unwrap()
    }

    fn check(&self, name: &str, value: &Value) {
        let schema = self.schema(name);
        let errors: Vec<_> = schema.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn our_pack_and_our_inventory_are_what_the_protocol_says() {
    let Some(published) = Published::at_hand() else { return };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packs/vendor.baton.team/pack.json");
    published.check("node-pack-manifest", &read(&own));
    let registry = load(&Sources { bundled: true, ..Sources::default() });
    published.check("agent-inventory-response", &serde_json::to_value(registry.inventory(&tenant("t"))).unwrap());
}

#[test]
fn whatever_we_take_the_protocol_takes_too() {
    let Some(published) = Published::at_hand() else { return };
    let (manifest, packs) = (published.schema("agent-manifest"), published.schema("node-pack-manifest"));
    let values = [
        json!(null),
        json!(""),
        json!("x"),
        json!("prompt:a"),
        json!(0.5),
        json!(7),
        json!([]),
        json!(["a:b"]),
        json!([""]),
        json!({}),
        json!({"longTerm": true}),
        json!({"openwop": "*"}),
        json!({"language": "remote", "entry": "x"}),
        json!({"x": {}}),
        json!(true),
        json!("x".repeat(300)),
        json!("vendor.acme.writers.a"),
        json!("1.2.3"),
    ];
    let keys = [
        "agentId",
        "persona",
        "modelClass",
        "systemPrompt",
        "systemPromptRef",
        "toolAllowlist",
        "requiresCapabilities",
        "memoryShape",
        "confidence",
        "handoff",
        "label",
        "description",
        "promptLibraryRef",
        "promptOverrides",
        "evalSuiteRef",
        "other",
    ];
    let mut taken = 0;
    for (key, value) in keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))) {
        let changed = with(agent("editor"), json!({*key: value}));
        if AgentManifest::read(&changed, "#", PACK).is_ok() {
            taken += 1;
            assert!(manifest.is_valid(&changed), "{changed}");
        }
    }
    let keys = [
        "name",
        "version",
        "kind",
        "engines",
        "runtime",
        "nodes",
        "description",
        "author",
        "license",
        "homepage",
        "keywords",
        "dependencies",
        "peerDependencies",
        "peerDependenciesMeta",
        "signing",
        "connector",
        "other",
    ];
    for (key, value) in keys.iter().flat_map(|key| values.iter().map(move |value| (key, value))) {
        let changed = with(pack(vec![agent("editor")]), json!({*key: value}));
        if PackManifest::read(&changed.to_string()).is_ok() {
            taken += 1;
            assert!(packs.is_valid(&changed), "{changed}");
        }
    }
    assert!(taken > 30, "enough of both were good to mean something: {taken}");
}

#[test]
fn envelopes_are_read_the_same_way() {
    let Some(published) = Published::at_hand() else { return };
    let shape = published.schema("ai-envelope");
    let (kinds, versions) = (Kinds::universal(), std::collections::BTreeMap::new());
    let host = Host { enabled: true, supported: &[], versions: &versions, strictness: Strictness::Warn, kinds: &kinds };
    let payloads = [
        json!({}),
        json!(null),
        json!("x"),
        json!({"code": "a", "message": "b"}),
        json!({"code": "", "message": "b"}),
        json!({"code": "a", "message": "b", "details": []}),
        json!({"envelopeType": "x"}),
        json!({"envelopeType": ""}),
        json!({"envelopeType": "x", "ack": true}),
        json!({"envelopeType": "x", "ack": false}),
        json!({"envelopeType": "x", "reason": "r".repeat(1025)}),
        json!({"questions": []}),
        json!({"questions": [{"id": "a", "question": "b", "schema": {}, "context": {"x": 1}}], "contextType": "c"}),
        json!({"questions": [{"id": "a", "question": "b", "hint": 1}]}),
        json!({"questions": [{"id": "", "question": "b"}]}),
        json!({"code": "a", "message": "b", "reasoning": "r"}),
        json!({"code": "x".repeat(129), "message": "b"}),
    ];
    for kind in UNIVERSAL {
        let schema = published.schema(&format!("envelopes/{kind}"));
        for payload in &payloads {
            let envelope = json!({"type": kind, "envelopeId": "e", "correlationId": "c", "payload": payload,
                                  "meta": {"source": "user", "ts": "2026-01-01T00:00:00Z"}});
            let ours = accept(&envelope, &host, &Offer::default()).outcome.status() == "accepted";
            assert_eq!(ours, shape.is_valid(&envelope) && schema.is_valid(payload), "{envelope}");
        }
    }
    let good = json!({"type": "error", "envelopeId": "e", "correlationId": "c", "payload": {"code": "a", "message": "b"},
                      "meta": {"source": "user", "ts": "2026-01-01T00:00:00Z"}});
    let values =
        [json!(null), json!(""), json!("x"), json!(-1), json!(3), json!({}), json!({"display": "code"}), json!(true)];
    for pointer in [
        "/envelopeId",
        "/correlationId",
        "/nodeId",
        "/schemaVersion",
        "/partial",
        "/other",
        "/meta/source",
        "/meta/contentTrust",
        "/meta/traceparent",
        "/meta/label",
        "/meta/rendering",
        "/meta/other",
    ] {
        for value in &values {
            let mut changed = good.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[key] = value.clone();
            let ours = accept(&changed, &host, &Offer::default()).outcome.status() == "accepted";
            assert_eq!(ours, shape.is_valid(&changed), "{changed}");
        }
    }
}

#[test]
fn published_templates_are_templates() {
    let Some(published) = Published::at_hand() else { return };
    let Ok(entries) = fs::read_dir(published.folder.join("../fixtures/prompt-templates")) else { return };
    for entry in entries {
        let value = read(&entry.unwrap().path());
        let template = PromptTemplate::read(&value, "#").unwrap_or_else(|problems| panic!("{value}: {problems:?}"));
        published.check("prompt-template", &serde_json::to_value(template).unwrap());
    }
}
