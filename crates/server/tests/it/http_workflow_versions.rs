//! Earlier versions of a workflow, and judging one without registering it.

use crate::support;

use serde_json::{Value, json};
use support::{FULL, OTHER, READER, Site};

const VALIDATE: &str = "/v1/host/baton/workflows/validate";

fn versions(id: &str) -> String {
    format!("/v1/host/baton/workflows/{id}/versions")
}

#[tokio::test]
async fn every_version_is_listed_and_can_be_read_back() {
    let site = Site::open().await;
    for title in ["one", "two", "three"] {
        site.register("gate", "core.approvalGate", json!({"title": title, "actions": ["accept"]})).await;
    }
    let body = site.get(&versions("gate")).await.json();
    let numbers: Vec<_> = body["versions"].as_array().unwrap().iter().map(|one| one["version"].clone()).collect();
    assert_eq!((&body["workflowId"], numbers), (&json!("gate"), vec![json!(3), json!(2), json!(1)]));
    assert!(body["versions"][2]["digest"].is_string() && body["versions"][2]["registeredAt"].is_string());
    for (number, title) in [(1, "one"), (3, "three")] {
        let answer = site.get(&format!("{}/{number}", versions("gate"))).await;
        assert_eq!(answer.json()["nodes"][0]["config"]["title"], title);
        assert!(!answer.header("etag").is_empty());
    }
    for path in [format!("{}/4", versions("gate")), format!("{}/0", versions("gate")), versions("none")] {
        assert_eq!(site.get(&path).await.status, 404, "{path}");
    }
    site.send("GET", &versions("gate"), &[OTHER], "").await.refused(404, "workflow_not_found");
    site.send("GET", &versions("gate"), &[READER], "").await.refused(403, "forbidden");
}

async fn judged(site: &Site, text: &str) -> Value {
    let answer = site.send("POST", VALIDATE, &[FULL], text.to_owned()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

#[tokio::test]
async fn problems_come_with_their_place_in_the_text_and_nothing_is_registered() {
    let site = Site::open().await;
    let text = r#"{
  "id": "draft", "name": "d", "version": "1",
  "nodes": [
    {"id": "a", "typeId": "core.noop", "name": "a", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}},
    {"id": "b",
     "typeId": "core.nope", "name": "b", "position": {"x": 0, "y": 0}, "config": {}, "inputs": {}}
  ],
  "edges": [], "triggers": [], "variables": [], "metadata": {}, "settings": {}
}"#;
    let bad = judged(&site, text).await;
    assert_eq!(bad["valid"], false);
    let problem = &bad["problems"][0];
    assert_eq!(
        (&problem["pointer"], &problem["line"], &problem["column"]),
        (&json!("/nodes/1/typeId"), &json!(6), &json!(6))
    );
    assert!(problem["message"].is_string() && problem["code"].is_string(), "{problem}");

    let half = judged(&site, "{\n  \"id\": }").await;
    assert_eq!((&half["valid"], &half["problems"][0]["line"]), (&json!(false), &json!(2)), "{half}");

    let good = text.replace("core.nope", "core.noop");
    let fine = judged(&site, &good).await;
    assert_eq!((&fine["valid"], &fine["workflowId"], &fine["current"]), (&json!(true), &json!("draft"), &json!(false)));
    assert_eq!(site.get("/v1/workflows/draft").await.status, 404, "judged, not registered");
    let registered = site.send("POST", "/v1/workflows", &[FULL], good.clone()).await.json();
    assert_eq!(registered["digest"], fine["digest"]);
    assert_eq!(judged(&site, &good).await["current"], true);

    let own = good.replace("\"draft\"", "\"agent:x\"");
    assert_eq!(judged(&site, &own).await["valid"], false, "what cannot be registered is not valid");
    site.send("POST", VALIDATE, &[READER], good).await.refused(403, "forbidden");
}
