//! Agents over HTTP: who there is, and calling one by its id, by a node, or by name.

use crate::support;

use std::sync::Arc;

use axum::body::Body;
use baton_agent::{Capabilities, Sources, load};
use baton_model::{AgentCard, MemoryShape, TenantId};
use baton_runtime::{AgentRegistry, Options};
use baton_tool::{ToolSet, Toolbox, native};
use serde_json::{Map, Value, json};
use support::agents::{EDITOR, NODE, card, editor, of_type, only, says, staffed, types};
use support::{FULL, OTHER, READER, Site, host_options};

const CHAT: &str = "/v1/host/baton/chat";

/// What an entry may have.
const ENTRY: [&str; 15] = [
    "agentId",
    "persona",
    "label",
    "modelClass",
    "packName",
    "packVersion",
    "toolAllowlist",
    "hasHandoffSchemas",
    "description",
    "memoryShape",
    "confidenceThreshold",
    "degraded",
    "memoryDegraded",
    "degradedMemoryDimensions",
    "roster",
];

async fn site(cards: impl IntoIterator<Item = AgentCard>) -> Site {
    Site::configured(|options| drop(staffed(options, cards))).await
}

#[tokio::test]
async fn the_inventory_is_closed_sorted_and_says_nothing_private() {
    let full = AgentCard {
        tools: vec!["openwop:memory.list".to_owned()],
        memory: MemoryShape { long_term: true, ..MemoryShape::default() },
        threshold: Some(0.9),
        description: Some("Edits.".to_owned()),
        ..editor()
    };
    let site = Site::configured(|options| {
        drop(staffed(options, [card("vendor.acme.team.zoe", "Zoe"), full, card("core.acme.team.anna", "Anna")]));
        options.tools = Toolbox::new(native::tools().try_fold(ToolSet::default(), ToolSet::tool).unwrap());
    })
    .await;
    let answer = site.get("/v1/agents").await;
    assert!(!answer.text.contains("SYSTEM-PROMPT-TEXT"), "{}", answer.text);
    let body = answer.json();
    assert_eq!(body.as_object().unwrap().keys().collect::<Vec<_>>(), ["agents", "total"]);
    let agents = body["agents"].as_array().unwrap();
    let ids: Vec<&str> = agents.iter().map(|agent| agent["agentId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["core.acme.team.anna", EDITOR, "vendor.acme.team.zoe"]);
    assert_eq!(body["total"], 3);
    for agent in agents {
        assert!(agent.as_object().unwrap().keys().all(|key| ENTRY.contains(&key.as_str())), "{agent}");
        assert!(ENTRY[..8].iter().all(|key| agent.get(key).is_some()), "{agent}");
    }
    let entry = json!({
        "agentId": EDITOR, "persona": "Chief Editor", "label": "Chief Editor", "description": "Edits.",
        "modelClass": "writing", "packName": "vendor.acme.team", "packVersion": "1.2.0",
        "toolAllowlist": ["openwop:memory.list"], "hasHandoffSchemas": true, "confidenceThreshold": 0.9,
        "memoryShape": {"scratchpad": false, "conversation": false, "longTerm": true},
    });
    assert_eq!(agents[1], entry);
    assert_eq!(site.get(&format!("/v1/agents/{EDITOR}")).await.json(), entry);
    for id in ["roster", "org-chart", "nobody", "vendor.acme.team"] {
        site.get(&format!("/v1/agents/{id}")).await.refused(404, "not_found");
    }
    assert_eq!(site.send("GET", "/v1/agents", &[READER], Body::empty()).await.status, 200, "no scope is named for it");
    assert_eq!(site.send("GET", "/v1/agents", &[], Body::empty()).await.status, 401);
}

#[tokio::test]
async fn each_tenant_has_its_own() {
    let mut options = host_options();
    staffed(&mut options, [editor()]);
    let tenant = TenantId::new("elsewhere");
    options.agent_registry = options.agent_registry.with(Some(&tenant), card("vendor.acme.team.secret", "Secret"));
    let site = Site::configured(|own| *own = options).await;
    let ids = |body: Value| -> Vec<String> {
        body["agents"].as_array().unwrap().iter().map(|agent| agent["agentId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(site.get("/v1/agents").await.json()), [EDITOR]);
    let theirs = site.send("GET", "/v1/agents", &[OTHER], Body::empty()).await.json();
    assert_eq!(ids(theirs), [EDITOR, "vendor.acme.team.secret"]);
    let foreign = site.get("/v1/agents/vendor.acme.team.secret").await.refused(404, "not_found");
    assert_eq!(site.get("/v1/agents/vendor.acme.team.nobody").await.refused(404, "not_found"), foreign);
    for id in ["vendor.acme.team.secret", "vendor.acme.team.nobody"] {
        let details = site.post("/v1/runs", json!({"agentId": id})).await.refused(400, "validation_error");
        assert_eq!(details["agentId"], id);
        let name = id.rsplit('.').next().unwrap();
        let details = site.post(CHAT, json!({"text": format!("@{name} hello")})).await.refused(400, "validation_error");
        assert_eq!(details["agentId"], name);
    }
    let claims = site.get("/.well-known/openwop").await.json();
    assert_eq!(claims["agents"]["manifestRuntime"]["installScope"], "tenant", "what is shown here");
}

#[tokio::test]
async fn a_pack_says_what_its_agents_lack_here() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("acme");
    std::fs::create_dir_all(&pack).unwrap();
    let manifest = json!({
        "name": "vendor.acme.pack", "version": "2.0.0", "engines": {"openwop": ">=1.0"},
        "runtime": {"language": "remote", "entry": "pack.json"},
        "peerDependencies": {"made.up": "supported"}, "peerDependenciesMeta": {"made.up": {"optional": true}},
        "agents": [
            {"agentId": "vendor.acme.pack.hoarder", "persona": "Hoarder", "modelClass": "general",
             "systemPrompt": "Keep everything.", "memoryShape": {"longTerm": true, "scratchpad": true},
             "requiresCapabilities": ["other.thing"]},
        ],
    });
    std::fs::write(pack.join("pack.json"), manifest.to_string()).unwrap();
    let sources = Sources {
        packs: Some(folder.path().to_owned()),
        capabilities: Capabilities::new().with("aiProviders"),
        ..Sources::default()
    };
    let registry = load(&sources);
    assert!(registry.problems().is_empty(), "{:?}", registry.problems());
    let site = Site::configured(|options| {
        staffed(options, []);
        options.agent_registry = AgentRegistry::of(Arc::new(registry));
    })
    .await;
    let entry = site.get("/v1/agents/vendor.acme.pack.hoarder").await.json();
    assert_eq!(entry["degraded"], json!(["made.up", "other.thing"]));
    assert_eq!((&entry["memoryDegraded"], &entry["packVersion"]), (&json!(true), &json!("2.0.0")));
    assert_eq!(entry["degradedMemoryDimensions"], json!(["read", "write", "long-term-durability"]));
    assert!(entry.get("requiresCapabilities").is_none());
    site.agent_run(json!({"agentId": "vendor.acme.pack.hoarder", "inputs": {"task": "x"}}), "completed").await;
}

#[tokio::test]
async fn tools_that_nobody_here_has_show_wherever_the_agent_does() {
    let tools = ["openwop:core.openwop.memory.list", "openwop:core.rag.retriever-basic", "mcp:gone.find"];
    let lacking = AgentCard { tools: tools.map(str::to_owned).to_vec(), ..editor() };
    let site = Site::configured(|options| {
        drop(staffed(options, [lacking]));
        options.tools = Toolbox::new(native::tools().try_fold(ToolSet::default(), ToolSet::tool).unwrap());
    })
    .await;
    let missing = json!([tools[1], tools[2]]);
    assert_eq!(site.get("/v1/agents").await.json()["agents"][0]["degraded"], missing);
    let entry = site.get(&format!("/v1/agents/{EDITOR}")).await.json();
    assert_eq!((&entry["degraded"], &entry["toolAllowlist"]), (&missing, &json!(tools)), "its list is its own");
    let effective = format!("/v1/host/baton/agents/{EDITOR}/effective");
    let shown = site.get(&effective).await.json();
    assert_eq!((&shown["degraded"], &shown["unavailable"]), (&missing, &missing));
    assert_eq!(shown["tools"][0]["toolId"], "openwop:memory.list", "under the name that is called");
    let none = site.get(&format!("{effective}?toolGrant=openwop:memory.list")).await.json();
    assert_eq!((none["tools"].as_array().unwrap().len(), &none["unavailable"]), (1, &missing));

    let (_, log) = site.agent_run(json!({"agentId": EDITOR, "inputs": {"task": "x"}}), "completed").await;
    assert_eq!(only(&log, "baton.tools.missing")["payload"]["tools"], missing);
    assert_eq!(only(&log, "agent.invocation.started")["payload"]["toolSurfaceCount"], 1);
    let strict = json!({"agentId": EDITOR, "inputs": {"task": "x"}, "configurable": {"requireTools": true}});
    let (run, log) = site.agent_run(strict, "failed").await;
    let snapshot = site.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(snapshot["error"]["code"], "capability_not_provided", "{snapshot}");
    assert_eq!(only(&log, "baton.tools.missing")["payload"]["tools"], missing);
    assert!(of_type(&log, "provider.usage").is_empty(), "no model was asked");
    let odd = json!({"agentId": EDITOR, "inputs": {"task": "x"}, "configurable": {"requireTools": "yes"}});
    let details = site.post("/v1/runs", odd).await.refused(400, "validation_error");
    assert_eq!(details["key"], "requireTools");
}

#[tokio::test]
async fn a_run_of_one_agent_is_a_run_like_any_other() {
    let site = site([editor()]).await;
    let body = json!({"agentId": EDITOR, "inputs": {"task": "Fix it."}, "tags": ["t"], "metadata": {"k": 1}});
    let first = site.keyed("k1", "/v1/runs", body.clone()).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let created = first.json();
    let run = created["runId"].as_str().unwrap();
    assert_eq!(created["eventsUrl"], format!("/v1/runs/{run}/events"));
    let again = site.keyed("k1", "/v1/runs", body.clone()).await;
    assert_eq!((again.json(), again.header("openwop-idempotent-replay")), (created.clone(), "true"));
    site.reach(run, "completed").await;
    let snapshot = site.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(snapshot["workflowId"], format!("agent:{EDITOR}"));
    assert_eq!((&snapshot["tags"], &snapshot["metadata"]), (&json!(["t"]), &json!({"k": 1, "subject": "tenant:acme"})));
    assert_eq!(snapshot["variables"]["result"], json!({"answer": "mock"}));
    assert_eq!(snapshot["inputs"], json!({"task": "Fix it."}));
    let log = site.log(run).await;
    assert_eq!(only(&log, "node.completed")["payload"]["outputs"]["result"], json!({"answer": "mock"}));
    assert_eq!(only(&log, "agent.invocation.started")["payload"]["source"], "run-api");
    // Its definition can be read; it is in nobody's list and cannot be registered or started as a workflow.
    let path = format!("/v1/workflows/agent:{EDITOR}");
    let definition = site.get(&path).await.json();
    assert_eq!(definition["nodes"][0]["config"], json!({"agentId": EDITOR}));
    assert_eq!(definition["nodes"][0]["agent"], json!({"agentId": EDITOR}));
    assert!(!site.get("/v1/workflows").await.text.contains("agent:"));
    site.post("/v1/workflows", definition.clone()).await.refused(400, "validation_error");
    site.post("/v1/runs", json!({"workflowId": format!("agent:{EDITOR}")})).await.refused(404, "workflow_not_found");
    let mut forged = definition;
    forged["id"] = json!("agent:vendor.acme.team.other");
    site.post("/v1/workflows", forged).await.refused(400, "validation_error");
    // A replay proves it, and a fork takes it further.
    site.forked(run, json!({"mode": "replay", "fromSeq": 0}), "completed").await;
    site.forked(run, json!({"mode": "branch", "fromSeq": 1}), "completed").await;
    // It can be taken to another host, whether or not the agent is there.
    let file = site.get(&format!("/v1/host/baton/runs/{run}/export")).await.text;
    let elsewhere = Site::open().await;
    let taken = elsewhere.send("POST", "/v1/host/baton/runs/import", &[support::OPERATOR], file).await;
    assert!(taken.status.is_success(), "{}", taken.text);
    assert_eq!(elsewhere.log(run).await.len(), site.log(run).await.len());
}

#[tokio::test]
async fn what_cannot_be_started_is_refused_with_its_place() {
    let site = site([editor()]).await;
    let both = site.post("/v1/runs", json!({"agentId": EDITOR, "workflowId": "w"})).await;
    assert_eq!(both.refused(400, "validation_error")["pointer"], "/agentId");
    site.post("/v1/runs", json!({"agentId": EDITOR, "mode": "eval", "evalSuiteRef": "s"}))
        .await
        .refused(501, "capability_not_provided");
    let reader = site.send("POST", "/v1/runs", &[READER], json!({"agentId": EDITOR}).to_string()).await;
    reader.refused(403, "forbidden");
    let nobody = Site::open().await;
    nobody.post("/v1/runs", json!({"agentId": EDITOR})).await.refused(501, "capability_not_provided");
    assert_eq!(nobody.get("/v1/agents").await.json(), json!({"agents": [], "total": 0}));
}

/// An event of the agent's family, without what says which run it was.
fn family(log: &[Value], run: &str) -> Vec<Value> {
    const OWN: [&str; 4] = ["eventId", "runId", "timestamp", "source"];
    fn plain(value: &Value, run: &str) -> Value {
        match value {
            Value::Object(map) => {
                let kept = map.iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
                Value::Object(kept.map(|(key, value)| (key.clone(), plain(value, run))).collect::<Map<_, _>>())
            }
            Value::Array(items) => items.iter().map(|item| plain(item, run)).collect(),
            Value::String(text) => text.replace(run, "RUN").into(),
            other => other.clone(),
        }
    }
    let of_the_agent = |event: &&Value| {
        let kind = event["type"].as_str().unwrap();
        ["agent.", "prompt.", "provider.", "envelope.", "node."].iter().any(|family| kind.starts_with(family))
    };
    log.iter().filter(of_the_agent).map(|event| plain(event, run)).collect()
}

#[tokio::test]
async fn three_doors_one_log() {
    let tool = support::agents::Echo::new("openwop:echo", &[]);
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:echo".to_owned()], ..editor() }]);
    options.tools = support::agents::toolbox(&[tool]);
    let site = Site::configured(|own| *own = options).await;
    let node = json!({
        "id": NODE, "typeId": "vendor.baton.agent", "name": "n", "position": {"x": 0, "y": 0},
        "config": {"agentId": EDITOR}, "inputs": {}, "agent": {"agentId": EDITOR},
    });
    let flow = json!({
        "id": "flow", "name": "flow", "version": "1", "nodes": [node], "edges": [], "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
    });
    assert_eq!(site.post("/v1/workflows", flow).await.status, 201);
    let inputs = json!({"task": "Fix it."});
    let doors = [
        ("workflow-node", "/v1/runs", json!({"workflowId": "flow", "inputs": inputs})),
        ("run-api", "/v1/runs", json!({"agentId": EDITOR, "inputs": inputs})),
        ("chat-mention", CHAT, json!({"text": "@editor Fix it."})),
    ];
    let mut logs = Vec::new();
    for (source, path, body) in doors {
        let mut call = support::agents::calls(&[("openwop:echo", json!({"a": 1}))]);
        call.reasoning = Some("First I look.".to_owned());
        let invalid = says(&json!({"other": 1}));
        model.program(vec![call, invalid, says(&json!({"answer": "done", "confidence": 0.9}))]);
        let answer = site.post(path, body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let run = answer.json()["runId"].as_str().unwrap().to_owned();
        site.reach(&run, "completed").await;
        let log = site.log(&run).await;
        assert_eq!(only(&log, "agent.invocation.started")["payload"]["source"], source);
        // How long a call took is measured; everything else is the same.
        let mut family = family(&log, &run);
        for event in &mut family {
            event["payload"].as_object_mut().unwrap().remove("durationMs");
        }
        logs.push(family);
    }
    assert!(logs[0].len() > 10, "{:?}", types(&logs[0]));
    assert_eq!(logs[0], logs[1]);
    assert_eq!(logs[1], logs[2]);
    let sources = &site.get("/.well-known/openwop").await.json()["agents"]["liveRuntime"]["sources"];
    assert_eq!(*sources, json!(["workflow-node", "run-api", "chat-mention"]), "what is shown here");
}

#[tokio::test]
async fn a_message_calls_whom_it_names() {
    let twins = [card("vendor.acme.a.twin", "Castor"), card("vendor.acme.b.twin", "Pollux")];
    let site = site(twins.into_iter().chain([editor()])).await;
    let start = async |text: &str| {
        let answer = site.keyed(text, CHAT, json!({"text": text})).await;
        assert_eq!(answer.status, 201, "{text}: {}", answer.text);
        answer.json()["runId"].as_str().unwrap().to_owned()
    };
    for (text, agent, task) in [
        ("@chief editor: fix this", EDITOR, "fix this"),
        ("Please @VENDOR.ACME.TEAM.EDITOR look", EDITOR, "Please look"),
        ("@pollux hello @castor", "vendor.acme.b.twin", "hello @castor"),
    ] {
        let run = start(text).await;
        site.reach(&run, "completed").await;
        let snapshot = site.get(&format!("/v1/runs/{run}")).await.json();
        assert_eq!(
            (&snapshot["workflowId"], &snapshot["inputs"]),
            (&json!(format!("agent:{agent}")), &json!({"task": task}))
        );
        assert_eq!(start(text).await, run, "one key, one run");
    }
    let details = site.post(CHAT, json!({"text": "@twin hello"})).await.refused(400, "validation_error");
    assert_eq!(details["candidates"], json!(["vendor.acme.a.twin", "vendor.acme.b.twin"]));
    for text in ["hello", "mail me at me@editor.example", "@nobody hello", "@editor", ""] {
        let details = site.post(CHAT, json!({"text": text})).await.refused(400, "validation_error");
        assert_eq!(details["pointer"], "/text", "{text}");
    }
    site.post(CHAT, json!({"text": "@editor x", "conversationId": ""})).await.refused(400, "validation_error");
    site.post(CHAT, json!({"text": "@editor x", "surprise": 1})).await.refused(400, "validation_error");
    site.send("POST", CHAT, &[READER], json!({"text": "@editor x"}).to_string()).await.refused(403, "forbidden");
    assert_eq!(site.send("POST", CHAT, &[], "{}").await.status, 401);
}

#[tokio::test]
async fn a_conversation_remembers() {
    let keeper = AgentCard {
        tools: vec!["openwop:memory.put".to_owned()],
        memory: MemoryShape { conversation: true, ..MemoryShape::default() },
        ..editor()
    };
    let mut options: Options = host_options();
    let model = staffed(&mut options, [keeper]);
    let native = baton_tool::native::tools().fold(ToolSet::default(), |shelf, tool| shelf.tool(tool).unwrap());
    options.tools = Toolbox::new(native);
    let site = Site::configured(|own| *own = options).await;
    let talk = async |text: &str, conversation: &str| {
        let answer = site.post(CHAT, json!({"text": text, "conversationId": conversation})).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let run = answer.json()["runId"].as_str().unwrap().to_owned();
        site.reach(&run, "completed").await;
        site.log(&run).await
    };
    let keep = support::agents::calls(&[("openwop:memory.put", json!({"content": "They like commas."}))]);
    model.program(vec![keep, says(&json!({"answer": "noted"}))]);
    let log = talk("@editor I like commas", "c-1").await;
    assert_eq!(of_type(&log, "memory.written").len(), 1, "{:?}", types(&log));
    talk("@editor what do I like?", "c-1").await;
    assert!(model.last().contains("They like commas."), "{}", model.last());
    talk("@editor what do I like?", "c-2").await;
    assert!(!model.last().contains("They like commas."), "another conversation");
    let kept = site.get("/v1/host/baton/memory/c-1").await.json();
    assert_eq!(kept["entries"][0]["content"], "They like commas.");
    assert_eq!(site.send("GET", "/v1/host/baton/memory/c-1", &[FULL], Body::empty()).await.status, 200);
}
