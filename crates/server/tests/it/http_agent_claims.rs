//! What discovery says about live agents, their models, tools and prompts is what the host does: one check per claim,
//! each of which fails when the behaviour is taken away.

use crate::support;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use baton_model::{AgentCard, ModelReply, StopReason};
use baton_provider::{Price, Prices};
use baton_server::Keys;
use baton_store::MemoryStore;
use baton_tool::hooks::ToolLimits;
use serde_json::{Value, json};
use support::agents::{EDITOR, Echo, Model, calls, card, editor, of_type, only, says, staffed, toolbox, types};
use support::{Site, host_options};

async fn claims(site: &Site) -> Value {
    site.get("/.well-known/openwop").await.json()
}

/// A host with one agent, and the model that speaks for it.
async fn with(card: AgentCard) -> (Site, Arc<Model>) {
    let mut options = host_options();
    let model = staffed(&mut options, [card]);
    (Site::configured(|own| *own = options).await, model)
}

fn ask(task: &str) -> Value {
    json!({"agentId": EDITOR, "inputs": {"task": task}})
}

fn place(log: &[Value], kind: &str) -> usize {
    log.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}: {:?}", types(log)))
}

#[tokio::test]
async fn every_block_stands_at_the_root_and_in_the_mirror() {
    let (site, _) = with(editor()).await;
    let claims = claims(&site).await;
    for family in [
        "agents",
        "prompts",
        "toolCatalog",
        "toolHooks",
        "aiProviders",
        "modelCapabilities",
        "providerUsage",
        "envelopes",
    ] {
        assert!(claims[family].is_object(), "{family}");
        assert_eq!(claims["capabilities"][family], claims[family], "{family}");
    }
    assert_eq!(claims["agents"]["supported"], true);
    assert_eq!(claims["agents"]["orchestrator"], true, "what the loop offers is still said");
}

#[tokio::test]
async fn the_bracket_holds_everything() {
    let (site, model) = with(editor()).await;
    assert_eq!(claims(&site).await["agents"]["liveRuntime"]["supported"], true);
    model.program(vec![says(&json!({"answer": "PRIVATE-ANSWER"}))]);
    let (run, log) = site.agent_run(ask("PRIVATE-TASK"), "completed").await;
    let family: Vec<&Value> =
        log.iter().filter(|event| event["type"].as_str().unwrap().starts_with("agent.")).collect();
    let (first, last) = (family[0], family[family.len() - 1]);
    assert_eq!(
        (&first["type"], &last["type"]),
        (&json!("agent.invocation.started"), &json!("agent.invocation.completed"))
    );
    assert_eq!(first["payload"]["invocationId"], last["payload"]["invocationId"]);
    let started = json!({
        "invocationId": first["payload"]["invocationId"], "agentId": EDITOR, "source": "run-api", "modelClass": "writing",
        "resolvedProvider": "mock", "resolvedModel": "mock-mini", "resolvedAgentVersion": "1.2.0", "toolSurfaceCount": 0,
    });
    assert_eq!(first["payload"], started);
    assert_eq!(last["payload"]["outcome"], "completed");
    for event in [first, last] {
        for key in ["prompt", "result", "body", "input", "output", "apiKey", "secret", "credentials", "token"] {
            assert!(event["payload"].get(key).is_none(), "{event}");
        }
    }
    assert!(place(&log, "agent.reasoned") < place(&log, "agent.decided"));
    assert_eq!(only(&log, "agent.decided")["payload"]["decision"], json!({"answer": "PRIVATE-ANSWER"}));
    for event in [first, last, only(&log, "provider.usage"), only(&log, "prompt.composed")] {
        let text = event.to_string();
        assert!(!text.contains("PRIVATE") && !text.contains("SYSTEM-PROMPT-TEXT"), "{text}");
    }
    assert!(site.get(&format!("/v1/runs/{run}")).await.json()["variables"]["result"].is_object());
}

#[tokio::test]
async fn an_answer_of_another_shape_fails() {
    let (site, model) = with(editor()).await;
    assert_eq!(claims(&site).await["agents"]["liveRuntime"]["structuredOutput"], true);
    model.program(vec![says(&json!({"wrong": "PRIVATE-ANSWER"})); 8]);
    let (_, log) = site.agent_run(ask("x"), "failed").await;
    let completed = &only(&log, "agent.invocation.completed")["payload"];
    assert_eq!((&completed["outcome"], completed.get("schemaValidated")), (&json!("failed"), None));
    assert_eq!(only(&log, "node.failed")["payload"]["error"]["code"], "handoff_return_schema_violation");
    assert!(!json!(log).to_string().contains("PRIVATE-ANSWER"));
    model.program(vec![says(&json!({"answer": "fits"}))]);
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    assert_eq!(only(&log, "agent.invocation.completed")["payload"]["schemaValidated"], true);
}

