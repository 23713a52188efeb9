//! Who may see whose memory and files: every path, against every way of reaching for somebody else's.

use crate::support;

use axum::body::Body;
use baton_server::Keys;
use serde_json::{Value, json};
use support::{Answer, Site};

/// What only its owner may ever see.
const OWN: &str = "the-owners-own-words";
const SCOPE: &str = "shared-name";
const FILE: &str = "plans/secret.md";

struct Plot {
    site: Site,
    entry: String,
    run: String,
}

/// Two tenants that use the same names. Only `acme` has written anything.
async fn plot() -> Plot {
    let keys = "owner:acme,stranger:elsewhere,noscope:acme:runs:read+runs:create+manifest:read,\
                memory-only:acme:memory:read+memory:write,files-only:acme:workspace:read+workspace:write,\
                readonly:acme:memory:read+workspace:read+runs:read";
    let site = Site::with(|options| options.keys = Keys::parse(keys).unwrap()).await;
    let put = json!({"path": "by/run.md", "content": OWN});
    let definition = json!({
        "id": "write", "name": "w", "version": "1", "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {},
        "nodes": [{"id": "n", "typeId": "vendor.baton.workspace.put", "name": "n", "position": {"x": 0, "y": 0}, "config": put, "inputs": {}}],
    });
    assert_eq!(ask(&site, "owner", "POST", "/v1/workflows", Some(definition)).await.status, 201);
    let body = json!({"workflowId": "write", "scopeId": SCOPE});
    let run = ask(&site, "owner", "POST", "/v1/runs", Some(body)).await.json()["runId"].as_str().unwrap().to_owned();
    let memory = ask(&site, "owner", "POST", &memory(SCOPE), Some(json!({"content": OWN, "tags": [OWN]}))).await;
    let entry = memory.json()["id"].as_str().unwrap().to_owned();
    ask(&site, "owner", "PUT", &file(FILE), Some(json!({"content": OWN}))).await;
    Plot { site, entry, run }
}

fn memory(scope: &str) -> String {
    format!("/v1/host/baton/memory/{scope}")
}

fn file(path: &str) -> String {
    format!("/v1/host/workspace/files/{path}")
}

async fn ask(site: &Site, key: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
    let header = format!("Bearer {key}");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    site.send(method, path, &[("authorization", &header), ("accept", "application/json")], body).await
}

/// Every way to ask, and what it needs.
fn paths(plot: &Plot) -> Vec<(&'static str, String, Option<Value>, &'static str)> {
    let entry = format!("{}/{}", memory(SCOPE), plot.entry);
    vec![
        ("GET", "/v1/host/baton/memory".to_owned(), None, "memory:read"),
        ("GET", memory(SCOPE), None, "memory:read"),
        ("GET", entry.clone(), None, "memory:read"),
        ("POST", memory(SCOPE), Some(json!({"content": "mine"})), "memory:write"),
        ("DELETE", entry, None, "memory:write"),
        ("GET", "/v1/host/workspace/files".to_owned(), None, "workspace:read"),
        ("GET", file(FILE), None, "workspace:read"),
        ("GET", format!("{}?version=1", file(FILE)), None, "workspace:read"),
        ("GET", "/v1/host/baton/workspace/changes".to_owned(), None, "workspace:read"),
        ("PUT", file(FILE), Some(json!({"content": "mine"})), "workspace:write"),
        ("DELETE", file(FILE), None, "workspace:write"),
        ("GET", format!("/v1/host/baton/runs/{}/state", plot.run), None, "runs:read"),
        ("POST", format!("/v1/runs/{}:prune", plot.run), Some(json!({})), "runs:prune"),
    ]
}

