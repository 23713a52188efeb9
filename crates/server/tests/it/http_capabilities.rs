//! What discovery says about memory and workspace is what the host does: one check per flag, each of which fails when
//! the behaviour is taken away.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::Site;

const MEMORY: &str = "/v1/host/baton/memory/s";

async fn claims(site: &Site) -> Value {
    site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json()
}

fn file(path: &str) -> String {
    format!("/v1/host/workspace/files/{path}")
}

#[tokio::test]
async fn both_families_stand_at_the_root_and_in_the_mirror() {
    let claims = claims(&Site::open().await).await;
    for family in ["memory", "workspace"] {
        assert_eq!(claims[family]["supported"], true);
        assert_eq!(claims["capabilities"][family], claims[family]);
    }
}

#[tokio::test]
async fn an_entry_of_the_advertised_size_fits_and_a_larger_one_does_not() {
    let site = Site::configured(|options| options.limits.max_memory_entry_bytes = 5000).await;
    let most = usize::try_from(claims(&site).await["memory"]["maxEntrySizeBytes"].as_u64().unwrap()).unwrap();
    assert_eq!(site.post(MEMORY, json!({"content": "x".repeat(most)})).await.status, 201);
    site.post(MEMORY, json!({"content": "x".repeat(most + 1)})).await.refused(400, "validation_error");
}

#[tokio::test]
async fn entries_expire_and_can_be_forgotten() {
    let site = Site::open().await;
    let memory = claims(&site).await["memory"].clone();
    assert_eq!((&memory["ttlSupported"], &memory["retention"]), (&json!(true), &json!({"ttl": true, "forget": true})));
    let entry = site.post(MEMORY, json!({"content": "x", "ttlSeconds": 3600})).await.json();
    assert!(entry["expiresAt"].as_str().unwrap() > entry["createdAt"].as_str().unwrap());
    let path = format!("{MEMORY}/{}", entry["id"].as_str().unwrap());
    assert_eq!(site.delete(&path).await.status, 204);
    site.get(&path).await.refused(404, "not_found");
}

#[tokio::test]
async fn entries_are_found_by_filter_and_by_nothing_else() {
    let site = Site::open().await;
    assert_eq!(claims(&site).await["memory"]["search"], json!({"supported": true, "modes": ["filter"]}));
    site.post(MEMORY, json!({"content": "a", "tags": ["x"]})).await;
    site.post(MEMORY, json!({"content": "b", "tags": ["y"]})).await;
    let found = site.get(&format!("{MEMORY}?tag=x")).await.json();
    assert_eq!((found["entries"].as_array().unwrap().len(), &found["entries"][0]["content"]), (1, &json!("a")));
    site.get(&format!("{MEMORY}?query=a")).await.refused(400, "validation_error");
}

#[tokio::test]
async fn a_write_in_a_run_is_attributed_without_its_content() {
    let site = Site::open().await;
    let memory = claims(&site).await["memory"].clone();
    assert_eq!(memory["attribution"], json!({"supported": true, "emitsWriteEvents": true}));
    site.register("keep", "vendor.baton.memory.put", json!({"content": "the text itself", "tags": ["t"]})).await;
    let run = site.completed("keep").await;
    let log = site.log(&run).await;
    let written: Vec<_> = log.iter().filter(|event| event["type"] == "memory.written").collect();
    assert_eq!(written.len(), 1);
    let payload = &written[0]["payload"];
    let entry = site.get(&format!("/v1/host/baton/memory/{run}/{}", payload["memoryId"].as_str().unwrap())).await;
    assert_eq!(entry.json()["content"], "the text itself");
    assert!(payload["memoryRef"].is_string() && payload["nodeId"] == "n" && !payload.to_string().contains("the text"));
}

