//! What people and programs say about runs: kept beside the log, told to whoever follows, taken along and dropped with
//! the run. What discovery claims as `feedback` fails here when it is gone.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use baton_model::{MAX_ANNOTATION_BYTES, MAX_ANNOTATIONS, RunId};
use baton_runtime::{Clock as _, Host, SystemClock};
use baton_store::{AnnotationRow, Cluster, Commit, Journal as _, MemoryStore, Write};
use serde_json::{Value, json};
use support::{Answer, OPERATOR, OTHER, READER, Site, host_options};

async fn site() -> (Site, String) {
    let site = Site::open().await;
    site.register("w", "core.noop", json!({})).await;
    let run = site.completed("w").await;
    (site, run)
}

async fn say(site: &Site, run: &str, body: Value) -> Answer {
    site.post(&format!("/v1/runs/{run}/annotations"), body).await
}

async fn said(site: &Site, run: &str) -> Vec<Value> {
    let answer = site.get(&format!("/v1/runs/{run}/annotations")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["annotations"].as_array().unwrap().clone()
}

#[tokio::test]
async fn what_is_said_about_an_ended_run_is_listed_in_order() {
    let (site, run) = site().await;
    let claims = site.send("GET", "/.well-known/openwop", &[], Body::empty()).await.json();
    let log = site.log(&run).await;
    let mut made = Vec::new();
    for kind in claims["feedback"]["signals"].as_array().unwrap() {
        let mut signal = json!({"kind": kind});
        match kind.as_str().unwrap() {
            "rating" => signal["rating"] = json!(5),
            "label" => signal["label"] = json!("gold"),
            "correction" => signal["correction"] = json!("forty-two"),
            _ => {}
        }
        for target in claims["feedback"]["targets"].as_array().unwrap() {
            let target = match target.as_str().unwrap() {
                "event" => json!({"eventId": log[1]["eventId"]}),
                "node" => json!({"nodeId": "n"}),
                _ => json!({}),
            };
            let answer = say(&site, &run, json!({"signal": signal, "target": target, "note": "so it is"})).await;
            assert_eq!(answer.status, 201, "{}", answer.text);
            let annotation = answer.json();
            let mut expected = target.clone();
            expected["runId"] = json!(run);
            assert_eq!((&annotation["target"], &annotation["signal"]), (&expected, &signal));
            assert!(annotation["actor"]["principalRef"].as_str().unwrap().starts_with("key_"));
            support::protocol::judge("annotation", &annotation);
            made.push(annotation);
        }
    }
    assert_eq!((made.len(), said(&site, &run).await), (12, made.clone()));
    // Page by page it is the same.
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = site.get(&format!("/v1/runs/{run}/annotations?limit=5{after}")).await.json();
        paged.extend(page["annotations"].as_array().unwrap().clone());
        let Some(next) = page["nextAfter"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(paged, made);
    assert_eq!(site.log(&run).await, log, "the log is what it was");
}

#[tokio::test]
async fn secrets_and_what_looks_like_one_are_taken_out_before_anything_is_stored() {
    let (site, run) = site().await;
    let canary = ["sk-", "canary-rfc0056-do-not-leak-abc123"].concat();
    let body = json!({"signal": {"kind": "correction", "correction": format!("use {canary}")}, "note": canary});
    assert_eq!(say(&site, &run, body).await.status, 201);
    let body = json!({"signal": {"kind": "label", "label": canary}});
    assert_eq!(say(&site, &run, body).await.status, 201);
    let listed = said(&site, &run).await;
    assert_eq!(listed[0]["signal"]["correction"], "use [REDACTED:pattern]");
    assert_eq!(
        (&listed[0]["note"], &listed[1]["signal"]["label"]),
        (&json!("[REDACTED:pattern]"), &json!("[REDACTED:pattern]"))
    );
    let stored = site.host.export(&baton_model::TenantId::new("acme"), &RunId::new(&run)).await;
    let mut file = stored.unwrap();
    while let Some(page) = file.next().await.unwrap() {
        assert!(!String::from_utf8_lossy(&page).contains(&canary), "it is not in the store either");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_refused_with_its_place() {
    let (site, run) = site().await;
    let long = "x".repeat(MAX_ANNOTATION_BYTES + 1);
    for (body, pointer) in [
        (json!({"signal": {"kind": "rating"}}), "/signal/rating"),
        (json!({"signal": {"kind": "rating", "rating": 6}}), "/signal/rating"),
        (json!({"signal": {"kind": "label", "label": "x".repeat(257)}}), "/signal/label"),
        (json!({"signal": {"kind": "correction", "correction": long}}), "/signal/correction"),
        (json!({"signal": {"kind": "flag"}, "note": long}), "/note"),
        (json!({"signal": {"kind": "flag"}, "target": {"eventId": format!("{run}.99")}}), "/target/eventId"),
        (json!({"signal": {"kind": "flag"}, "target": {"eventId": "run_other.0"}}), "/target/eventId"),
        (json!({"signal": {"kind": "flag"}, "target": {"nodeId": "m"}}), "/target/nodeId"),
    ] {
        assert_eq!(say(&site, &run, body.clone()).await.refused(400, "validation_error")["pointer"], pointer, "{body}");
    }
    for body in [
        json!({}),
        json!({"signal": {"kind": "praise"}}),
        json!({"signal": {"kind": "flag"}, "actor": {"principalRef": "boss"}}),
        json!({"signal": {"kind": "flag"}, "target": {"runId": run}}),
        json!({"signal": {"kind": "flag", "stars": 3}}),
    ] {
        say(&site, &run, body).await.refused(400, "validation_error");
    }
    let flag = json!({"signal": {"kind": "flag"}}).to_string();
    let path = format!("/v1/runs/{run}/annotations");
    let details = site.send("POST", &path, &[READER], flag.clone()).await.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:annotate");
    site.send("POST", &path, &[OTHER], flag.clone()).await.refused(404, "run_not_found");
    site.send("GET", &path, &[OTHER], Body::empty()).await.refused(404, "run_not_found");
    say(&site, "run_unknown", json!({"signal": {"kind": "flag"}})).await.refused(404, "run_not_found");
    assert_eq!(said(&site, &run).await, [json!(null); 0], "nothing of that was kept");
    assert_eq!(site.send("GET", &path, &[READER], Body::empty()).await.status, 200, "whoever may read, may read this");
}

#[tokio::test]
async fn the_same_request_twice_says_it_once() {
    let (site, run) = site().await;
    let path = format!("/v1/runs/{run}/annotations");
    let body = json!({"signal": {"kind": "rating", "rating": 1}});
    let first = site.keyed("k", &path, body.clone()).await;
    let again = site.keyed("k", &path, body).await;
    assert_eq!((first.status.as_u16(), &first.text), (201, &again.text));
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(said(&site, &run).await.len(), 1);
}

#[tokio::test]
async fn there_is_a_bound_on_what_is_said_about_a_run() {
    let store = Arc::new(MemoryStore::new());
    let site = Site::on(&store).await;
    site.register("w", "core.noop", json!({})).await;
    let (run, other) = (site.completed("w").await, site.completed("w").await);
    let row = |n: u64| {
        let id = format!("ann_{n:032x}");
        Write::Annotate(AnnotationRow {
            run: RunId::new(&run),
            id,
            at: baton_model::Timestamp::default(),
            body: "{}".to_owned(),
        })
    };
    store.submit(Commit::new(store.generation(), (1..MAX_ANNOTATIONS).map(row).collect())).await.unwrap();
    let flag = || json!({"signal": {"kind": "flag"}});
    assert_eq!(say(&site, &run, flag()).await.status, 201, "the last one");
    let details = say(&site, &run, flag()).await.refused(429, "rate_limited");
    assert_eq!(details["limit"], MAX_ANNOTATIONS);
    assert_eq!(say(&site, &other, flag()).await.status, 201, "another run has room");
}

/// Not an event: whoever follows hears of it, the log and its readers' places stay as they were.
#[tokio::test]
async fn followers_are_told_and_resume_where_they_were() {
    let site = Site::open().await;
    site.register("gate", "core.approvalGate", json!({"title": "ok?"})).await;
    let (run, other) = (site.start("gate").await, site.start("gate").await);
    site.reach(&run, "waiting-approval").await;
    let log = site.log(&run).await;
    let last = log.len() as u64 - 1;
    for (mode, told) in [("updates", true), ("debug", true), ("messages", false)] {
        let path = format!("/v1/runs/{run}/events?streamMode={mode}");
        let mut texts = site.texts(&path, &[("last-event-id", &last.to_string())]).await;
        assert_eq!(texts.next().await.as_deref(), Some(":open\n\n"));
        assert_eq!(say(&site, &other, json!({"signal": {"kind": "flag"}, "note": "elsewhere"})).await.status, 201);
        let made = say(&site, &run, json!({"signal": {"kind": "rating", "rating": 2}})).await.json();
        if told {
            let text = texts.next().await.unwrap();
            assert!(text.starts_with("event: run.annotated\ndata: {"), "{text}");
            let event: Value = serde_json::from_str(text.split_once("data: ").unwrap().1).unwrap();
            assert_eq!((&event["payload"], &event["runId"], &event["sequence"]), (&made, &json!(run), &json!(last)));
        }
    }
    assert_eq!(site.log(&run).await, log);
    let answer = site.post(&format!("/v1/runs/{run}/interrupts/n"), json!({"resumeValue": {"action": "accept"}})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    site.reach(&run, "completed").await;
    assert!(!site.log(&run).await.iter().any(|event| event["type"] == "run.annotated"));
}

#[tokio::test]
async fn forks_begin_without_and_prunings_take_it_away() {
    let (site, run) = site().await;
    assert_eq!(say(&site, &run, json!({"signal": {"kind": "flag"}})).await.status, 201);
    for mode in ["replay", "branch"] {
        let fork = site.forked(&run, json!({"mode": mode, "fromSeq": 0}), "completed").await;
        assert_eq!(said(&site, &fork).await.len(), 0, "{mode}");
        site.post(&format!("/v1/runs/{fork}:prune"), json!({"log": true})).await;
    }
    assert_eq!(said(&site, &run).await.len(), 1, "the source has its own");
    site.post(&format!("/v1/runs/{run}:prune"), json!({})).await;
    assert_eq!(said(&site, &run).await.len(), 1, "its log is there");
    let pruned = site.post(&format!("/v1/runs/{run}:prune"), json!({"log": true})).await;
    assert_eq!(pruned.status, 200, "{}", pruned.text);
    assert_eq!(said(&site, &run).await.len(), 0);
    say(&site, &run, json!({"signal": {"kind": "flag"}})).await.refused(410, "run_pruned");
}

#[tokio::test]
async fn it_goes_along_with_an_exported_run_and_is_judged_on_the_way_in() {
    let (site, run) = site().await;
    let export = format!("/v1/host/baton/runs/{run}/export");
    let note = json!({"signal": {"kind": "label", "label": "gold"}, "note": "keep"});
    let made = say(&site, &run, note).await.json();
    let file = site.get(&export).await.text;
    assert!(file.starts_with("{\"header\":{") && file.contains("\"version\":4"), "{file}");

    let other = Site::open().await;
    let import = |text: String| other.send("POST", "/v1/host/baton/runs/import", &[OPERATOR], text);
    let taken = import(file.clone()).await;
    assert_eq!((taken.status.as_u16(), &taken.json()["annotations"]), (201, &json!(1)), "{}", taken.text);
    assert_eq!(said(&other, &run).await, [made]);
    assert_eq!(import(file.clone()).await.json()["alreadyHere"], true);
    assert_eq!(said(&other, &run).await.len(), 1);
}

/// On one store, whichever host is asked.
#[tokio::test]
async fn hosts_on_one_store_tell_each_other() {
    let cluster = Cluster::new(Duration::from_secs(60), || SystemClock.now());
    let mut sites = Vec::new();
    for name in ["one", "two"] {
        let host = Host::open(Arc::new(cluster.join(name)), host_options()).await.unwrap();
        sites.push(Site::over(host, |_| {}));
    }
    let [one, two] = &sites[..] else { panic!("two hosts") };
    one.register("gate", "core.approvalGate", json!({"title": "ok?"})).await;
    let run = one.start("gate").await;
    one.reach(&run, "waiting-approval").await;
    let last = (one.log(&run).await.len() - 1).to_string();
    let mut texts = Vec::new();
    for site in [one, two] {
        let mut text = site.texts(&format!("/v1/runs/{run}/events"), &[("last-event-id", &last)]).await;
        assert_eq!(text.next().await.as_deref(), Some(":open\n\n"));
        texts.push(text);
    }
    let made = say(two, &run, json!({"signal": {"kind": "flag"}})).await;
    assert_eq!(made.status, 201, "{}", made.text);
    for mut text in texts {
        assert!(text.next().await.unwrap().contains("run.annotated"));
    }
    assert_eq!(said(one, &run).await, said(two, &run).await);
}
