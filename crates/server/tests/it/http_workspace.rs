//! Files over HTTP: versions, preconditions, bounds, history.

use crate::support;

use axum::body::Body;
use serde_json::{Value, json};
use support::{Answer, FULL, Site};

const FILES: &str = "/v1/host/workspace/files";

fn file(path: &str) -> String {
    format!("{FILES}/{path}")
}

async fn put_if(site: &Site, path: &str, content: &str, etag: &str) -> Answer {
    let body = json!({"content": content}).to_string();
    site.send("PUT", &file(path), &[FULL, ("if-match", etag)], body).await
}

#[tokio::test]
async fn a_file_is_written_read_listed_and_deleted() {
    let site = Site::open().await;
    let created = site.put(&file("notes%2Fplan.md"), json!({"content": "one"})).await;
    assert_eq!(created.status, 200, "{}", created.text);
    let body = created.json();
    assert_eq!((&body["path"], &body["version"]), (&json!("notes/plan.md"), &json!(1)));
    assert_eq!((&body["content"], &body["contentType"]), (&json!("one"), &json!("text/markdown")));
    let mut members: Vec<_> = body.as_object().unwrap().keys().cloned().collect();
    members.sort();
    assert_eq!(members, ["content", "contentType", "etag", "path", "updatedAt", "version"]);
    assert_eq!(created.header("etag"), format!("\"{}\"", body["etag"].as_str().unwrap()));

    let read = site.get(&file("notes/plan.md")).await;
    assert_eq!((read.json(), read.header("etag")), (body, created.header("etag")));
    let second = site.put(&file("notes/plan.md"), json!({"content": "two", "contentType": "text/plain"})).await.json();
    assert_eq!((&second["version"], &second["contentType"]), (&json!(2), &json!("text/plain")));
    site.put(&file("other"), json!({"content": ""})).await;

    let listed = site.get(FILES).await.json();
    let paths: Vec<_> = listed["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["notes/plan.md", "other"]);
    assert!(
        listed["files"]
            .as_array()
            .unwrap()
            .iter()
            .all(|file| file.get("content").is_none() && file["etag"].is_string())
    );
    let some = site.get(&format!("{FILES}?prefix=notes%2F")).await.json();
    assert_eq!(some["files"].as_array().unwrap().len(), 1);
    assert_eq!(site.get(&format!("{FILES}?prefix=%25")).await.json(), json!({"files": []}), "a prefix is no pattern");

    assert_eq!(site.get(&file("notes/plan.md?version=1")).await.json()["content"], "one");
    assert_eq!(site.get(&file("notes/plan.md?version=2")).await.json()["content"], "two");
    site.get(&file("notes/plan.md?version=3")).await.refused(404, "not_found");
    for bad in ["version=0", "version=-1", "version=x", "version=1&version=2", "verison=1"] {
        site.get(&file(&format!("notes/plan.md?{bad}"))).await.refused(400, "validation_error");
    }

    let gone = site.delete(&file("notes%2Fplan.md")).await;
    assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    site.delete(&file("notes/plan.md")).await.refused(404, "not_found");
    site.get(&file("notes/plan.md")).await.refused(404, "not_found");
    site.get(&file("notes/plan.md?version=1")).await.refused(404, "not_found");
    let again = site.put(&file("notes/plan.md"), json!({"content": "new"})).await.json();
    assert_eq!(again["version"], 1, "a file that is made again starts again");
    site.get(&file("notes/plan.md?version=2")).await.refused(404, "not_found");
}

#[tokio::test]
async fn a_writer_who_saw_something_else_is_told_what_is_there() {
    let site = Site::open().await;
    let details = put_if(&site, "a", "x", "w1").await.refused(409, "workspace_conflict");
    assert_eq!(details["currentVersion"], json!(0), "nothing is there");
    let first = site.put(&file("a"), json!({"content": "1"})).await;
    let etag = first.json()["etag"].as_str().unwrap().to_owned();
    let details = put_if(&site, "a", "x", "\"definitely-stale\"").await.refused(409, "workspace_conflict");
    assert_eq!(details["currentVersion"], json!(1));
    assert_eq!(put_if(&site, "a", "2", &etag).await.json()["version"], 2, "as the body has it");
    let details = put_if(&site, "a", "3", &etag).await.refused(409, "workspace_conflict");
    assert_eq!(details["currentVersion"], json!(2));
    let quoted = site.get(&file("a")).await.header("etag").to_owned();
    assert_eq!(put_if(&site, "a", "3", &quoted).await.json()["version"], 3, "as the header has it");

    let stale = site.send("DELETE", &file("a"), &[FULL, ("if-match", &etag)], Body::empty()).await;
    assert_eq!(stale.refused(409, "workspace_conflict")["currentVersion"], json!(3));
    let etag = site.get(&file("a")).await.json()["etag"].as_str().unwrap().to_owned();
    let gone = site.send("DELETE", &file("a"), &[FULL, ("if-match", &etag)], Body::empty()).await;
    assert_eq!(gone.status, 204);
    site.put(&file("a"), json!({"content": "reborn"})).await;
    put_if(&site, "a", "x", &etag).await.refused(409, "workspace_conflict");
    let twice = [FULL, ("if-match", "a"), ("if-match", "b")];
    site.send("PUT", &file("a"), &twice, r#"{"content":""}"#).await.refused(400, "validation_error");
    assert_eq!(site.get(&file("a")).await.json()["content"], "reborn");
}

#[tokio::test]
async fn what_is_no_path_or_no_file_is_refused() {
    let site = Site::open().await;
    let long = "a".repeat(257);
    let paths = [
        "..",
        "a/..",
        "a/../b",
        "%2e%2e",
        "a%2F..%2Fb",
        "/a",
        "%2Fetc%2Fpasswd",
        "-a",
        "a%20b",
        "a%00b",
        "%FF",
        "%C3%A4",
        &long,
    ];
    for path in paths {
        for method in ["GET", "PUT", "DELETE"] {
            let answer = site.send(method, &file(path), &[FULL], r#"{"content":"x"}"#).await;
            answer.refused(400, "validation_error");
        }
    }
    let bodies = [
        ("", None),
        ("{}", Some("")),
        ("[]", Some("")),
        ("{", None),
        (r#"{"content":1}"#, Some("/content")),
        (r#"{"content":null}"#, Some("/content")),
        (r#"{"content":"x","version":3}"#, Some("/version")),
        (r#"{"content":"x","contentType":""}"#, Some("/contentType")),
        (r#"{"content":"x","contentType":"a\nb"}"#, Some("/contentType")),
    ];
    for (body, pointer) in bodies {
        let details = site.send("PUT", &file("a"), &[FULL], body).await.refused(400, "validation_error");
        if let Some(pointer) = pointer {
            assert_eq!(details["pointer"], pointer, "{body}");
        }
    }
    assert_eq!(site.get(FILES).await.json(), json!({"files": []}), "nothing was written");
    site.get(&format!("{FILES}?prefx=a")).await.refused(400, "validation_error");
    site.send("POST", &file("a"), &[FULL], "{}").await.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn too_large_is_said_of_the_file_and_not_of_the_request() {
    let site = Site::configured(|options| {
        options.limits.max_workspace_file_bytes = 1000;
        options.limits.max_workspace_files = 2;
    })
    .await;
    let put = async |path: &str, content: &str| site.put(&file(path), json!({"content": content})).await;
    // Six bytes of JSON for one of content is the worst there is.
    assert_eq!(put("a", &"\u{1}".repeat(1000)).await.status, 200);
    for size in [1001, 5000, 10_000, 100_000, 3_000_000] {
        let details = put("a", &"x".repeat(size)).await.refused(413, "workspace_too_large");
        assert_eq!((&details["limit"], &details["maxFileBytes"]), (&json!("maxFileBytes"), &json!(1000)), "{size}");
    }
    put("a", &"ä".repeat(501)).await.refused(413, "workspace_too_large");
    assert_eq!(put("a", &"ä".repeat(500)).await.json()["version"], 2, "bytes count, and refusals do not");
    assert_eq!(put("b", "").await.status, 200);
    let details = put("c", "").await.refused(413, "workspace_too_large");
    assert_eq!(details["limit"], "maxFiles");
    assert_eq!(put("b", "again").await.status, 200, "no new file");
    site.delete(&file("a")).await;
    assert_eq!(put("c", "").await.status, 200);
}

#[tokio::test]
async fn a_file_may_be_larger_than_other_requests() {
    let site = Site::open().await;
    let whole = "x".repeat(1024 * 1024);
    assert_eq!(site.put(&file("a"), json!({"content": whole})).await.status, 200);
    site.put(&file("a"), json!({"content": whole + "x"})).await.refused(413, "workspace_too_large");
}

#[tokio::test]
async fn a_write_under_a_key_happens_once() {
    let site = Site::open().await;
    let keyed = [FULL, ("idempotency-key", "k")];
    let body = json!({"content": "x"}).to_string();
    let first = site.send("PUT", &file("a"), &keyed, body.clone()).await;
    let again = site.send("PUT", &file("a"), &keyed, body).await;
    assert_eq!((again.header("openwop-idempotent-replay"), &again.text), ("true", &first.text));
    assert_eq!(site.get(&file("a")).await.json()["version"], 1);
    site.send("PUT", &file("a"), &keyed, r#"{"content":"y"}"#).await.refused(409, "idempotency_key_mismatch");
}

#[tokio::test]
async fn every_change_is_told_newest_first_with_who_made_it() {
    let site = Site::open().await;
    let put = json!({"path": "a", "content": "by a run"});
    site.register("write", "vendor.baton.workspace.put", put).await;
    site.put(&file("a"), json!({"content": "1"})).await;
    let run = site.completed("write").await;
    site.put(&file("b"), json!({"content": "1"})).await;
    site.delete(&file("a")).await;
    let changes = "/v1/host/baton/workspace/changes";
    let all = site.get(changes).await.json();
    let told: Vec<Value> = all["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| json!([c["path"], c["change"], c["version"], c["deleted"], c["runId"]]))
        .collect();
    let expected = [
        json!(["a", 4, null, true, null]),
        json!(["b", 3, 1, false, null]),
        json!(["a", 2, 2, false, run]),
        json!(["a", 1, 1, false, null]),
    ];
    assert_eq!(told, expected);
    assert!(
        all.get("nextBefore").is_none() && all["changes"][1]["etag"].is_string() && all["changes"][0]["at"].is_string()
    );
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = site.get(&format!("{changes}?path=a&limit=2{before}")).await.json();
        seen.extend(page["changes"].as_array().unwrap().iter().map(|c| c["change"].as_u64().unwrap()));
        match page["nextBefore"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    assert_eq!(seen, [4, 2, 1]);
    for bad in ["limit=0", "limit=1001", "before=0", "paht=a"] {
        site.get(&format!("{changes}?{bad}")).await.refused(400, "validation_error");
    }
}
