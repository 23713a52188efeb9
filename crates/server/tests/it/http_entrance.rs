//! The door of a host that is not open yet.

use crate::support;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use baton_runtime::Host;
use baton_server::{Entrance, Keys, ServerOptions};
use baton_store::MemoryStore;
use serde_json::{Value, json};
use support::host_options;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

async fn ask(entrance: &Entrance, path: &str) -> (u16, Option<String>, String) {
    let request = Request::get(path).header("authorization", "Bearer full").body(Body::empty()).unwrap();
    let response = entrance.clone().oneshot(request).await.unwrap();
    let again = response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1_000_000).await.unwrap();
    (status, again, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn health_answers_before_the_host_is_open_and_readiness_says_what_it_waits_for() {
    let entrance = Entrance::new(CancellationToken::new());
    for doing in ["opening the store", "registering workflows, 17 of 10000 in flows"] {
        entrance.doing(doing);
        assert_eq!(ask(&entrance, "/health").await.0, 200);
        assert_eq!(ask(&entrance, "/metrics").await.0, 200);
        for path in ["/readiness", "/v1/runs", "/nowhere"] {
            let (status, again, body) = ask(&entrance, path).await;
            assert_eq!((status, again.as_deref()), (503, Some("1")), "{body}");
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["error"], "service_unavailable");
            assert!(body["message"].as_str().unwrap().contains(&format!("it is {doing}.")), "{body}");
        }
    }
    // A request that came before is refused; the next one on any clone is let in.
    let host = Host::open(Arc::new(MemoryStore::new()), host_options()).await.unwrap();
    let options = ServerOptions { keys: Keys::parse("full:acme").unwrap(), ..ServerOptions::default() };
    entrance.clone().open(host, options);
    assert_eq!(ask(&entrance, "/health").await.0, 200);
    assert_eq!(ask(&entrance, "/readiness").await, (200, None, json!({"status": "ready"}).to_string()));
    assert_eq!(ask(&entrance, "/v1/runs").await.0, 200);
}
