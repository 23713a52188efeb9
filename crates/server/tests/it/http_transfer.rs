//! Runs between two hosts over HTTP: who may, what comes out, and what is refused.

use crate::support;

use axum::body::Body;
use baton_server::Keys;
use serde_json::{Value, json};
use support::{FULL, OPERATOR, OTHER, Site};

const IMPORT: &str = "/v1/host/baton/runs/import";

fn export_path(run: &str) -> String {
    format!("/v1/host/baton/runs/{run}/export")
}

/// A host with a run that has ended.
async fn sample() -> (Site, String) {
    let site = Site::open().await;
    let put = json!({"content": "remembered"});
    site.register_chain("notes", &[("put", "vendor.baton.memory.put", put), ("n", "core.noop", json!({}))]).await;
    let run = site.completed("notes").await;
    (site, run)
}

async fn import(site: &Site, text: impl Into<Body>) -> support::Answer {
    site.send("POST", IMPORT, &[OPERATOR, ("content-type", "application/x-ndjson")], text).await
}

#[tokio::test]
async fn a_run_goes_from_host_to_host() {
    let (site, run) = sample().await;
    let file = site.get(&export_path(&run)).await;
    assert_eq!(file.status, 200, "{}", file.text);
    assert_eq!(file.header("content-type"), "application/x-ndjson");
    assert!(file.header("content-disposition").contains(&run) && file.header("cache-control") == "no-store");
    let there = Site::open().await;
    let taken = import(&there, file.text.clone()).await;
    assert_eq!(taken.status, 201, "{}", taken.text);
    let body = taken.json();
    let records = file.text.lines().filter(|line| line.starts_with("{\"record\"")).count();
    let expected = json!({
        "runId": run, "alreadyHere": false, "newRuns": 1, "runs": 1, "records": records, "definitions": 1,
        "ledgers": 1, "changes": 1, "annotations": 0
    });
    assert_eq!(body, expected);
    for path in [
        format!("/v1/runs/{run}"),
        format!("/v1/runs/{run}/events/poll"),
        format!("/v1/host/baton/runs/{run}/state?at=2"),
        format!("/v1/host/baton/memory/{run}"),
    ] {
        assert_eq!(site.get(&path).await.json(), there.get(&path).await.json(), "{path}");
    }
    let proof = there.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({})).await.json();
    assert_eq!((&proof["equal"], &proof["events"]), (&json!(true), &json!(records)));
    let again = import(&there, file.text).await;
    assert_eq!((again.status.as_u16(), &again.json()["alreadyHere"]), (200, &json!(true)));
}

#[tokio::test]
async fn every_scope_counts() {
    let (site, run) = sample().await;
    let file = site.get(&export_path(&run)).await.text;
    let all = ["runs:create", "workflows:write", "memory:write", "workspace:write", "host:operate"];
    let to_export = ["runs:read", "audit:read", "memory:read", "workspace:read"];
    let mut keys = vec!["full:acme".to_owned(), "other:elsewhere".to_owned()];
    for lacks in to_export {
        let rest: Vec<&str> = to_export.into_iter().filter(|scope| *scope != lacks).collect();
        keys.push(format!("no-{}:acme:{}", lacks.replace(':', "-"), rest.join("+")));
    }
    for (index, _) in all.iter().enumerate() {
        let rest: Vec<&str> = all.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, scope)| *scope).collect();
        keys.push(format!("lacks{index}:acme:{}", rest.join("+")));
    }
    let keys = Keys::parse(&keys.join(",")).unwrap();
    let site = Site::over(site.host, |options| options.keys = keys);
    let export = export_path(&run);
    for lacks in to_export {
        let header = format!("Bearer no-{}", lacks.replace(':', "-"));
        let answer = site.send("GET", &export, &[("authorization", header.as_str())], Body::empty()).await;
        assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], lacks);
    }
    for (index, lacks) in all.iter().enumerate() {
        let header = format!("Bearer lacks{index}");
        let answer = site.send("POST", IMPORT, &[("authorization", header.as_str())], file.clone()).await;
        assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], *lacks);
    }
    site.send("GET", &export, &[], Body::empty()).await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn refusals_say_what_is_wrong() {
    let (site, run) = sample().await;
    let file = site.get(&export_path(&run)).await.text;
    site.get(&export_path("run_nobody")).await.refused(404, "run_not_found");
    let other = ("authorization", "Bearer other");
    site.send("GET", &export_path(&run), &[other], Body::empty()).await.refused(404, "run_not_found");
    let there = Site::open().await;
    let cut: String = file.lines().take(4).map(|line| format!("{line}\n")).collect();
    assert_eq!(import(&there, cut).await.refused(400, "validation_error")["line"], 4);
    assert_eq!(import(&there, "nonsense").await.refused(400, "validation_error")["line"], 1);
    import(&there, "").await.refused(400, "validation_error");
    // Far larger than any other body may be, and far from whole.
    let header = file.lines().next().unwrap().to_owned() + "\n";
    let pieces = std::iter::once(Ok::<_, std::io::Error>(header.into_bytes()))
        .chain((0..40).map(|_| Ok(vec![b'x'; 1024 * 1024])));
    let huge = Body::from_stream(futures_util::stream::iter(pieces));
    let details = import(&there, huge).await.refused(413, "payload_too_large");
    assert_eq!(details["line"], 2);
    let listed: Value = there.get("/v1/runs").await.json();
    assert_eq!(listed["runs"], json!([]), "nothing came of any of it");
    assert_eq!(import(&there, file).await.status, 201);
}

#[tokio::test]
async fn a_run_that_goes_on_stays_here() {
    let site = Site::open().await;
    site.register("gated", "core.approvalGate", json!({"title": "Go on?"})).await;
    let run = site.start("gated").await;
    let answer = site.get(&export_path(&run)).await;
    assert_eq!(answer.refused(409, "run_conflict")["runId"], run.as_str());
    assert!(answer.json()["message"].as_str().unwrap().contains("cancel"));
}

/// Ids of runs are the whole host's. Whoever does not operate it cannot find out with a file which of them are taken.
#[tokio::test]
async fn a_file_is_no_way_to_ask_which_runs_there_are() {
    let (site, run) = sample().await;
    let taken = site.get(&export_path(&run)).await.text;
    let unknown = format!("run_{}", "0".repeat(32));
    let free = taken.replace(&run, &unknown);
    for key in [FULL, OTHER] {
        let answers = [&taken, &free, &"nonsense".to_owned()].map(|file| file.clone());
        let mut told = Vec::new();
        for file in answers {
            let answer = site.send("POST", IMPORT, &[key], file).await;
            assert_eq!(answer.refused(403, "forbidden")["scopeRequired"], "host:operate");
            told.push((answer.status, answer.text));
        }
        assert!(told.iter().all(|answer| *answer == told[0]), "{told:?}");
    }
}
