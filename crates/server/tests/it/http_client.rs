//! The client crate against the real host over a socket: both sides mean the same by every field.

use crate::support;
use baton_conformance::Conformance;

use baton_client::{ChatMessage, Client, DiffOp, Error, Fork, ForkOverlay, NewFile, NewMemory, RenderPrompt, StartRun};
use baton_model::{ForkMode, RunStatus, SideEffects, Trust};
use baton_server::{Keys, ServerOptions, serve};
use serde_json::json;
use support::Site;
use tokio::net::TcpListener;

async fn served() -> (Site, Client, Client) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let site = Site::open().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let keys = Keys::parse("full:acme,reader:acme:runs:read").unwrap();
    let options = ServerOptions { keys, ..ServerOptions::default() };
    tokio::spawn(serve(listener, site.host.clone(), options, site.shutdown.clone()));
    let client = |key: &str| Client::new(&base, Some(key)).unwrap();
    let (full, reader) = (client("full"), client("reader"));
    (site, full, reader)
}

fn code(error: &Error) -> &str {
    error.code().unwrap_or_else(|| panic!("{error}"))
}

#[tokio::test]
async fn memory_goes_there_and_back() {
    let (site, client, _) = served().await;
    let new =
        NewMemory { content: "x".into(), tags: vec!["t".into()], ttl_seconds: Some(60.0), ..NewMemory::default() };
    let odd = "team/a b?#%ä";
    let entry = client.memory_put(odd, &new, Some("k")).await.unwrap();
    assert_eq!(client.memory_put(odd, &new, Some("k")).await.unwrap(), entry, "one key, one entry");
    assert!(entry.expires_at.is_some());
    assert_eq!(client.memory_get(odd, &entry.id).await.unwrap(), entry);
    assert_eq!(client.memory_list(odd, Some("t"), Some(5)).await.unwrap().entries, std::slice::from_ref(&entry));
    assert!(client.memory_list(odd, Some("u"), None).await.unwrap().entries.is_empty());
    let scopes = client.memory_scopes().await.unwrap().scopes;
    assert_eq!((scopes.len(), scopes[0].scope.as_str(), scopes[0].version), (1, odd, 1));
    client.memory_delete(odd, &entry.id).await.unwrap();
    assert_eq!(code(&client.memory_get(odd, &entry.id).await.unwrap_err()), "not_found");
    for bad in ["", ".", ".."] {
        assert!(matches!(client.memory_list(bad, None, None).await, Err(Error::BadName { .. })), "{bad:?}");
        assert!(matches!(client.memory_delete(odd, bad).await, Err(Error::BadName { .. })), "{bad:?}");
        assert!(matches!(client.memory_get(bad, "m").await, Err(Error::BadName { .. })), "{bad:?}");
    }
    site.shutdown.cancel();
}

