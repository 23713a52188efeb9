//! Test surfaces show in the discovery document in conformance mode, and in no other.

use std::sync::Arc;

use baton_conformance::Conformance;
use baton_runtime::{Host, Options};
use baton_server::{ServerOptions, discovery_document};
use baton_store::MemoryStore;
use serde_json::{Value, json};

fn document(mode: Option<&Conformance>) -> Value {
    let test_capabilities = mode.map(Conformance::capabilities);
    discovery_document(&ServerOptions { test_capabilities, ..ServerOptions::default() }, &Options::default())
}

#[test]
fn test_surfaces_show_only_in_conformance_mode() {
    let live = document(None);
    assert!(live.get("fixtures").is_none() && live.get("testing").is_none() && live.get("observability").is_none());
    assert_eq!(live["baton"]["conformance"], false);
    let test = document(Some(&Conformance::default()));
    assert_eq!(test["fixtures"], json!([]));
    assert_eq!(test["testing"]["testKeyPrefix"], "hk_test_");
    assert_eq!(test["testing"]["mockProviders"], json!(["stream-text"]));
    assert_eq!(test["testing"]["forceEngineVersionRange"], json!({"min": 1, "max": 1}));
    assert_eq!(test["observability"], json!({"testSeams": {"otelScrape": true}}));
    assert_eq!(test["baton"]["conformance"], true);
    for (name, family) in test["capabilities"].as_object().unwrap() {
        assert_eq!(&test[name], family, "{name}");
    }
    assert!(test["capabilities"].get("testing").is_some());
    assert!(!test.to_string().contains("\"edit\""), "the legacy name of an action");
}

#[tokio::test]
async fn every_test_workflow_is_listed_once_in_order_and_no_other() {
    let options = Options { test_hooks: Conformance::hooks(), ..Options::default() };
    let host = Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let mode = Conformance::of(&host).unwrap();
    let built_in = mode.fixtures();
    assert!(built_in.len() > 50 && built_in.is_sorted(), "{built_in:?}");
    for id in ["openwop-smoke-b", "openwop-smoke-a", "openwop-smoke-b", "mine"] {
        let node = json!({"id": "n", "typeId": "core.noop", "name": "n", "position": {"x": 0, "y": 0},
            "config": {}, "inputs": {}});
        let flow = json!({"id": id, "name": id, "version": "1", "nodes": [node], "edges": [], "triggers": [],
            "variables": [], "metadata": {}, "settings": {}});
        host.register_shared_workflow(flow).await.unwrap();
    }
    let added: Vec<String> = mode.fixtures().into_iter().filter(|id| !built_in.contains(id)).collect();
    assert_eq!(added, ["openwop-smoke-a", "openwop-smoke-b"]);
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_outside_the_mode_has_none_of_it() {
    let host = Host::open(Arc::new(MemoryStore::new()), Options::default()).await.unwrap();
    assert!(Conformance::of(&host).is_err());
    let flow = json!({"id": "anything"});
    let refused = host.register_test_workflow(&"acme".into(), flow).await.unwrap_err();
    assert_eq!(refused.code, "forbidden");
    host.shutdown().await;
}