#[tokio::test]
async fn tasks_are_held_against_their_schema() {
    let schema = json!({"type": "object", "required": ["diff"], "properties": {"diff": {"type": "string"}}});
    let (site, model) = with(AgentCard { task_schema: Some(schema), ..editor() }).await;
    assert_eq!(claims(&site).await["agents"]["manifestRuntime"]["handoffValidation"], true);
    let (_, log) = site.agent_run(ask("x"), "failed").await;
    assert_eq!(only(&log, "node.failed")["payload"]["error"]["code"], "handoff_task_schema_violation");
    let (started, completed) = (place(&log, "agent.invocation.started"), place(&log, "agent.invocation.completed"));
    assert!(started < completed && completed < place(&log, "node.failed"));
    assert_eq!(
        (only(&log, "agent.invocation.completed")["payload"]["outcome"].as_str(), model.calls()),
        (Some("failed"), 0)
    );
    site.agent_run(json!({"agentId": EDITOR, "inputs": {"diff": "+1"}}), "completed").await;
    assert_eq!(model.calls(), 1);
}

#[tokio::test]
async fn a_doubtful_answer_waits_for_a_human() {
    let (site, model) = with(editor()).await;
    assert_eq!(claims(&site).await["agents"]["liveRuntime"]["confidenceEscalation"], true);
    let unsure = json!({"answer": "maybe", "confidence": 0.4});
    model.program(vec![says(&unsure)]);
    let (run, log) = site.agent_run(ask("x"), "waiting-approval").await;
    let suspended = &only(&log, "node.suspended")["payload"];
    assert_eq!((&suspended["reason"], &suspended["agentId"]), (&json!("low-confidence"), &json!(EDITOR)));
    assert_eq!((&suspended["threshold"], &suspended["observed"]), (&json!(0.7), &json!(0.4)));
    let asked = &only(&log, "interrupt.requested")["payload"];
    let data = json!({"agentId": EDITOR, "threshold": 0.7, "observed": 0.4, "decision": unsure});
    assert_eq!((&asked["kind"], &asked["data"]), (&json!("low-confidence"), &data));
    assert_eq!(only(&log, "agent.invocation.completed")["payload"]["outcome"], "escalated");
    let order = ["agent.decided", "agent.invocation.completed", "node.suspended"].map(|kind| place(&log, kind));
    assert!(order.is_sorted(), "{order:?}");
    assert!(of_type(&log, "node.completed").is_empty(), "what is not ratified is not acted on");
    let ratified = json!({"resumeValue": {"answer": "surely"}});
    assert!(site.post(&format!("/v1/runs/{run}/interrupts/agent"), ratified).await.status.is_success());
    site.reach(&run, "completed").await;
    let log = site.log(&run).await;
    assert_eq!(only(&log, "node.completed")["payload"]["outputs"]["result"], json!({"answer": "surely"}));
    assert_eq!(
        only(&log, "agent.invocation.completed")["payload"]["outcome"],
        "escalated",
        "a bare ratification adds nothing"
    );
    // The run sets the threshold, else the manifest; as sure as that is sure enough; silence is no doubt.
    for (confidence, threshold, status) in
        [(Some(0.4), 0.4, "completed"), (Some(0.85), 0.9, "waiting-approval"), (None, 1.0, "completed")]
    {
        let mut answer = json!({"answer": "x"});
        if let Some(confidence) = confidence {
            answer["confidence"] = json!(confidence);
        }
        model.program(vec![says(&answer)]);
        let mut body = ask("x");
        body["configurable"] = json!({"escalationThreshold": threshold});
        site.agent_run(body, status).await;
    }
    let mut body = ask("x");
    body["configurable"] = json!({"escalationThreshold": 1.5});
    site.post("/v1/runs", body).await.refused(400, "validation_error");
}