#[tokio::test]
async fn agents_tools_and_prompts_go_there_and_back() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tool = support::agents::Echo::new("mcp:notes.a/b", &[]);
    let site = Site::configured(|options| {
        options.test_hooks = Conformance::hooks();
        support::agents::staffed(options, [support::agents::editor()]);
        options.tools = support::agents::toolbox(&[tool]);
    })
    .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let test_capabilities = Some(Conformance::of(&site.host).unwrap().capabilities());
    let options =
        ServerOptions { keys: Keys::parse("full:acme").unwrap(), test_capabilities, ..ServerOptions::default() };
    tokio::spawn(serve(listener, site.host.clone(), options, site.shutdown.clone()));
    let client = Client::new(&base, Some("full")).unwrap();

    let list = client.agents().await.unwrap();
    assert_eq!(list.total, list.agents.len());
    let editor = client.agent(support::agents::EDITOR).await.unwrap();
    assert!(list.agents.contains(&editor) && editor.has_handoff_schemas);
    assert_eq!(code(&client.agent("nobody").await.unwrap_err()), "not_found");
    assert!(matches!(client.agent("..").await, Err(Error::BadName { .. })));

    let start = StartRun {
        agent_id: Some(editor.agent_id.clone()),
        inputs: [("task".to_owned(), json!("x"))].into_iter().collect(),
        tags: vec!["t".to_owned()],
        ..StartRun::default()
    };
    let run = client.start_run(&start, Some("k")).await.unwrap();
    assert_eq!(client.start_run(&start, Some("k")).await.unwrap().run_id, run.run_id);
    let message = ChatMessage {
        text: "@chief editor hello".to_owned(),
        conversation_id: Some("c".to_owned()),
        ..ChatMessage::default()
    };
    let chat = client.chat(&message, None).await.unwrap();
    for id in [&run.run_id, &chat.run_id] {
        site.reach(id.as_str(), "completed").await;
    }

    let tools = client.tools(Some("mcp")).await.unwrap();
    assert_eq!((tools.len(), tools[0].safety_tier.as_str()), (1, "read"));
    assert_eq!(client.tool("mcp:notes.a/b").await.unwrap(), tools[0]);
    assert!(client.tools(Some("workflow")).await.unwrap().is_empty());

    let prompts = client.prompts(Some("user"), None).await.unwrap();
    let id = prompts.items[0]["templateId"].as_str().unwrap();
    assert_eq!(client.prompt(id, Some("1.0.0")).await.unwrap(), prompts.items[0]);
    let render = RenderPrompt {
        reference: json!("prompt:conformance.prompt.trust-marker"),
        variables: [("userPayload".to_owned(), json!("x"))].into_iter().collect(),
        content_trust: Trust::Untrusted,
        workspace_id: None,
    };
    let rendered = client.render_prompt(&render).await.unwrap();
    assert!(rendered.composed.unwrap().contains("<UNTRUSTED>x</UNTRUSTED>"));
    assert_eq!(rendered.refs, ["prompt:conformance.prompt.trust-marker@1.0.0"]);
    site.shutdown.cancel();
}

#[tokio::test]
async fn files_go_there_and_back() {
    let (site, client, _) = served().await;
    let new = |content: &str| NewFile { content: content.into(), content_type: None };
    let first = client.put_file("notes/a.md", &new("1"), None).await.unwrap();
    assert_eq!((first.meta.version, first.meta.content_type.as_str()), (1, "text/markdown"));
    let second = client.put_file("notes/a.md", &new("2"), Some(&first.meta.etag)).await.unwrap();
    let stale = client.put_file("notes/a.md", &new("3"), Some(&first.meta.etag)).await.unwrap_err();
    assert_eq!(code(&stale), "workspace_conflict");
    assert!(matches!(&stale, Error::Api { details, .. } if details["currentVersion"] == 2), "{stale}");
    assert_eq!(client.file("notes/a.md", None).await.unwrap(), second);
    assert_eq!(client.file("notes/a.md", Some(1)).await.unwrap(), first);
    assert_eq!(client.files(Some("notes/")).await.unwrap().files, std::slice::from_ref(&second.meta));
    assert_eq!(code(&client.delete_file("notes/a.md", Some("old")).await.unwrap_err()), "workspace_conflict");
    client.delete_file("notes/a.md", Some(&second.meta.etag)).await.unwrap();
    assert_eq!(code(&client.delete_file("notes/a.md", None).await.unwrap_err()), "not_found");
    let page = client.file_changes(Some("notes/a.md"), None, Some(2)).await.unwrap();
    assert!(page.changes[0].deleted && page.changes[0].version.is_none());
    assert_eq!((page.changes[1].version, page.next_before), (Some(2), Some(2)));
    let rest = client.file_changes(None, page.next_before, None).await.unwrap();
    assert_eq!((rest.changes.len(), rest.changes[0].change, rest.next_before), (1, 1, None));
    assert!(matches!(client.file("..", None).await, Err(Error::BadName { .. })));
    assert_eq!(code(&client.file("a/../b", None).await.unwrap_err()), "validation_error");
    site.shutdown.cancel();
}

