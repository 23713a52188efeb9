//! The bytes of replies, held against a file: names, order and what is left out are a promise to every client.
//!
//! `BATON_BLESS=1` writes the file again; look at the difference before it is committed.

use crate::support;
use baton_conformance::Conformance;

use std::path::Path;

use axum::body::Body;
use baton_model::Timestamp;
use serde_json::{Value, json};
use support::{Answer, OPERATOR, Site};

/// Requests and replies as one text, with a fixed word in the place of whatever differs between two passes.
struct Transcript<'a> {
    site: &'a Site,
    text: String,
    /// Whatever was made up by the host, and the word it is shown by.
    names: Vec<(String, String)>,
}

impl<'a> Transcript<'a> {
    fn new(site: &'a Site) -> Self {
        Self { site, text: String::new(), names: Vec::new() }
    }

    fn name(&mut self, made_up: &Value, shown: &str) -> String {
        let made_up = made_up.as_str().unwrap().to_owned();
        self.names.push((made_up.clone(), shown.to_owned()));
        made_up
    }

    fn note(&mut self, request: &str, answer: &Answer) {
        let mut line = format!("{request} {}\n{}\n\n", answer.status.as_u16(), answer.text);
        for (made_up, shown) in &self.names {
            line = line.replace(made_up.as_str(), shown);
        }
        // Instants are JSON strings, so they are exactly what stands between two quotes.
        let instant = |part| if Timestamp::parse(part).is_some() { "<instant>" } else { part };
        let mut parts: Vec<&str> = line.split('"').map(instant).collect();
        // A place in the list of runs has an instant in it.
        for at in 2..parts.len() {
            if parts[at - 2] == "nextCursor" && parts[at].len() == 22 {
                parts[at] = "<place>";
            }
        }
        self.text.push_str(&parts.join("\""));
    }

    async fn get(&mut self, path: &str) -> Value {
        let answer = self.site.get(path).await;
        self.note(&format!("GET {path}"), &answer);
        answer.json()
    }

    /// `named` are members of the reply that the host made up, and the words they are shown by.
    async fn post(&mut self, path: &str, body: Value, named: &[(&str, &str)]) -> Value {
        let answer = self.site.post(path, body).await;
        let reply = answer.json();
        for (member, shown) in named {
            self.name(&reply[*member], shown);
        }
        self.note(&format!("POST {path}"), &answer);
        reply
    }

    async fn put(&mut self, path: &str, body: Value) {
        let answer = self.site.put(path, body).await;
        self.note(&format!("PUT {path}"), &answer);
    }