#[tokio::test]
async fn thoughts_are_as_long_as_the_run_wants() {
    let (site, model) = with(editor()).await;
    let reasoning = claims(&site).await["agents"]["reasoning"].clone();
    assert_eq!(reasoning, json!({"verbosity": "summary", "tokenLimit": 512, "streaming": true}));
    let long = "thought ".repeat(5000);
    let thought = async |verbosity: Option<&str>| {
        model.program(vec![ModelReply { reasoning: Some(long.clone()), ..says(&json!({"answer": "x"})) }]);
        let mut body = ask("x");
        if let Some(verbosity) = verbosity {
            body["configurable"] = json!({"reasoningVerbosity": verbosity});
        }
        let (_, log) = site.agent_run(body, "completed").await;
        assert!(of_type(&log, "agent.reasoning.delta").is_empty(), "there was no time to tell it in pieces");
        let told = of_type(&log, "agent.reasoned");
        told.first().map(|event| event["payload"]["reasoning"].as_str().unwrap().to_owned())
    };
    for verbosity in [None, Some("summary")] {
        let summary = thought(verbosity).await.unwrap();
        // A token is about four characters.
        assert!(long.starts_with(summary.trim_end_matches('…')) && summary.chars().count() <= 512 * 4 + 1);
    }
    assert_eq!(thought(Some("full")).await.unwrap(), long);
    assert_eq!(thought(Some("off")).await, None);
}

#[tokio::test]
async fn thoughts_are_told_while_they_are_thought() {
    let (site, model) = with(editor()).await;
    assert_eq!(claims(&site).await["agents"]["reasoning"]["streaming"], true);
    for (verbosity, told) in [("summary", true), ("off", false)] {
        let answer = says(&json!({"answer": "x"}));
        model.muse("Let me see. Nearly there. ", ModelReply { reasoning: Some("Done thinking.".to_owned()), ..answer });
        let mut body = ask("x");
        body["configurable"] = json!({"reasoningVerbosity": verbosity});
        let run = site.post("/v1/runs", body).await.json()["runId"].as_str().unwrap().to_owned();
        if told {
            // It is on the log, and in every stream, while the model is still at it.
            let log = site.logged(&run, "agent.reasoning.delta").await;
            assert!(of_type(&log, "provider.usage").is_empty() && of_type(&log, "agent.reasoned").is_empty());
        }
        model.answer();
        let log = site.logged(&run, "run.completed").await;
        let pieces = of_type(&log, "agent.reasoning.delta");
        let text: String = pieces.iter().map(|event| event["payload"]["delta"].as_str().unwrap()).collect();
        assert_eq!(text, if told { "Let me see. Nearly there. " } else { "" });
        let places: Vec<u64> = pieces.iter().map(|event| event["payload"]["sequence"].as_u64().unwrap()).collect();
        assert_eq!(places, (0..places.len() as u64).collect::<Vec<_>>());
        if told {
            assert!(place(&log, "agent.reasoning.delta") < place(&log, "agent.reasoned"));
            let reasoned = &only(&log, "agent.reasoned")["payload"];
            assert_eq!((&reasoned["reasoning"], &reasoned["agentId"]), (&json!("Done thinking."), &json!(EDITOR)));
        } else {
            assert!(of_type(&log, "agent.reasoned").is_empty());
        }
    }
}