async fn still_there(plot: &Plot) {
    let entry = ask(&plot.site, "owner", "GET", &format!("{}/{}", memory(SCOPE), plot.entry), None).await;
    assert_eq!(entry.json()["content"], OWN);
    let kept = ask(&plot.site, "owner", "GET", &file(FILE), None).await.json();
    assert_eq!((&kept["content"], &kept["version"]), (&json!(OWN), &json!(1)));
    let listed = ask(&plot.site, "owner", "GET", &memory(SCOPE), None).await.json();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_owner_reaches_everything() {
    let plot = plot().await;
    for (method, path, body, _) in paths(&plot) {
        let answer = ask(&plot.site, "owner", method, &path, body).await;
        let ended = method == "POST" && path.ends_with(":prune");
        assert!(answer.status.is_success() || (ended && answer.status == 409), "{method} {path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_stranger_finds_an_empty_world_of_the_same_names() {
    let plot = plot().await;
    for (method, path, body, _) in paths(&plot) {
        let answer = ask(&plot.site, "stranger", method, &path, body).await;
        assert!(!answer.text.contains(OWN), "{method} {path}: {}", answer.text);
        assert!(!answer.text.contains(&plot.entry), "{method} {path}: {}", answer.text);
        match (method, answer.status.as_u16()) {
            // Lists are empty, and writing makes something of one's own.
            ("GET" | "POST" | "PUT", 200 | 201) => {}
            ("DELETE", 204) => assert_eq!(path, file(FILE), "the stranger's own file, written just before"),
            (_, status) => assert_eq!(status, 404, "{method} {path}: {}", answer.text),
        }
    }
    still_there(&plot).await;
    let mine = ask(&plot.site, "stranger", "GET", &memory(SCOPE), None).await.json();
    assert_eq!(mine["entries"][0]["content"], "mine");
}

#[tokio::test]
async fn guessed_ids_look_exactly_like_unknown_ones() {
    let plot = plot().await;
    let pairs = [
        (format!("{}/{}", memory(SCOPE), plot.entry), format!("{}/mem_nobody", memory(SCOPE))),
        (file(FILE), file("no/such.md")),
        (format!("/v1/host/baton/runs/{}/state", plot.run), "/v1/host/baton/runs/run_nobody/state".to_owned()),
    ];
    for (guessed, unknown) in pairs {
        for method in ["GET", "DELETE"] {
            let (guess, nothing) = (
                ask(&plot.site, "stranger", method, &guessed, None).await,
                ask(&plot.site, "stranger", method, &unknown, None).await,
            );
            assert_eq!((guess.status, guess.text), (nothing.status, nothing.text), "{method} {guessed}");
        }
    }
    still_there(&plot).await;
}

#[tokio::test]
async fn forged_scopes_and_handles_lead_nowhere() {
    let plot = plot().await;
    // The tenant cannot be smuggled into a name, however it is spelt.
    let forged = [
        format!("memory:{SCOPE}"),
        format!("acme%2F{SCOPE}"),
        format!("acme:{SCOPE}"),
        format!("acme%00{SCOPE}"),
        format!("..%2Facme%2F{SCOPE}"),
        format!("memory:acme:{SCOPE}"),
        format!("{SCOPE}%2F..%2F{SCOPE}"),
        plot.run.clone(),
    ];
    for scope in &forged {
        let list = ask(&plot.site, "stranger", "GET", &memory(scope), None).await;
        assert_eq!((list.status.as_u16(), list.json()), (200, json!({"entries": []})), "{scope}");
        let path = format!("{}/{}", memory(scope), plot.entry);
        ask(&plot.site, "stranger", "GET", &path, None).await.refused(404, "not_found");
        ask(&plot.site, "stranger", "DELETE", &path, None).await.refused(404, "not_found");
    }
    // Nor can it be named beside the path.
    let tenant = ask(&plot.site, "stranger", "GET", &format!("{}?tenant=acme", memory(SCOPE)), None).await;
    tenant.refused(400, "validation_error");
    let owner = json!({"content": "x", "tenant": "acme"});
    ask(&plot.site, "stranger", "PUT", &file(FILE), Some(owner.clone())).await.refused(400, "validation_error");
    ask(&plot.site, "stranger", "POST", &memory(SCOPE), Some(owner)).await.refused(400, "validation_error");
    for path in ["acme%2Fplans%2Fsecret.md", "acme:plans%2Fsecret.md", "..%2Facme%2Fplans%2Fsecret.md"] {
        let answer = ask(&plot.site, "stranger", "GET", &file(path), None).await;
        assert!([400, 404].contains(&answer.status.as_u16()) && !answer.text.contains(OWN), "{path}");
    }
    let prefix = "/v1/host/workspace/files?prefix=plans";
    assert_eq!(ask(&plot.site, "stranger", "GET", prefix, None).await.json(), json!({"files": []}));
    let changes = "/v1/host/baton/workspace/changes?path=plans/secret.md";
    assert_eq!(ask(&plot.site, "stranger", "GET", changes, None).await.json(), json!({"changes": []}));
    still_there(&plot).await;
}

#[tokio::test]
async fn a_run_of_a_stranger_sees_nothing_of_the_owner() {
    let plot = plot().await;
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "typeId": kind, "name": id, "position": {"x": 0, "y": 0}, "config": config, "inputs": {}});
    let nodes = [
        node("l", "vendor.baton.memory.list", json!({"into": "entries"})),
        node("g", "vendor.baton.memory.get", json!({"id": plot.entry, "into": "entry"})),
        node("d", "vendor.baton.memory.delete", json!({"id": plot.entry})),
        node("f", "vendor.baton.workspace.get", json!({"path": FILE, "into": "file"})),
        node("fl", "vendor.baton.workspace.list", json!({"into": "files"})),
    ];
    let ids = ["l", "g", "d", "f", "fl"];
    let edges: Vec<Value> =
        ids.windows(2).map(|pair| json!({"id": pair[1], "sourceNodeId": pair[0], "targetNodeId": pair[1]})).collect();
    let definition = json!({
        "id": "spy", "name": "spy", "version": "1", "nodes": nodes, "edges": edges, "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
    });
    ask(&plot.site, "stranger", "POST", "/v1/workflows", Some(definition)).await;
    let body = json!({"workflowId": "spy", "scopeId": SCOPE});
    let run = ask(&plot.site, "stranger", "POST", "/v1/runs", Some(body)).await.json();
    let run = run["runId"].as_str().unwrap();
    let poll = format!("/v1/runs/{run}/events/poll?timeout=5");
    let mut page = ask(&plot.site, "stranger", "GET", &poll, None).await.json();
    for _ in 0..20 {
        if page["isComplete"] == true {
            break;
        }
        let next = format!("{poll}&lastSequence={}", page["lastEventSeq"]);
        page = ask(&plot.site, "stranger", "GET", &next, None).await.json();
    }
    assert_eq!(page["runStatus"], "completed");
    let seen = ask(&plot.site, "stranger", "GET", &format!("/v1/runs/{run}"), None).await;
    let variables = seen.json()["variables"].clone();
    assert_eq!(variables, json!({"entries": [], "entry": null, "file": null, "files": []}));
    let log = ask(&plot.site, "stranger", "GET", &format!("/v1/runs/{run}/events"), None).await;
    assert!(!seen.text.contains(OWN) && !log.text.contains(OWN));
    still_there(&plot).await;
}

#[tokio::test]
async fn a_key_without_the_scope_is_refused_before_anything_is_looked_up() {
    let plot = plot().await;
    let granted = |key: &str, scope: &str| match key {
        "noscope" => scope == "runs:read",
        "memory-only" => scope.starts_with("memory:"),
        "files-only" => scope.starts_with("workspace:"),
        _ => scope.ends_with(":read"),
    };
    for key in ["noscope", "memory-only", "files-only", "readonly"] {
        for (method, path, body, scope) in paths(&plot) {
            if granted(key, scope) {
                continue;
            }
            let answer = ask(&plot.site, key, method, &path, body).await;
            assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], scope, "{key} {method} {path}");
            assert!(!answer.text.contains(OWN));
        }
    }
    still_there(&plot).await;
}