    fn check(&self, file: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/http_bytes").join(file);
        if std::env::var_os("BATON_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &self.text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap();
        for (line, (found, expected)) in self.text.lines().zip(expected.lines()).enumerate() {
            assert_eq!(found, expected, "{file}, line {}", line + 1);
        }
        assert_eq!(self.text.len(), expected.len(), "{file}");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[tokio::test]
async fn runs() {
    let site = Site::open().await;
    let remember = json!({"content": "remembered", "tags": ["t"]});
    let write = json!({"path": "a.md", "content": "x"});
    let nodes = [
        ("keep", "vendor.baton.memory.put", remember),
        ("write", "vendor.baton.workspace.put", write),
        ("n", "core.noop", json!({})),
    ];
    site.register_chain("story", &nodes).await;
    site.register("outer", "core.subWorkflow", json!({"workflowId": "story"})).await;
    site.register("fails", "core.fail", json!({})).await;
    site.register("slow", "core.delay", json!({"ms": 60_000})).await;
    let mut told = Transcript::new(&site);

    let started = told.post("/v1/runs", json!({"workflowId": "story", "tags": ["x"]}), &[("runId", "RUN")]).await;
    let run = text(&started["runId"]);
    site.reach(run, "completed").await;
    let state = told.site.get(&format!("/v1/host/baton/runs/{run}/state")).await.json();
    told.name(&state["memory"][0]["id"], "ENTRY");
    told.get(&format!("/v1/runs/{run}/ancestry")).await;
    told.get(&format!("/v1/host/baton/runs/{run}/state")).await;
    told.get(&format!("/v1/host/baton/runs/{run}/surroundings?at=2")).await;
    told.post(&format!("/v1/host/baton/runs/{run}/verify"), json!({}), &[]).await;
    let page = told.site.get(&format!("/v1/runs/{run}/events/poll?timeout=1&lastSequence=999")).await;
    told.note("GET the end of a log", &page);

    let fork = json!({"mode": "replay"});
    let replay = told.post(&format!("/v1/runs/{run}:fork"), fork, &[("runId", "REPLAY")]).await;
    site.reach(text(&replay["runId"]), "completed").await;
    let overlay = json!({"mode": "branch", "fromSeq": 3, "runOptionsOverlay": {"variables": {"v": 1}}});
    let branch = told.post(&format!("/v1/runs/{run}:fork"), overlay, &[("runId", "BRANCH")]).await;
    site.reach(text(&branch["runId"]), "completed").await;
    told.get(&format!("/v1/runs/{run}:diff?against={}", text(&replay["runId"]))).await;
    told.get("/v1/runs?limit=2").await;

    let outer = told.post("/v1/runs", json!({"workflowId": "outer"}), &[("runId", "OUTER")]).await;
    site.reach(text(&outer["runId"]), "completed").await;
    let below = site.get(&format!("/v1/runs?parentRunId={}", text(&outer["runId"]))).await.json();
    let child = told.name(&below["runs"][0]["runId"], "CHILD");
    told.get(&format!("/v1/runs/{child}/ancestry")).await;
    told.get(&format!("/v1/runs?parentRunId={}", text(&outer["runId"]))).await;
    told.post(&format!("/v1/runs/{}:prune", text(&outer["runId"])), json!({"log": true}), &[]).await;

    let failed = told.post("/v1/runs", json!({"workflowId": "fails"}), &[("runId", "FAILED")]).await;
    site.reach(text(&failed["runId"]), "failed").await;
    told.get("/v1/runs?status=failed").await;

    let slow = told.post("/v1/runs", json!({"workflowId": "slow"}), &[("runId", "SLOW")]).await;
    let slow = text(&slow["runId"]);
    told.post(&format!("/v1/runs/{slow}:pause"), json!({"reason": "r", "drainPolicy": "immediate"}), &[]).await;
    told.post(&format!("/v1/runs/{slow}:resume"), json!({}), &[]).await;
    told.post(&format!("/v1/runs/{slow}/cancel"), json!({"reason": "r"}), &[]).await;
    told.post("/v1/runs:bulk-cancel", json!({"runIds": [slow, "run_nobody"]}), &[]).await;
    told.get("/v1/host/baton/quarantine").await;

    let export = site.get(&format!("/v1/host/baton/runs/{run}/export")).await;
    let there = Site::open().await;
    let taken = there.send("POST", "/v1/host/baton/runs/import", &[OPERATOR], Body::from(export.text)).await;
    told.note("POST /v1/host/baton/runs/import", &taken);
    told.check("runs.txt");
}

#[tokio::test]
async fn everything_else() {
    let site = Site::open().await;
    let mut told = Transcript::new(&site);
    site.register("asks", "core.approvalGate", json!({"title": "Go on?"})).await;
    told.get("/v1/workflows").await;
    let definition = told.get("/v1/workflows/asks").await;
    told.post("/v1/workflows", definition.clone(), &[]).await;
    told.get("/v1/host/baton/workflows/asks/versions").await;
    told.post("/v1/host/baton/workflows/validate", definition, &[]).await;
    told.post("/v1/host/baton/workflows/validate", json!({"id": "X"}), &[]).await;

    let started = told.post("/v1/runs", json!({"workflowId": "asks"}), &[("runId", "RUN")]).await;
    let run = text(&started["runId"]);
    site.reach(run, "waiting-approval").await;
    let open = site.get(&format!("/v1/runs/{run}")).await.json();
    told.name(&open["interrupt"]["interruptId"], "INTERRUPT");
    let token = told.name(&open["interrupt"]["interruptToken"], "TOKEN");
    told.get("/v1/interrupts").await;
    told.get(&format!("/v1/interrupts/{token}")).await;
    let answer = json!({"resumeValue": {"action": "accept"}});
    told.post(&format!("/v1/runs/{run}/interrupts/n"), answer, &[]).await;
    site.reach(run, "completed").await;

    let memory = "/v1/host/baton/memory/team";
    let new = json!({"content": "x", "tags": ["t"], "ttlSeconds": 60});
    told.post(memory, new, &[("id", "ENTRY")]).await;
    told.get(memory).await;
    told.get("/v1/host/baton/memory").await;
    told.put("/v1/host/workspace/files/a.md", json!({"content": "x"})).await;
    told.put("/v1/host/workspace/files/b.md", json!({"content": "y", "contentType": "text/plain"})).await;
    site.delete("/v1/host/workspace/files/b.md").await;
    told.get("/v1/host/workspace/files").await;
    told.get("/v1/host/baton/workspace/changes?limit=2").await;

    let about = format!("/v1/runs/{run}/annotations");
    let said = json!({"signal": {"kind": "rating", "rating": 1}, "target": {"nodeId": "n"}, "note": "good"});
    let annotation = site.post(&about, said).await;
    told.name(&annotation.json()["annotationId"], "ANNOTATION");
    told.note("POST an annotation", &annotation);
    told.get(&about).await;

    let hook = json!({"url": "https://hooks.example.com/in", "events": ["run.completed"], "tags": ["x"]});
    let named = [("webhookId", "WEBHOOK"), ("secret", "SECRET"), ("secretFingerprint", "FINGERPRINT")];
    let made = told.post("/v1/webhooks", hook, &named).await;
    let webhook = text(&made["webhookId"]).to_owned();
    told.get("/v1/webhooks").await;
    told.get(&format!("/v1/webhooks/{webhook}/dead-letters")).await;
    told.post(&format!("/v1/host/baton/webhooks/{webhook}/dead-letters/redeliver"), json!({}), &[]).await;
    told.post(&format!("/v1/host/baton/webhooks/{webhook}/resume"), json!({}), &[]).await;
    told.get("/v1/agents").await;
    told.get("/v1/tools?view=compact").await;
    told.get("/v1/prompts?limit=1").await;
    told.get("/v1/host/baton/conversations").await;
    told.get("/v1/agents/nobody").await;
    told.check("rest.txt");
}

#[tokio::test]
async fn agents() {
    let tool = support::agents::Echo::new("mcp:notes.a/b", &[]);
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        support::agents::staffed(options, [support::agents::editor()]);
        options.tools = support::agents::toolbox(&[tool]);
    })
    .await;
    let mut told = Transcript::new(&site);
    told.get("/v1/agents").await;
    told.get("/v1/tools").await;
    told.get("/v1/tools?view=compact").await;
    told.get("/v1/prompts?limit=2").await;
    let render = json!({"ref": "prompt:conformance.prompt.trust-marker", "variables": {"userPayload": "x"}});
    told.post("/v1/prompts:render", render, &[]).await;
    let message = json!({"text": "@chief editor hello", "conversationId": "c"});
    let run = told.post("/v1/host/baton/chat", message, &[("runId", "RUN")]).await;
    site.reach(text(&run["runId"]), "completed").await;
    told.get("/v1/host/baton/conversations").await;
    told.get("/v1/host/baton/conversations/c").await;
    told.check("agents.txt");
}

#[tokio::test]
async fn the_openapi_document() {
    let site = Site::open().await;
    let document = site.get("/v1/openapi.json").await;
    let mut told = Transcript::new(&site);
    told.text = serde_json::to_string_pretty(&document.json()).unwrap();
    told.check("openapi.json");
}