#[tokio::test]
async fn a_model_that_cannot_do_it_is_not_asked() {
    let mut options = host_options();
    let model = staffed(&mut options, [editor()]);
    let site = Site::configured(|own| *own = options).await;
    let claimed = claims(&site).await["modelCapabilities"].clone();
    assert_eq!((&claimed["supported"], &claimed["substitutionSupported"]), (&json!(true), &json!(true)));
    let advertised: Vec<&str> =
        claimed["advertised"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(advertised, ["discriminator-enum", "function-calling", "reasoning", "structured-output"]);
    let run = async |id: &str, needs: Value, status: &str| {
        let mut config = json!({"agentId": EDITOR});
        config.as_object_mut().unwrap().extend(needs.as_object().unwrap().clone());
        let node = json!({
            "id": "agent", "typeId": "vendor.baton.agent", "name": "agent", "position": {"x": 0, "y": 0},
            "config": config, "inputs": {},
        });
        let definition = json!({
            "id": id, "name": id, "version": "1", "nodes": [node], "edges": [],
            "triggers": [], "variables": [], "metadata": {}, "settings": {},
        });
        assert_eq!(site.post("/v1/workflows", definition).await.status, 201);
        site.agent_run(json!({"workflowId": id, "inputs": {"task": "x"}}), status).await.1
    };
    // What is advertised is there.
    let log = run("can", json!({"requiredModelCapabilities": advertised}), "completed").await;
    assert!(!types(&log).iter().any(|kind| kind.starts_with("model.")));
    let asked = model.calls();
    let log = run("cannot", json!({"requiredModelCapabilities": ["reasoning", "vision-input"]}), "failed").await;
    assert_eq!(model.calls(), asked);
    let told = &only(&log, "model.capability.insufficient")["payload"];
    assert_eq!((&told["missingCapabilities"], &told["fallbackAttempted"]), (&json!(["vision-input"]), &json!(false)));
    assert!(place(&log, "model.capability.insufficient") < place(&log, "node.failed"));
    assert_eq!(only(&log, "run.failed")["payload"]["error"]["code"], "capability_not_provided");
    // Somebody else is asked where the node names somebody.
    let needs = json!({
        "requiredModelCapabilities": ["vision-input"], "fallbackModel": {"provider": "mock", "model": "mock-eyes"},
    });
    let log = run("instead", needs, "completed").await;
    let told = &only(&log, "model.capability.substituted")["payload"];
    assert_eq!((&told["originalModel"], &told["fallbackModel"]), (&json!("mock-mini"), &json!("mock-eyes")));
    assert!(place(&log, "model.capability.substituted") < place(&log, "provider.usage"));
    assert_eq!(only(&log, "provider.usage")["payload"]["model"], "mock-eyes");
}

#[tokio::test]
async fn the_way_to_a_prompt_is_on_the_log() {
    let (site, _) = with(editor()).await;
    let prompts = claims(&site).await["prompts"].clone();
    assert_eq!((&prompts["supported"], &prompts["agentBindings"]), (&json!(true), &json!(true)));
    assert_eq!(prompts["observability"], "hashed");
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let resolved = &only(&log, "agent.promptResolved")["payload"];
    assert_eq!(
        (&resolved["agentId"], &resolved["kind"], &resolved["nodeId"]),
        (&json!(EDITOR), &json!("system"), &json!("agent"))
    );
    let chain = resolved["chain"].as_array().unwrap();
    let applied: Vec<&Value> = chain.iter().filter(|layer| layer["applied"] == true).collect();
    assert_eq!(
        (applied.len(), &applied[0]["layer"], &applied[0]["source"]),
        (1, &json!("agent-intrinsic"), &resolved["resolved"])
    );
    let layers: Vec<&Value> = chain.iter().map(|layer| &layer["layer"]).collect();
    for layer in ["node", "agent-intrinsic", "workflow-defaults", "host-defaults"] {
        assert!(layers.contains(&&json!(layer)), "{layers:?}");
    }
    let composed = &only(&log, "prompt.composed")["payload"];
    assert!(place(&log, "agent.promptResolved") < place(&log, "prompt.composed"));
    assert_eq!((&composed["refs"], &composed["kind"]), (&json!([resolved["resolved"]]), &json!("system-only")));
    assert!(composed["hash"].as_str().unwrap().starts_with("sha256:"));
    for body in ["composed", "systemPrompt", "userPrompt", "variableBindings"] {
        assert!(composed.get(body).is_none(), "hashes only: {composed}");
    }
}

#[tokio::test]
async fn a_tool_outside_the_list_is_never_called() {
    let (allowed, forbidden) = (Echo::new("openwop:allowed", &[]), Echo::new("openwop:forbidden", &[]));
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:allowed".to_owned()], ..editor() }]);
    options.tools = toolbox(&[Arc::clone(&allowed), Arc::clone(&forbidden)]);
    let site = Site::configured(|own| *own = options).await;
    let both =
        calls(&[("openwop:forbidden", json!({})), ("openwop:allowed", json!({})), ("openwop:nowhere", json!({}))]);
    model.program(vec![both, says(&json!({"answer": "x"}))]);
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let called: Vec<&Value> =
        of_type(&log, "agent.toolCalled").iter().map(|event| &event["payload"]["toolName"]).collect();
    assert_eq!(called, ["openwop:allowed"]);
    assert_eq!((allowed.count(), forbidden.count()), (1, 0));
    assert_eq!(only(&log, "agent.invocation.started")["payload"]["toolSurfaceCount"], 1);
    // No list is an empty one.
    let mut options = host_options();
    let unlisted = staffed(&mut options, [card(EDITOR, "Bare")]);
    options.tools = toolbox(&[Arc::clone(&allowed)]);
    unlisted.program(vec![calls(&[("openwop:allowed", json!({}))]), says(&json!({"answer": "x"}))]);
    let bare = Site::configured(|own| *own = options).await;
    let (_, log) = bare.agent_run(ask("x"), "completed").await;
    assert!(of_type(&log, "agent.toolCalled").is_empty());
    assert_eq!(only(&log, "agent.toolReturned")["payload"]["status"], "forbidden", "it did ask");
    // A run may give less than the manifest allows, never more.
    model.program(vec![
        calls(&[("openwop:allowed", json!({})), ("openwop:forbidden", json!({}))]),
        says(&json!({"answer": "x"})),
    ]);
    let mut body = ask("x");
    body["configurable"] = json!({"toolGrant": ["openwop:forbidden"]});
    let (_, log) = site.agent_run(body, "completed").await;
    assert!(of_type(&log, "agent.toolCalled").is_empty(), "{:?}", types(&log));
    assert_eq!((allowed.count(), forbidden.count()), (1, 0));
}

#[tokio::test]
async fn tools_are_listed_for_whoever_may_use_them() {
    let (open, scoped) = (Echo::new("openwop:a.open", &[]), Echo::new("mcp:notes.b/scoped", &["memory:read"]));
    let mut options = host_options();
    options.tools = toolbox(&[open, scoped]);
    let host = baton_runtime::Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let site = Site::over(host, |server| server.keys = Keys::parse("full:acme,narrow:acme:runs:read").unwrap());
    let catalog = claims(&site).await["toolCatalog"].clone();
    assert_eq!(catalog, json!({"supported": true, "sources": ["host-extension", "mcp"], "sessionLifecycle": false}));
    let narrow = ("authorization", "Bearer narrow");
    let listed = async |path: &str, key: (&str, &str)| site.send("GET", path, &[key], axum::body::Body::empty()).await;
    let all = listed("/v1/tools", support::FULL).await.json();
    let ids: Vec<&Value> = all.as_array().unwrap().iter().map(|tool| &tool["toolId"]).collect();
    assert_eq!(ids, ["mcp:notes.b/scoped", "openwop:a.open"]);
    let (first, second) = (&all[1], &all[0]);
    assert_eq!((&first["source"], &first["safetyTier"]), (&json!("host-extension"), &json!("read")));
    assert_eq!((&second["source"], &second["auth"]), (&json!("mcp"), &json!({"scopes": ["memory:read"]})));
    assert_eq!(listed("/v1/tools", narrow).await.json().as_array().unwrap().len(), 1);
    for path in ["/v1/tools/openwop:a.open", "/v1/tools/openwop%3Aa%2Eopen"] {
        assert_eq!(listed(path, narrow).await.json(), *first, "{path}");
    }
    let scoped = "/v1/tools/mcp%3Anotes.b%2Fscoped";
    assert_eq!(listed(scoped, support::FULL).await.json(), *second);
    let hidden = listed(scoped, narrow).await.refused(404, "not_found");
    assert_eq!(listed("/v1/tools/nowhere", narrow).await.refused(404, "not_found"), hidden);
    assert_eq!(listed("/v1/tools?source=mcp", support::FULL).await.json(), json!([second]));
    assert_eq!(listed("/v1/tools?source=workflow", support::FULL).await.json(), json!([]));
    let compact = listed("/v1/tools?view=compact&source=host-extension", narrow).await.json();
    let only = json!({"toolId": "openwop:a.open", "source": "host-extension", "safetyTier": "read", "title": "Echo"});
    assert_eq!(compact, json!({"tools": [only]}));
    for bad in ["source=nowhere", "view=full", "sauce=mcp"] {
        listed(&format!("/v1/tools?{bad}"), narrow).await.refused(400, "validation_error");
    }
    assert_eq!(site.send("GET", "/v1/tools", &[], axum::body::Body::empty()).await.status, 401);
}

#[tokio::test]
async fn a_call_leaves_a_pair_without_its_arguments() {
    let tool = Echo::new("openwop:echo", &[]);
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:echo".to_owned()], ..editor() }]);
    options.tools = toolbox(&[tool]);
    let site = Site::configured(|own| *own = options).await;
    let hooks = claims(&site).await["toolHooks"].clone();
    assert_eq!((&hooks["supported"], &hooks["prePostEvents"]), (&json!(true), &json!(true)));
    model.program(vec![calls(&[("openwop:echo", json!({"b": 2, "a": 1}))]), says(&json!({"answer": "x"}))]);
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let (called, returned) = (only(&log, "agent.toolCalled"), only(&log, "agent.toolReturned"));
    let hash = baton_model::Digest::of_json(&json!({"a": 1, "b": 2})).to_string();
    assert_eq!(called["payload"]["argsHash"], hash, "of the canonical form");
    assert!(called["payload"]["principal"].is_string() && called["payload"]["transport"] == "http");
    assert_eq!(
        (&returned["causationId"], &returned["payload"]["callId"]),
        (&called["eventId"], &called["payload"]["callId"])
    );
    assert_eq!(returned["payload"]["status"], "ok");
    assert!(returned["payload"]["durationMs"].is_u64());
}

#[tokio::test]
async fn a_tool_is_only_for_who_holds_its_scopes() {
    let tool = Echo::new("openwop:echo", &["memory:read"]);
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:echo".to_owned()], ..editor() }]);
    options.tools = toolbox(&[Arc::clone(&tool)]);
    let host = baton_runtime::Host::open(Arc::new(MemoryStore::new()), options).await.unwrap();
    let keys = "full:acme,narrow:acme:runs:create+runs:read,wide:acme:runs:create+runs:read+memory:read";
    let site = Site::over(host, |server| server.keys = Keys::parse(keys).unwrap());
    assert_eq!(claims(&site).await["toolHooks"]["perToolAuthorization"], true);
    for (key, status, count) in [("narrow", "forbidden", 0), ("wide", "ok", 1), ("full", "ok", 2)] {
        model.program(vec![calls(&[("openwop:echo", json!({}))]), says(&json!({"answer": "x"}))]);
        let auth = format!("Bearer {key}");
        let answer = site.send("POST", "/v1/runs", &[("authorization", &auth)], ask("x").to_string()).await;
        let run = answer.json()["runId"].as_str().unwrap().to_owned();
        site.reach(&run, "completed").await;
        let log = site.log(&run).await;
        let returned = &only(&log, "agent.toolReturned")["payload"];
        assert_eq!((&returned["status"], tool.count()), (&json!(status), count), "{key}");
        assert_eq!(of_type(&log, "agent.toolCalled").len(), 1, "allowlisted, so it is announced");
        if status == "forbidden" {
            assert!(returned.get("durationMs").is_none());
            let details = json!({"scope": "tool", "toolName": "openwop:echo", "requiredScopes": ["memory:read"]});
            assert_eq!((&returned["error"]["code"], &returned["error"]["details"]), (&json!("forbidden"), &details));
        }
    }
}

#[tokio::test]
async fn a_bucket_that_is_empty_stops_a_call() {
    let tool = Echo::new("openwop:echo", &[]);
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:echo".to_owned()], ..editor() }]);
    options.tools = toolbox(&[Arc::clone(&tool)]);
    let one = NonZeroU32::MIN;
    // Time stands still, so nothing flows back.
    options.tool_limits = Some(Arc::new(ToolLimits::with_clock(one, one, || Duration::ZERO)));
    let site = Site::configured(|own| *own = options).await;
    assert_eq!(claims(&site).await["toolHooks"]["perToolRateLimit"], true);
    let call = || calls(&[("openwop:echo", json!({}))]);
    model.program(vec![call(), call(), says(&json!({"answer": "x"}))]);
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let statuses: Vec<&Value> =
        of_type(&log, "agent.toolReturned").iter().map(|event| &event["payload"]["status"]).collect();
    assert_eq!((statuses, tool.count()), (vec![&json!("ok"), &json!("rate_limited")], 1));
    let refused = &of_type(&log, "agent.toolReturned")[1]["payload"];
    assert!(refused.get("durationMs").is_none());
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["details"]["scope"]),
        (&json!("rate_limited"), &json!("tool"))
    );
    let (plain, _) = with(editor()).await;
    assert_eq!(claims(&plain).await["toolHooks"]["perToolRateLimit"], false, "claimed only where there is a limit");
}

