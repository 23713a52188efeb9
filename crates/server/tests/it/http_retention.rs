//! Pruning many runs, and the host's own rules.

use axum::body::Body;
use baton_runtime::{Options, RetentionPolicy, RetentionRule};
use serde_json::{Value, json};

use crate::support::{FULL, OTHER, READER, Site};

const BULK: &str = "/v1/runs:bulk-prune";
const RETENTION: &str = "/v1/host/baton/retention";

async fn site(change: impl FnOnce(&mut Options)) -> Site {
    let site = Site::configured(change).await;
    site.register("plain", "core.noop", json!({})).await;
    site.register("gated", "core.approvalGate", json!({})).await;
    site
}

fn keeping(max_runs: u64, window_ms: u64) -> RetentionPolicy {
    let general = RetentionRule { max_runs: Some(max_runs), ..RetentionRule::default() };
    RetentionPolicy { window_ms, general, ..RetentionPolicy::default() }
}

#[tokio::test]
async fn many_are_pruned_and_each_is_answered_for() {
    let site = site(|_| {}).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(site.completed("plain").await);
    }
    let open = site.start("gated").await;
    site.reach(&open, "waiting-approval").await;
    let asked = json!({"runIds": [runs[0], open, "run_none", runs[1]], "log": true});
    site.send("POST", BULK, &[READER], Body::from(asked.to_string())).await.refused(403, "forbidden");
    let foreign = site.send("POST", BULK, &[OTHER], Body::from(asked.to_string())).await.json();
    let results = foreign["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["error"]["code"] == "run_not_found"), "{foreign}");

    let answer = site.post(BULK, asked.clone()).await.json();
    let of = |run: &str| {
        let results = answer["results"].as_array().unwrap();
        results.iter().find(|result| result["runId"] == run).cloned().unwrap_or_else(|| panic!("{run}: {answer}"))
    };
    for run in &runs[..2] {
        assert_eq!(of(run), json!({"runId": run, "ok": true, "prunedRuns": 1}));
        site.get(&format!("/v1/runs/{run}/events/poll")).await.refused(410, "run_pruned");
    }
    assert_eq!((&of(&open)["ok"], &of(&open)["error"]["code"]), (&json!(false), &json!("run_conflict")));
    assert_eq!(of("run_none")["error"]["code"], "run_not_found");
    assert_eq!(site.post(BULK, asked).await.json()["results"][0]["prunedRuns"], 0, "twice is once");
    assert_eq!(site.get(&format!("/v1/runs/{}", runs[2])).await.status, 200, "the others stay");
}

#[tokio::test]
async fn a_list_that_is_wrong_prunes_nothing() {
    let site = site(|_| {}).await;
    let run = site.completed("plain").await;
    let many = vec!["run_x"; 201];
    for body in [
        json!({}),
        json!({"runIds": []}),
        json!({"runIds": many}),
        json!({"runIds": [run, ""]}),
        json!({"runIds": [run, "x".repeat(129)]}),
        json!({"runIds": [run], "logs": true}),
        json!({"runIds": run}),
        json!([]),
    ] {
        assert_eq!(site.post(BULK, body.clone()).await.status, 400, "{body}");
    }
    assert!(site.get(&format!("/v1/runs/{run}")).await.json()["retention"].is_null());
}

#[tokio::test]
async fn without_rules_nothing_is_due_and_none_are_advertised() {
    let site = site(|_| {}).await;
    site.completed("plain").await;
    let due = site.get(RETENTION).await.json();
    assert_eq!(due, json!({"enabled": false, "windowSeconds": 604_800, "runs": [], "more": false}));
    site.send("GET", RETENTION, &[READER], Body::empty()).await.refused(403, "forbidden");
    assert_eq!(site.get(&format!("{RETENTION}?limit=0")).await.status, 400);
    assert_eq!(site.get(&format!("{RETENTION}?what=1")).await.status, 400);
    let told: Value = site.get("/.well-known/openwop").await.json();
    assert!(told["replay"]["retention"].is_null(), "{told}");
}

#[tokio::test]
async fn what_is_due_is_shown_and_pruned_when_asked() {
    let site = site(|options| options.retention = keeping(1, 0)).await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(site.completed("plain").await);
    }
    let due = site.get(RETENTION).await.json();
    let ids: Vec<&Value> = due["runs"].as_array().unwrap().iter().map(|run| &run["runId"]).collect();
    assert_eq!(ids, [&runs[2], &runs[1], &runs[0]], "newest first, without the one that is kept");
    assert_eq!((&due["runs"][0]["reason"], &due["runs"][0]["workflowId"]), (&json!("count"), &json!("plain")));
    let first = site.get(&format!("{RETENTION}?limit=1")).await.json();
    assert_eq!((first["runs"].as_array().unwrap().len(), &first["more"]), (1, &json!(true)));
    let foreign = site.send("GET", RETENTION, &[OTHER], Body::empty()).await.json();
    assert_eq!(foreign["runs"], json!([]), "of one's own tenant");
    assert_eq!(site.post(BULK, json!({"runIds": ids, "log": true})).await.status, 200);
    assert_eq!(site.get(RETENTION).await.json()["runs"], json!([]));
    site.send("GET", &format!("/v1/runs/{}/events/poll", runs[3]), &[FULL], Body::empty()).await;
}

#[tokio::test]
async fn runs_of_the_last_days_stay_as_advertised() {
    let site = site(|options| options.retention = keeping(0, 3 * 86_400_000)).await;
    site.completed("plain").await;
    let told: Value = site.get("/.well-known/openwop").await.json();
    assert_eq!(told["replay"]["retention"], json!({"windowSeconds": 259_200}), "{told}");
    let due = site.get(RETENTION).await.json();
    assert_eq!((&due["enabled"], &due["runs"]), (&json!(true), &json!([])), "it ended just now");
}
