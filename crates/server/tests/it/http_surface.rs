//! What every path has in common: credentials, envelopes, limits, documents.

use crate::support;

use axum::body::Body;
use serde_json::json;
use support::{FULL, JSON, OTHER, READER, Site};

#[tokio::test]
async fn credentials_are_asked_for_before_anything_else() {
    let site = Site::open().await;
    let paths = [
        ("POST", "/v1/runs"),
        ("GET", "/v1/runs"),
        ("GET", "/v1/runs/run_unknown"),
        ("GET", "/v1/runs/run_unknown/events"),
        ("GET", "/v1/runs/run_unknown/events/poll"),
        ("GET", "/v1/runs/run_unknown/artifacts/a"),
        ("POST", "/v1/runs/run_unknown/cancel"),
        ("POST", "/v1/runs/run_unknown:pause"),
        ("POST", "/v1/runs/run_unknown:fork"),
        ("POST", "/v1/runs/run_unknown:prune"),
        ("GET", "/v1/host/baton/runs/run_unknown/state"),
        ("GET", "/v1/host/workspace/files"),
        ("GET", "/v1/host/workspace/files/a"),
        ("PUT", "/v1/host/workspace/files/a"),
        ("DELETE", "/v1/host/workspace/files/a"),
        ("GET", "/v1/host/baton/workspace/changes"),
        ("GET", "/v1/host/baton/memory"),
        ("GET", "/v1/host/baton/memory/s"),
        ("POST", "/v1/host/baton/memory/s"),
        ("GET", "/v1/host/baton/memory/s/m"),
        ("DELETE", "/v1/host/baton/memory/s/m"),
        ("POST", "/v1/runs:bulk-cancel"),
        ("POST", "/v1/runs/run_unknown/interrupts/n"),
        ("GET", "/v1/interrupts"),
        ("GET", "/v1/workflows/w"),
        ("POST", "/v1/workflows"),
        ("POST", "/v1/webhooks"),
        ("DELETE", "/v1/webhooks/w"),
    ];
    for (method, path) in paths {
        for headers in [&[][..], &[("authorization", "Bearer bogus")][..]] {
            let answer = site.send(method, path, headers, Body::empty()).await;
            answer.refused(401, "unauthenticated");
            assert_eq!(answer.header("www-authenticate"), "Bearer", "{method} {path}");
            assert!(!answer.text.contains("bogus"));
        }
    }
}

#[tokio::test]
async fn another_version_of_the_protocol_is_refused_before_anything_is_done() {
    let site = Site::open().await;
    site.register("w", "core.noop", json!({})).await;
    let run = json!({"workflowId": "w"}).to_string();
    for version in ["2.0", "2", "3.1", "x"] {
        for path in ["/.well-known/openwop", "/v1/runs", "/health"] {
            let answer = site.send("GET", path, &[FULL, ("openwop-version", version)], Body::empty()).await;
            assert_eq!(answer.refused(406, "protocol_version_unsupported")["protocolVersions"], json!(["1.0"]));
        }
        site.send("POST", "/v1/runs", &[FULL, ("openwop-version", version)], run.clone())
            .await
            .refused(406, "protocol_version_unsupported");
    }
    assert_eq!(site.get("/v1/runs").await.json()["runs"], json!([]), "nothing was started");
    for version in ["1", "1.0", "1.7"] {
        let answer = site.send("POST", "/v1/runs", &[FULL, ("openwop-version", version)], run.clone()).await;
        assert_eq!((answer.status.as_u16(), answer.header("openwop-version")), (201, "1.0"));
    }
    assert_eq!(site.get("/v1/nothing").await.header("openwop-version"), "1.0");
}

/// Whoever shows a key is told what the key opens, and nothing more; without one, everything that there is.
#[tokio::test]
async fn a_key_is_told_of_what_it_opens() {
    let site = Site::open().await;
    let view = async |headers: &[(&str, &str)]| site.send("GET", "/.well-known/openwop", headers, Body::empty()).await;
    let families = |answer: &support::Answer| {
        let root = answer.json();
        let mut names: Vec<String> = root.as_object().unwrap().keys().cloned().collect();
        names.sort();
        (names, root["capabilities"].as_object().unwrap().len())
    };
    let public = view(&[]).await;
    assert_eq!(public.json()["discovery"]["authScoped"], json!({"supported": true, "mode": "same-endpoint"}));
    for same in [view(&[FULL]).await, view(&[("authorization", "Bearer bogus")]).await] {
        assert_eq!((same.status.as_u16(), same.text == public.text), (200, true), "all scopes, or no key we know");
    }
    let narrow = view(&[READER]).await;
    let (names, mirrored) = families(&narrow);
    let (all, everything) = families(&public);
    assert!(names.iter().all(|name| all.contains(name)) && mirrored < everything);
    for gone in ["webhooks", "memory", "workspace", "feedback", "replay"] {
        assert!(!names.iter().any(|name| name == gone) && narrow.json()["capabilities"].get(gone).is_none(), "{gone}");
    }
    for kept in ["protocolVersion", "supportedEnvelopes", "schemaVersions", "limits", "debugBundle"] {
        assert!(names.iter().any(|name| name == kept), "{kept}");
    }
    assert!(narrow.header("cache-control").starts_with("private") && narrow.header("vary") == "Authorization");
    assert_ne!(narrow.header("etag"), public.header("etag"));
    let again = view(&[READER, ("if-none-match", narrow.header("etag"))]).await;
    assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    assert_eq!(view(&[READER, ("if-none-match", public.header("etag"))]).await.status, 200);
}