#[tokio::test]
async fn a_provider_that_is_not_here_is_refused() {
    let (site, _) = with(editor()).await;
    assert_eq!(claims(&site).await["aiProviders"], json!({"supported": ["mock"]}));
    let mut body = ask("x");
    body["configurable"] = json!({"ai.provider": "anthropic", "ai.model": "m"});
    let details = site.post("/v1/runs", body.clone()).await.refused(400, "validation_error");
    assert_eq!((&details["provider"], &details["supported"]), (&json!("anthropic"), &json!(["mock"])));
    body["configurable"] = json!({"ai": {"provider": "mock", "model": "other"}});
    let (_, log) = site.agent_run(body, "completed").await;
    assert_eq!(only(&log, "agent.invocation.started")["payload"]["resolvedModel"], "other");
}

#[tokio::test]
async fn every_call_is_counted_once() {
    let tool = Echo::new("openwop:echo", &[]);
    let mut options = host_options();
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:echo".to_owned()], ..editor() }]);
    options.tools = toolbox(&[tool]);
    let site = Site::configured(|own| *own = options).await;
    assert_eq!(claims(&site).await["providerUsage"]["supported"], true);
    model.program(vec![calls(&[("openwop:echo", json!({}))]), says(&json!({"no": 1})), says(&json!({"answer": "x"}))]);
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let usage = of_type(&log, "provider.usage");
    assert_eq!((usage.len(), model.calls()), (3, 3), "a tool round and a retry are calls too");
    let payload = json!({
        "provider": "mock", "model": "mock-mini", "inputTokens": 7, "outputTokens": 3, "totalTokens": 10, "nodeId": "agent",
    });
    assert!(usage.iter().all(|event| event["payload"] == payload), "{usage:?}");
    let done = place(&log, "node.completed");
    assert!(log.iter().rposition(|event| event["type"] == "provider.usage").unwrap() < done);
}

