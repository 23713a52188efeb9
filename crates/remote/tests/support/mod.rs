//! Whole hosts on loopback: store, runtime and server, each behind its own address.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use baton_client::{Client, RunFilter, StartRun};
use baton_model::event::{ENVELOPE_SCHEMA, schema};
use baton_remote::{HttpRemote, origin};
use baton_runtime::{Host, Options, Remotes};
use baton_server::{Keys, ServerOptions};
use baton_store::MemoryStore;
use baton_testkit::Flow;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Nothing here takes this long; whatever does, hangs.
const PATIENCE: Duration = Duration::from_secs(60);
pub const KEY: &str = "key-of-the-far-host";

pub async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what}: hangs"))
}

/// One host that serves.
pub struct Node {
    pub host: Host,
    pub address: SocketAddr,
    pub client: Client,
    shutdown: CancellationToken,
}

impl Node {
    pub async fn open(host_id: &str, remotes: Remotes) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = Options {
            host_id: host_id.to_owned(),
            remotes,
            link_secrets: vec![vec![7; 32]],
            secrets: vec![baton_model::Secret::new("far", KEY)],
            ..Options::default()
        };
        let host = Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let keys = Keys::parse(&format!("{KEY}:acme,blind:acme:runs:create")).unwrap();
        let server = ServerOptions { keys, ..ServerOptions::default() };
        let shutdown = CancellationToken::new();
        tokio::spawn(baton_server::serve(listener, host.clone(), server, shutdown.clone()));
        let client = Client::new(&format!("http://{address}"), Some(KEY)).unwrap();
        Self { host, address, client, shutdown }
    }

    pub async fn register(&self, flow: Flow) {
        self.client.register_workflow(&flow.build()).await.unwrap();
    }

    pub async fn start(&self, workflow: &str) -> String {
        let run = StartRun { workflow_id: Some(workflow.to_owned()), ..StartRun::default() };
        self.client.start_run(&run, None).await.unwrap().run_id.to_string()
    }

    /// Waits until the run looks like this.
    pub async fn until(&self, run: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let reached = async {
            let mut after = None;
            loop {
                let snapshot = self.client.run_json(run).await.unwrap();
                if wanted(&snapshot) {
                    return snapshot;
                }
                let page = self.client.events(run, after, 1).await.unwrap();
                after = page.events.last().map(|event| event.sequence).or(after);
            }
        };
        in_time("a run", reached).await
    }

    pub async fn ended(&self, run: &str) -> Value {
        self.until(run, |run| ["completed", "failed", "cancelled"].iter().any(|end| run["status"] == *end)).await
    }

    pub async fn runs(&self) -> Vec<String> {
        let runs = self.client.runs(&RunFilter::default()).await.unwrap().runs;
        runs.into_iter().map(|run| run.run_id.to_string()).collect()
    }

    /// The whole log; every event fits its schema.
    pub async fn log(&self, run: &str) -> Vec<Value> {
        let page = self.client.events(run, None, 1).await.unwrap();
        assert!(page.is_complete, "{run} has not ended");
        let log: Vec<Value> = page.events.iter().map(|event| json!(event)).collect();
        for event in &log {
            let envelope: Value = serde_json::from_str(ENVELOPE_SCHEMA).unwrap();
            let kind = event["type"].as_str().unwrap();
            let payload: Value = serde_json::from_str(schema(kind).unwrap()).unwrap();
            assert!(jsonschema::is_valid(&envelope, event), "{event}");
            assert!(jsonschema::is_valid(&payload, &event["payload"]), "{event}");
        }
        log
    }

    pub async fn close(self) {
        self.shutdown.cancel();
        self.host.shutdown().await;
    }
}

/// A host that knows the one behind `far` under the name `far`.
pub async fn near(far: SocketAddr, key: &str) -> Node {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let far = origin(&format!("http://{far}")).unwrap();
    let remote = HttpRemote::new("far", &far, key, None).unwrap();
    Node::open("near.example", Remotes::new("http://near.example", 60_000).with(Arc::new(remote))).await
}

/// Hands `n` to a worker over there, takes `m` back as `n`, and ends.
pub fn team(far: SocketAddr) -> Flow {
    let rules = json!({
        "rules": [{
            "when": "iteration == 1",
            "decide": {"kind": "next-worker", "nextWorkerIds": [format!("http://{far}/workflows/work")]},
        }],
        "otherwise": {"kind": "terminate", "reason": "done"},
    });
    let dispatch = json!({"inputMapping": {"n": "n"}, "outputMapping": {"n": "m"}});
    Flow::chain("team", &[("lead", "core.orchestrator.supervisor", rules), ("dispatch", "core.dispatch", dispatch)])
        .variable("n", "number", json!(4))
}

/// Ten times what it is given.
pub fn work() -> Flow {
    Flow::chain(
        "work",
        &[
            ("first", "core.noop", json!({})),
            ("times", "core.setVariable", json!({"name": "m", "expression": "variables.n * 10"})),
        ],
    )
    .variable("n", "number", json!(0))
}

/// The same, once a human has said so.
pub fn careful_work() -> Flow {
    Flow::chain(
        "work",
        &[
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("times", "core.setVariable", json!({"name": "m", "expression": "variables.n * 10"})),
        ],
    )
    .variable("n", "number", json!(0))
}