#[tokio::test]
async fn a_missing_scope_is_named() {
    let site = Site::open().await;
    let details = site.send("POST", "/v1/runs", &[READER], "{}").await.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:create");
    let details = site.send("POST", "/v1/runs/x:pause", &[READER], "").await.refused(403, "forbidden");
    assert_eq!(details["scopeRequired"], "runs:cancel");
    site.send("GET", "/v1/runs/x/artifacts/a", &[READER], "").await.refused(403, "forbidden");
    site.send("GET", "/v1/runs/x", &[READER], "").await.refused(404, "run_not_found");
}

#[tokio::test]
async fn a_foreign_run_looks_exactly_like_an_unknown_one() {
    let site = Site::open().await;
    site.register("noop", "core.noop", json!({})).await;
    let run = site.start("noop").await;
    for path in [format!("/v1/runs/{run}"), format!("/v1/runs/{run}/events"), format!("/v1/runs/{run}/events/poll")] {
        let foreign = site.send("GET", &path, &[OTHER, JSON], Body::empty()).await;
        let unknown = site.send("GET", &path.replace(&run, "run_nobody"), &[OTHER, JSON], Body::empty()).await;
        foreign.refused(404, "run_not_found");
        assert_eq!(foreign.text, unknown.text, "{path}");
    }
    assert_eq!(site.send("GET", "/v1/runs", &[OTHER], Body::empty()).await.json()["runs"], json!([]));
}

#[tokio::test]
async fn whatever_is_not_there_answers_in_the_envelope() {
    let site = Site::open().await;
    site.get("/v1/nothing").await.refused(404, "not_found");
    site.get("/").await.refused(404, "not_found");
    site.get("/runs").await.refused(400, "validation_error");
    site.get("/v1/runs/x:rewind?against=y").await.refused(404, "not_found");
    let answer = site.post("/v1/runs/x:diff?against=y", json!({})).await;
    answer.refused(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "GET, HEAD");
    site.get("/v1/runs/%FF").await.refused(400, "validation_error");
    site.post("/v1/runs/x:explode", json!({})).await.refused(404, "not_found");
    site.get("/v1/runs/x:prune").await.refused(405, "method_not_allowed");
    site.get("/v1/runs/x/artifacts/a").await.refused(404, "not_found");
    site.get("/v1/host/sample/test/runs/x/events").await.refused(404, "not_found");
    let answer = site.send("PUT", "/v1/runs", &[FULL], Body::empty()).await;
    answer.refused(405, "method_not_allowed");
    assert!(answer.header("allow").contains("GET") && answer.header("allow").contains("POST"));
    let answer = site.get("/v1/runs/x:pause").await;
    answer.refused(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "POST");
    let answer = site.post("/v1/runs/x", json!({})).await;
    answer.refused(405, "method_not_allowed");
    assert_eq!(answer.header("allow"), "GET, HEAD");
}