#[tokio::test]
async fn the_past_is_read_and_pruned() {
    let (site, client, reader) = served().await;
    site.register("keep", "vendor.baton.memory.put", json!({"content": "kept"})).await;
    let run = site.completed("keep").await;
    let state = client.state_at(&run, None).await.unwrap();
    assert_eq!(
        (state.run_id.as_str(), state.around.memory_scope.as_str(), state.around.memory_version),
        (run.as_str(), run.as_str(), 1)
    );
    assert_eq!(state.around.memory.unwrap()[0].content, "kept");
    assert!(state.around.workspace.unwrap().is_empty() && state.around.omitted.is_empty());
    assert!(client.state_at(&run, Some(0)).await.unwrap().around.memory.unwrap().is_empty());
    let part = reader.state_at(&run, None).await.unwrap().around;
    assert_eq!(
        (part.memory, part.workspace, part.omitted),
        (None, None, vec!["memory".to_owned(), "workspace".to_owned()])
    );
    assert_eq!(code(&reader.prune(&run, false).await.unwrap_err()), "forbidden");
    let pruned = client.prune(&run, false).await.unwrap();
    assert_eq!((pruned.run_id.as_str(), pruned.pruned_runs, pruned.log), (run.as_str(), 1, false));
    assert_eq!(code(&client.state_at(&run, Some(0)).await.unwrap_err()), "replay_memory_snapshot_unavailable");
    assert!(client.prune(&run, true).await.unwrap().log);
    assert_eq!(code(&client.events(&run, None, 1).await.unwrap_err()), "run_pruned");
    site.shutdown.cancel();
}

#[tokio::test]
async fn forks_proofs_and_comparisons_go_there_and_back() {
    let (site, client, reader) = served().await;
    let nodes =
        [("a", "core.noop", json!({})), ("b", "core.setVariable", json!({"name": "x", "expression": "variables.y"}))];
    site.register_chain("two", &nodes).await;
    let started = site.post("/v1/runs", json!({"workflowId": "two", "inputs": {"y": 1}})).await.json();
    let run = started["runId"].as_str().unwrap().to_owned();
    site.reach(&run, "completed").await;

    let replay = Fork::new(ForkMode::Replay, None, ForkOverlay::default());
    let forked = client.fork(&run, &replay, Some("k")).await.unwrap();
    assert_eq!(client.fork(&run, &replay, Some("k")).await.unwrap(), forked, "one key, one fork");
    assert_eq!((forked.source_run_id.as_str(), forked.from_seq, forked.mode), (run.as_str(), 0, ForkMode::Replay));
    assert_eq!(forked.status, RunStatus::Pending);
    site.reach(forked.run_id.as_str(), "completed").await;
    let same = reader.diff(&run, forked.run_id.as_str()).await.unwrap();
    assert_eq!((same.diverged_at_seq, same.event_diffs.len(), same.truncated), (None, 0, false));

    let overlay = ForkOverlay {
        variables: json!({"y": 2}).as_object().unwrap().clone(),
        side_effects: Some(SideEffects::Real),
        ..ForkOverlay::default()
    };
    let branch = Fork::new(ForkMode::Branch, Some(1), overlay);
    let branch = client.fork(&run, &branch, None).await.unwrap();
    site.reach(branch.run_id.as_str(), "completed").await;
    let other = reader.diff(&run, branch.run_id.as_str()).await.unwrap();
    assert_eq!(other.diverged_at_seq, other.event_diffs.first().map(|diff| diff.seq));
    assert!(other.event_diffs.iter().any(|diff| diff.op == DiffOp::Changed && diff.a_event.is_some()));
    assert_eq!(other.state_diff["variables"]["x"], json!({"a": 1, "b": 2}));

    let verified = reader.verify(&run).await.unwrap();
    assert!(verified.equal && verified.difference.is_none() && verified.decided > 0);
    assert_eq!(verified.events, client.events(&run, None, 1).await.unwrap().events.len() as u64);
    let ancestry = reader.ancestry(&run).await.unwrap();
    assert_eq!((ancestry.run_id.as_str(), ancestry.parent), (run.as_str(), None));
    let discovery = client.discovery().await.unwrap();
    assert_eq!(discovery["multiAgent"]["executionModel"]["crossHostCausation"]["hostId"], json!(ancestry.host_id));
    assert_eq!(reader.debug_bundle(&run).await.unwrap()["run"]["runId"], json!(run));

    let bad = Fork::new(ForkMode::Branch, None, ForkOverlay::default());
    assert_eq!(code(&client.fork(&run, &bad, None).await.unwrap_err()), "validation_error");
    assert_eq!(code(&reader.diff(&run, "run_nobody").await.unwrap_err()), "run_not_found");
    site.shutdown.cancel();
}