#[tokio::test]
async fn what_a_run_remembers_outlives_it() {
    let site = Site::open().await;
    assert_eq!(claims(&site).await["agents"]["memoryBackends"], json!(["long-term"]));
    site.register("keep", "vendor.baton.memory.put", json!({"content": "kept"})).await;
    site.register("read", "vendor.baton.memory.list", json!({"into": "entries"})).await;
    for workflow in ["keep", "read"] {
        let answer = site.post("/v1/runs", json!({"workflowId": workflow, "scopeId": "team"})).await.json();
        let run = answer["runId"].as_str().unwrap().to_owned();
        site.reach(&run, "completed").await;
        if workflow == "read" {
            let seen = site.get(&format!("/v1/runs/{run}")).await.json();
            assert_eq!(seen["variables"]["entries"][0]["content"], "kept");
        }
    }
}

#[tokio::test]
async fn files_have_versions_and_the_advertised_bounds() {
    let site = Site::configured(|options| {
        options.limits.max_workspace_file_bytes = 300;
        options.limits.max_workspace_files = 3;
    })
    .await;
    let workspace = claims(&site).await["workspace"].clone();
    let bytes = usize::try_from(workspace["maxFileBytes"].as_u64().unwrap()).unwrap();
    assert_eq!(workspace["versioned"], true);
    assert_eq!(site.put(&file("f0"), json!({"content": "x".repeat(bytes)})).await.status, 200);
    site.put(&file("f0"), json!({"content": "x".repeat(bytes + 1)})).await.refused(413, "workspace_too_large");
    site.put(&file("f0"), json!({"content": "two"})).await;
    assert_eq!(site.get(&file("f0?version=1")).await.json()["content"].as_str().unwrap().len(), bytes);
    let most = workspace["maxFiles"].as_u64().unwrap();
    for n in 1..most {
        assert_eq!(site.put(&file(&format!("f{n}")), json!({"content": ""})).await.status, 200);
    }
    site.put(&file("one-more"), json!({"content": ""})).await.refused(413, "workspace_too_large");
}

#[tokio::test]
async fn siblings_write_to_one_memory_one_after_the_other() {
    let site = Site::open().await;
    let model = claims(&site).await["multiAgent"]["executionModel"].clone();
    assert_eq!(model["crossChildMemoryConcurrency"], "strict");
    assert_eq!(model["version"], 5);
    site.register("keep", "vendor.baton.memory.put", json!({"content": "from a sibling"})).await;
    let workers = ["keep"; 8];
    let fan_out = json!({
        "rules": [
            {"when": "iteration == 1 && size(memory) == 0", "decide": {"kind": "next-worker", "nextWorkerIds": workers}},
            {"when": "iteration == 2 && size(memory) == 8", "decide": {"kind": "terminate", "reason": "all-seen"}},
        ],
        "otherwise": {"kind": "terminate", "reason": "half-seen"},
    });
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "typeId": kind, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}});
    let nodes = [
        node("s", "core.orchestrator.supervisor", fan_out),
        node("d", "core.dispatch", json!({"fanOutPolicy": "parallel"})),
    ];
    let definition = json!({
        "id": "team", "name": "team", "version": "1", "nodes": nodes, "edges": [], "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
    });
    assert_eq!(site.post("/v1/workflows", definition).await.status, 201);
    let run = site.completed("team").await;
    let log = site.log(&run).await;
    let last = log.iter().rfind(|event| event["type"] == "runOrchestrator.decided").unwrap();
    assert_eq!(last["payload"]["decision"]["reason"], "all-seen", "a turn saw some siblings' writes and not others'");
    let scopes = site.get("/v1/host/baton/memory").await.json();
    assert_eq!(scopes["scopes"][0]["version"], 8, "every write has its own version");
}

#[tokio::test]
async fn every_advertised_mode_of_forking_makes_a_run_and_no_other_does() {
    let site = Site::open().await;
    let replay = claims(&site).await["replay"].clone();
    let suppression = "recorded-outcome";
    assert_eq!(replay, json!({"supported": true, "modes": ["replay", "branch"], "sideEffectSuppression": suppression}));
    site.register("noop", "core.noop", json!({})).await;
    let run = site.completed("noop").await;
    for mode in replay["modes"].as_array().unwrap() {
        site.forked(&run, json!({"mode": mode, "fromSeq": 1}), "completed").await;
    }
    let body = json!({"mode": "rewind", "fromSeq": 1});
    site.post(&format!("/v1/runs/{run}:fork"), body).await.refused(400, "validation_error");
}