/// Behind the colon is part of one segment, encoded or not, and is judged only for whoever has a key.
#[tokio::test]
async fn verbs_are_found_behind_the_last_colon() {
    let site = Site::open().await;
    site.register("noop", "core.noop", json!({})).await;
    let run = site.start("noop").await;
    for colon in [":", "%3A"] {
        let path = format!("/v1/runs/{run}{colon}diff?against={run}");
        assert_eq!(site.get(&path).await.json()["eventDiffs"], json!([]), "{path}");
        site.post(&format!("/v1/runs/x{colon}pause"), json!({})).await.refused(404, "run_not_found");
    }
    for (method, path) in [("POST", "/v1/runs/x:explode"), ("GET", "/v1/runs/x:pause"), ("POST", "/v1/runs/x")] {
        site.send(method, path, &[], Body::empty()).await.refused(401, "unauthenticated");
    }
    for path in ["/v1/runs/x", "/v1/runs/x:pause"] {
        let answer = site.send("PUT", path, &[FULL], Body::empty()).await;
        answer.refused(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), "GET,HEAD,POST", "{path}");
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused_with_their_place() {
    let site = Site::open().await;
    site.send("POST", "/v1/runs", &[FULL], "{").await.refused(400, "validation_error");
    site.send("POST", "/v1/runs", &[FULL], "").await.refused(400, "validation_error");
    site.send("POST", "/v1/runs", &[FULL], "[".repeat(50_000)).await.refused(400, "validation_error");
    site.send("POST", "/v1/runs", &[FULL], vec![0xff_u8; 10]).await.refused(400, "validation_error");
    let details = site.send("POST", "/v1/runs", &[FULL], "x".repeat(70_000)).await.refused(413, "payload_too_large");
    assert_eq!(details["maxBytes"], 65_536);
    let details = site.post("/v1/runs", json!({"workflowId": "w", "input": {}})).await.refused(400, "validation_error");
    assert_eq!(details["pointer"], "/input");
    site.post("/v1/runs", json!({"workflowId": "nobody"})).await.refused(404, "workflow_not_found");
}

#[tokio::test]
async fn documents_are_public_and_revalidate() {
    let site = Site::open().await;
    for path in ["/.well-known/openwop", "/v1/openapi.json"] {
        let first = site.send("GET", path, &[], Body::empty()).await;
        assert_eq!((first.status.as_u16(), first.header("content-type")), (200, "application/json"));
        assert!(first.header("cache-control").contains("max-age"));
        let again = site.send("GET", path, &[("if-none-match", first.header("etag"))], Body::empty()).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
        assert_eq!(again.header("etag"), first.header("etag"));
    }
    assert_eq!(site.send("GET", "/health", &[], Body::empty()).await.status, 200);
    assert_eq!(site.send("GET", "/readiness", &[], Body::empty()).await.status, 200);
    site.get("/v1/runs").await;
    let metrics = site.send("GET", "/metrics", &[], Body::empty()).await;
    assert!(metrics.text.contains("baton_http_requests_total"), "{}", metrics.text);
    site.shutdown.cancel();
    site.send("GET", "/readiness", &[], Body::empty()).await.refused(503, "service_unavailable");
    assert_eq!(site.send("GET", "/health", &[], Body::empty()).await.status, 200);
}

#[tokio::test]
async fn a_key_over_its_rate_is_told_when_to_come_back_before_its_scopes_are_judged() {
    let site = Site::with(|options| options.rate_limit_per_second = Some(1)).await;
    site.send("GET", "/v1/runs", &[READER], Body::empty()).await;
    let answer = site.send("POST", "/v1/runs", &[READER], Body::empty()).await;
    let details = answer.refused(429, "rate_limited");
    assert!(details["retryAfterMs"].as_u64().unwrap() <= 1000 && details["scope"] == "key");
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(site.get("/v1/runs").await.status, 200, "another key has its own bucket");
}

#[tokio::test]
async fn at_capacity_only_discovery_and_health_answer() {
    let site = Site::with(|options| options.inflight_cap = 1).await;
    site.register("slow", "core.delay", json!({"ms": 60_000})).await;
    let run = site.start("slow").await;
    let stream = site.stream(&format!("/v1/runs/{run}/events"), &[]).await;
    let answer = site.get("/v1/runs").await;
    let details = answer.refused(503, "service_unavailable");
    assert_eq!(answer.header("retry-after"), details["retryAfter"].to_string());
    for path in ["/.well-known/openwop", "/health", "/readiness"] {
        assert_eq!(site.get(path).await.status, 200, "{path}");
    }
    drop(stream);
    assert_eq!(site.get("/v1/runs").await.status, 200, "a closed stream gives its place back");
}

/// Every envelope that is advertised has its schema where the protocol looks for it, and it is the one that counts.
#[tokio::test]
async fn envelopes_have_their_schemas() {
    let site = Site::open().await;
    let anybody = async |path: &str| site.send("GET", path, &[], Body::empty()).await;
    let kinds = anybody("/.well-known/openwop").await.json()["supportedEnvelopes"].clone();
    let kinds: Vec<&str> = kinds.as_array().unwrap().iter().filter_map(|kind| kind.as_str()).collect();
    assert_eq!(kinds.len(), 4);
    for kind in &kinds {
        let answer = anybody(&format!("/schemas/envelopes/{kind}.schema.json")).await;
        assert_eq!(answer.status, 200, "{kind}: {}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/schema+json");
        assert_eq!(answer.headers["cache-control"], "public, max-age=300");
        let schema = answer.json();
        assert_eq!(&schema, baton_runtime::acceptor::Kinds::shared().schema(kind).unwrap());
        let schema = jsonschema::draft202012::new(&schema).unwrap();
        assert!(!schema.is_valid(&json!({"no": "such member"})), "{kind} is closed");
        let etag = answer.headers["etag"].to_str().unwrap().to_owned();
        let path = format!("/schemas/envelopes/{kind}.schema.json");
        let again = site.send("GET", &path, &[("if-none-match", &etag)], Body::empty()).await;
        assert_eq!((again.status.as_u16(), again.text.as_str()), (304, ""));
    }
    for strange in ["error", "error.json", "nothing.schema.json", "..%2Ferror.schema.json", ".schema.json"] {
        anybody(&format!("/schemas/envelopes/{strange}")).await.refused(404, "not_found");
    }
}