#[tokio::test]
async fn what_a_call_costs_is_said_where_it_is_known() {
    let (plain, _) = with(editor()).await;
    assert_eq!(claims(&plain).await["providerUsage"], json!({"supported": true, "costEstimates": false}));
    let (_, log) = plain.agent_run(ask("x"), "completed").await;
    assert!(only(&log, "provider.usage")["payload"].get("costEstimateUsd").is_none());
    let mut options = host_options();
    let model = staffed(&mut options, [editor()]);
    let price = Price { input: 100.0, output: 1000.0, cache_read: None, cache_write: None };
    options.prices = Prices::new([("mock-*".to_owned(), price)]);
    let site = Site::configured(|own| *own = options).await;
    let usage = json!({"supported": true, "costEstimates": true, "currency": "USD"});
    assert_eq!(claims(&site).await["providerUsage"], usage);
    model.program(vec![says(&json!({"answer": "x"}))]);
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let cost = only(&log, "provider.usage")["payload"]["costEstimateUsd"].as_f64().unwrap();
    assert!((cost - 0.0037).abs() < 1e-9, "7 tokens in, 3 out: {cost}");
}

#[tokio::test]
async fn an_answer_is_asked_for_again_as_often_as_advertised() {
    let (site, model) = with(editor()).await;
    let reliability = claims(&site).await["envelopes"]["reliability"].clone();
    let most = usize::try_from(reliability["maxRetryAttempts"].as_u64().unwrap()).unwrap();
    let listed: Vec<&str> =
        reliability["events"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
    let mut seen = std::collections::BTreeSet::new();
    let mut run = async |replies: Vec<ModelReply>, status: &str, configurable: Value| {
        let before = model.calls();
        model.program(replies);
        let mut body = ask("x");
        body["configurable"] = configurable;
        let (_, log) = site.agent_run(body, status).await;
        seen.extend(types(&log).into_iter().filter(|kind| kind.starts_with("envelope.")).map(str::to_owned));
        (model.calls() - before, log)
    };
    let invalid = says(&json!({"no": 1}));
    let (count, log) = run(vec![invalid; 9], "failed", json!({})).await;
    assert_eq!((count, of_type(&log, "envelope.retry.attempted").len()), (most, most - 1));
    let spent = &only(&log, "envelope.retry.exhausted")["payload"];
    assert_eq!((&spent["totalAttempts"], &spent["finalReason"]), (&json!(most), &json!("schema-violation")));
    assert!(place(&log, "envelope.retry.exhausted") < place(&log, "node.failed"));

    let refusal = ModelReply { stop: StopReason::Refusal, ..says(&json!("no")) };
    let (count, log) = run(vec![refusal], "failed", json!({})).await;
    assert_eq!((count, of_type(&log, "envelope.retry.exhausted").len()), (1, 0), "a refusal is final");
    assert_eq!(only(&log, "agent.invocation.completed")["payload"]["outcome"], "refused");

    let cut = ModelReply { stop: StopReason::MaxTokens, content: "{\"answ".to_owned(), ..says(&json!("")) };
    let (count, log) = run(vec![cut.clone(), says(&json!({"answer": "x"}))], "completed", json!({})).await;
    assert_eq!((count, &only(&log, "envelope.retry.attempted")["payload"]["reason"]), (2, &json!("truncation")));
    only(&log, "envelope.truncated");
    // A workflow's node sets the room; an answer that was cut off gets so many times as much.
    let config = json!({"agentId": EDITOR, "maxTokens": 50});
    let node = json!({"id": "agent", "typeId": "vendor.baton.agent", "name": "n", "position": {"x": 0, "y": 0}, "config": config, "inputs": {}});
    let flow = json!({
        "id": "flow", "name": "flow", "version": "1", "nodes": [node], "edges": [], "triggers": [], "variables": [],
        "metadata": {}, "settings": {},
    });
    assert_eq!(site.post("/v1/workflows", flow).await.status, 201);
    let completion = &reliability["completion"];
    assert_eq!(completion["distinguishesTruncation"], true);
    for (first, room) in
        [(cut.clone(), 50 * completion["truncationBudgetMultiplier"].as_u64().unwrap()), (says(&json!({"no": 1})), 50)]
    {
        model.program(vec![first, says(&json!({"answer": "x"}))]);
        site.agent_run(json!({"workflowId": "flow", "inputs": {"task": "x"}}), "completed").await;
        assert_eq!(model.last_room(), Some(room));
    }

    let fenced = ModelReply { content: "Here:\n```json\n{\"answer\": \"x\"}\n```".to_owned(), ..says(&json!("")) };
    let (count, log) = run(vec![fenced], "completed", json!({})).await;
    assert_eq!((count, of_type(&log, "envelope.retry.attempted").len()), (1, 0), "reading it is no retry");

    let prose = ModelReply { content: "I would say that it works.".to_owned(), ..says(&json!("")) };
    let (count, _) =
        run(vec![prose.clone(), prose.clone(), prose, says(&json!({"answer": "x"}))], "completed", json!({})).await;
    assert_eq!(count, most + 1, "once more, to put it into shape");
    let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
    assert!(listed.iter().all(|kind| seen.contains(kind)), "listed {listed:?}, seen {seen:?}");
    assert!(seen.iter().all(|kind| listed.contains(kind)), "listed {listed:?}, seen {seen:?}");
}

#[tokio::test]
async fn prompts_can_be_shown_whole() {
    let mut options = host_options();
    options.show_prompts = true;
    staffed(&mut options, [editor()]);
    let site = Site::configured(|own| *own = options).await;
    assert_eq!(claims(&site).await["prompts"]["observability"], "full");
    let (_, log) = site.agent_run(ask("x"), "completed").await;
    let composed = &only(&log, "prompt.composed")["payload"];
    assert!(composed["composed"].as_str().unwrap().contains("SYSTEM-PROMPT-TEXT"), "{composed}");
    assert_eq!((&composed["systemPrompt"], composed.get("userPrompt")), (&composed["composed"], None));
}

#[tokio::test]
async fn an_agent_asks_people_and_goes_on() {
    let mut options = host_options();
    options.limits.clarification_rounds = 1;
    let model = staffed(&mut options, [AgentCard { tools: vec!["openwop:envelope".to_owned()], ..editor() }]);
    let shelf =
        baton_tool::native::tools().try_fold(baton_tool::ToolSet::default(), baton_tool::ToolSet::tool).unwrap();
    options.tools = baton_tool::Toolbox::new(shelf);
    let site = Site::configured(|own| *own = options).await;
    let told = claims(&site).await;
    assert_eq!(
        told["supportedEnvelopes"],
        json!(["clarification.request", "schema.request", "schema.response", "error"])
    );
    assert_eq!(told["limits"]["clarificationRounds"], 1);
    let question =
        json!({"type": "clarification.request", "payload": {"questions": [{"id": "who", "question": "For whom?"}]}});
    let asks = || calls(&[("openwop:envelope", question.clone())]);
    model.program(vec![asks(), says(&json!({"answer": "for the king"})), asks(), asks()]);

    let (run, log) = site.agent_run(ask("Write a letter."), "waiting-input").await;
    let called = only(&log, "agent.toolCalled");
    assert_eq!(only(&log, "clarification.requested")["causationId"], called["eventId"]);
    let open = site.get("/v1/interrupts").await.json();
    assert!(open.to_string().contains("For whom?"), "{open}");
    let path = format!("/v1/runs/{run}/interrupts/agent");
    assert_eq!(site.post(&path, json!({"resumeValue": {"answers": {"who": "the king"}}})).await.status, 200);
    site.reach(&run, "completed").await;
    let (snapshot, log) = (site.get(&format!("/v1/runs/{run}")).await.json(), site.log(&run).await);
    assert_eq!(snapshot["variables"]["result"], json!({"answer": "for the king"}));
    assert!(model.last().contains("the king"), "the model heard what people said");
    assert_eq!(only(&log, "agent.invocation.completed")["payload"]["outcome"], "completed");

    // Asking more often than advertised ends the run.
    let (run, _) = site.agent_run(ask("Write a letter."), "waiting-input").await;
    let path = format!("/v1/runs/{run}/interrupts/agent");
    assert_eq!(site.post(&path, json!({"resumeValue": {"answers": {"who": "nobody"}}})).await.status, 200);
    site.reach(&run, "failed").await;
    let (snapshot, log) = (site.get(&format!("/v1/runs/{run}")).await.json(), site.log(&run).await);
    assert_eq!(snapshot["error"]["code"], "cap_breached");
    assert_eq!(only(&log, "cap.breached")["payload"]["kind"], "clarification");
}
