//! What a run remembers, for how long, and who else sees it.

use crate::common;

use std::sync::Arc;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Limits, RunStatus, Secret, Timestamp, code};
use baton_runtime::{Clock as _, ErrorKind, NewMemory, Options};
use baton_store::Disk;
use baton_testkit::Flow;
use common::scenario::noop;
use common::versioned_stores::{
    DELETE, FILES, GET, LIST, PUT, READ, WRITE, contents, file, files, list, new_file, new_memory, note, paths, scoped,
};
use common::{World, accept, options, other, tenant, who};
use serde_json::json;

/// Remembers one thing and lists what it sees.
fn writer(id: &str, content: &str) -> Flow {
    Flow::chain(id, &[("put", PUT, note(content)), ("list", LIST, list())])
}

/// Lists, waits for a human, lists again.
fn patient(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("first", LIST, json!({"into": "before"})),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("second", LIST, json!({"into": "after"})),
        ],
    )
}

#[tokio::test]
async fn every_node_does_what_it_says() {
    let flow = Flow::chain(
        "all",
        &[
            ("one", PUT, json!({"contentExpression": "'n is ' + string(variables.n)", "tags": ["a", "b"]})),
            ("two", PUT, json!({"content": "two", "tags": ["b"], "ttlSeconds": 60})),
            ("tagged", LIST, json!({"tag": "a", "into": "tagged"})),
            ("newest", LIST, json!({"limit": 1, "into": "newest"})),
            ("get", GET, json!({"idExpression": "nodes.one.entry.id", "into": "got"})),
            ("miss", GET, json!({"id": "mem_nowhere", "into": "missed"})),
            ("delete", DELETE, json!({"idExpression": "nodes.one.entry.id"})),
            ("gone", DELETE, json!({"idExpression": "nodes.one.entry.id"})),
            ("left", LIST, json!({"into": "left"})),
            ("write", WRITE, json!({"path": "a.json", "content": "{}", "contentType": "application/json"})),
            ("again", WRITE, file("a.json", "[]")),
            ("read", READ, json!({"path": "a.json", "into": "file"})),
            ("files", FILES, files()),
        ],
    )
    .variable("n", "number", json!(4));
    let world = World::with([flow]).await;
    let ended = world.finish("all").await;
    assert_eq!(ended.status, RunStatus::Completed, "{:?}", ended.error);
    assert_eq!(contents(&ended, "tagged"), ["n is 4"]);
    assert_eq!(contents(&ended, "newest"), ["two"]);
    assert_eq!(ended.variables["got"]["tags"], json!(["a", "b"]));
    assert_eq!(ended.variables["missed"], json!(null));
    assert_eq!(contents(&ended, "left"), ["two"]);
    let outputs: Vec<_> = world
        .records(&ended.run_id)
        .await
        .iter()
        .filter(|record| record.kind == "node.completed" && record.body.contains("\"deleted\""))
        .map(|record| record.body.contains("\"deleted\":true"))
        .collect();
    assert_eq!(outputs, [true, false], "only one of the two deleted it");
    // A run does not see its own files; the next one does.
    assert_eq!((&ended.variables["file"], paths(&ended, "files")), (&json!(null), vec![]));
    assert_eq!(ended.workspace, []);
    let written = world.read("a.json").await.unwrap();
    assert_eq!((written.content.as_str(), written.meta.version), ("[]", 2));
    let next = world.finish("all").await;
    assert_eq!((&next.variables["file"]["content"], paths(&next, "files")), (&json!("[]"), vec!["a.json".to_owned()]));
    assert_eq!(contents(&next, "left"), ["two"], "a run without a scope has one of its own");
    world.audit_versioned_stores("every node").await;
}

#[tokio::test]
async fn a_run_sees_its_scope_as_it_was_at_its_start_and_what_it_wrote_itself() {
    let flow = Flow::chain(
        "late",
        &[
            ("put", PUT, note("mine")),
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("list", LIST, list()),
            ("files", FILES, files()),
            ("read", READ, json!({"path": "plan.md", "into": "plan"})),
        ],
    );
    let world = World::with([flow, writer("writer", "theirs")]).await;
    world.remember("team", "before").await;
    world.write("plan.md", "first").await;
    let run = world.start_in("late", "team").await;
    world.waiting(&run).await;
    world.remember("team", "after").await;
    world.write("plan.md", "second").await;
    world.write("new.md", "new").await;
    let theirs = world.start_in("writer", "team").await;
    assert_eq!(contents(&world.ended(&theirs).await, "seen"), ["theirs", "after", "mine", "before"]);
    world.resolve(&run, "gate", accept()).await.unwrap();
    let ended = world.ended(&run).await;
    assert_eq!(contents(&ended, "seen"), ["mine", "before"]);
    assert_eq!(ended.variables["plan"]["content"], "first");
    assert_eq!(paths(&ended, "files"), ["plan.md"]);
    let shown: Vec<_> = ended.workspace.iter().map(|meta| (meta.path.as_str(), meta.version)).collect();
    assert_eq!(shown, [("plan.md", 1)], "the snapshot shows what the run sees");
    world.audit_versioned_stores("as of the start").await;
}

#[tokio::test]
async fn an_entry_deleted_by_others_stays_in_sight_and_cannot_be_deleted_again() {
    let flow = Flow::chain(
        "late",
        &[
            ("gate", "core.approvalGate", json!({"title": "Go on?"})),
            ("delete", DELETE, json!({"idExpression": "inputs.id"})),
            ("list", LIST, list()),
        ],
    );
    let world = World::with([flow]).await;
    let entry = world.remember("team", "old").await;
    let mut start = scoped("late", "team");
    start.inputs.insert("id".to_owned(), json!(entry.id));
    let run = world.host.start_run(&who(), start, None).await.unwrap().run_id;
    world.waiting(&run).await;
    assert!(world.host.delete_memory(&tenant(), "team", &entry.id).await.unwrap());
    assert!(!world.host.delete_memory(&tenant(), "team", &entry.id).await.unwrap());
    world.resolve(&run, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&run).await, "seen"), ["old"]);
    let (_, changes) = world.ledgers().await.pop_first().unwrap();
    assert_eq!(changes.len(), 2, "written once, deleted once: {changes:#?}");
}

/// A child shares its parent's scope and shows its parent what it wrote; an isolated worker does neither, and its own
/// children share with it.
#[tokio::test]
async fn children_inherit_a_scope_unless_they_are_isolated() {
    let next = |worker: &str| {
        json!({
            "rules": [{"when": "iteration == 1", "decide": {"kind": "next-worker", "nextWorkerIds": [worker]}}],
            "otherwise": {"kind": "terminate", "reason": "done"}
        })
    };
    let lead = |id: &str, dispatch| {
        Flow::chain(
            id,
            &[
                ("put", PUT, note("root")),
                ("lead", "core.orchestrator.supervisor", next("middle")),
                ("dispatch", "core.dispatch", dispatch),
            ],
        )
        .edge("dispatch", "lead")
    };
    let middle = Flow::chain(
        "middle",
        &[
            ("put", PUT, note("middle")),
            ("call", "core.subWorkflow", json!({"workflowId": "leaf"})),
            ("list", LIST, list()),
        ],
    );
    let shared = lead("shared", json!({}));
    let isolated = lead("isolated", json!({"memoryScopeIsolation": "isolated"}));
    let world = World::with([shared, isolated, middle, writer("leaf", "leaf")]).await;
    for (workflow, scope) in
        [("shared", None), ("shared", Some("team")), ("isolated", None), ("isolated", Some("club"))]
    {
        let root = match scope {
            Some(scope) => world.start_in(workflow, scope).await,
            None => world.start(workflow).await,
        };
        assert_eq!(world.ended(&root).await.status, RunStatus::Completed);
        let rows: Vec<_> = world.rows().await.into_iter().filter(|row| row.root.as_ref() == Some(&root)).collect();
        let [middle, leaf] = &rows[..] else { panic!("{rows:#?}") };
        let own = scope.unwrap_or(root.as_str());
        let theirs = if workflow == "isolated" { middle.id.as_str() } else { own };
        assert_eq!((middle.memory_scope.as_str(), leaf.memory_scope.as_str()), (theirs, theirs));
        let (middle, leaf) = (world.snapshot(&middle.id).await, world.snapshot(&leaf.id).await);
        if workflow == "isolated" {
            assert_eq!(contents(&leaf, "seen"), ["leaf", "middle"]);
            assert_eq!(contents(&middle, "seen"), ["leaf", "middle"]);
            assert_eq!(world.recall(own).await, ["root"]);
            assert_eq!(world.recall(theirs).await, ["leaf", "middle"]);
        } else {
            assert_eq!(contents(&leaf, "seen"), ["leaf", "middle", "root"]);
            assert_eq!(contents(&middle, "seen"), ["leaf", "middle", "root"]);
            assert_eq!(world.recall(own).await, ["leaf", "middle", "root"]);
        }
    }
    world.audit_versioned_stores("scopes").await;
}

/// A failed child's writes stay, but its parent does not see them.
#[tokio::test]
async fn only_a_completed_child_shows_its_parent_what_it_wrote() {
    let parent = |id: &str, child: &str| {
        Flow::chain(
            id,
            &[
                ("call", "core.subWorkflow", json!({"workflowId": child, "onChildFailure": "absorb"})),
                ("list", LIST, list()),
            ],
        )
    };
    let failing = Flow::chain("failing", &[("put", PUT, note("last words")), ("bad", "core.fail", json!({}))]);
    let flows = [parent("good", "writer"), parent("sad", "failing"), writer("writer", "news"), failing];
    let world = World::with(flows).await;
    assert_eq!(contents(&world.finish("good").await, "seen"), ["news"]);
    let sad = world.finish("sad").await;
    assert_eq!(contents(&sad, "seen"), [""; 0]);
    assert_eq!(world.recall(sad.run_id.as_str()).await, ["last words"]);
}

#[tokio::test]
async fn an_entry_expires_to_the_millisecond_counted_from_its_write() {
    let flow = Flow::chain(
        "slow",
        &[
            ("wait", "core.delay", json!({"ms": 10_000})),
            ("put", PUT, json!({"content": "brief", "ttlSeconds": 3600})),
            ("list", LIST, list()),
        ],
    );
    let world = World::with([flow, patient("patient")]).await;
    let start = world.clock.now();
    let run = world.start_in("slow", "team").await;
    world.settle().await;
    world.clock.advance(10_000);
    assert_eq!(contents(&world.ended(&run).await, "seen"), ["brief"]);
    let entry = world.entries(&tenant(), "team").await.remove(0);
    let end = start.plus_millis(3_610_000);
    assert_eq!((entry.created_at, entry.expires_at), (start.plus_millis(10_000), Some(end)));

    let looking = world.start_in("patient", "team").await;
    world.waiting(&looking).await;
    world.clock.advance_to(Timestamp::from_micros(end.as_micros() - 1));
    assert_eq!(world.recall("team").await, ["brief"], "a microsecond before its end");
    let last = world.start_in("patient", "team").await;
    assert_eq!(contents(&world.waiting(&last).await, "before"), ["brief"]);
    world.clock.advance_to(end);
    assert_eq!(world.recall("team").await, [""; 0], "at its end");
    assert_eq!(world.host.memory_entry(&tenant(), "team", &entry.id).await.unwrap(), None);
    assert!(!world.host.delete_memory(&tenant(), "team", &entry.id).await.unwrap(), "nothing is there to delete");
    let late = world.start_in("patient", "team").await;
    assert_eq!(contents(&world.waiting(&late).await, "before"), [""; 0]);
    // Expiry is judged when a run looks, also in a run that saw the entry before.
    world.resolve(&looking, "gate", accept()).await.unwrap();
    let looked = world.ended(&looking).await;
    assert_eq!((contents(&looked, "before"), contents(&looked, "after")), (vec!["brief".to_owned()], vec![]));
    world.audit_versioned_stores("expiry").await;
}

fn small() -> Options {
    let limits = Limits {
        max_memory_entry_bytes: 10,
        max_memory_entries: 3,
        max_workspace_file_bytes: 10,
        max_workspace_files: 2,
        ..Limits::default()
    };
    Options { limits, secrets: vec![Secret::new("key", "abcdefgh")], ..options(512) }
}

#[tokio::test]
async fn a_scope_that_is_full_takes_more_once_something_is_gone() {
    let world = World::open(Disk::default(), Arc::default(), small()).await;
    world.register(writer("writer", "by a run")).await;
    let put = |content: &str, ttl_ms| {
        let new = NewMemory { ttl_ms, ..new_memory(content) };
        let host = world.host.clone();
        async move { host.put_memory(&tenant(), "team", new, None).await }
    };
    put("brief", Some(1000)).await.unwrap();
    let second = put("second", None).await.unwrap();
    put("third", None).await.unwrap();
    for _ in 0..2 {
        let full = put("fourth", None).await.unwrap_err();
        assert_eq!((full.kind, full.code, &full.details["limit"]), (ErrorKind::TooLarge, code::MEMORY_FULL, &json!(3)));
    }
    let run = world.start_in("writer", "team").await;
    let failed = world.ended(&run).await;
    assert_eq!((failed.status, failed.error.unwrap().code.as_str()), (RunStatus::Failed, code::MEMORY_FULL));
    world.clock.advance(999);
    assert!(put("fourth", None).await.is_err());
    world.clock.advance(1);
    let run = world.start_in("writer", "team").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed, "what has expired takes no room");
    assert!(put("fourth", None).await.is_err());
    assert!(world.host.delete_memory(&tenant(), "team", &second.id).await.unwrap());
    put("fourth", None).await.unwrap();
    assert!(put("fifth", None).await.is_err());
    world.host.put_memory(&tenant(), "elsewhere", new_memory("other"), None).await.unwrap();
    world.audit_versioned_stores("full").await;
}

#[tokio::test]
async fn what_is_too_large_or_no_use_is_refused_and_secrets_never_arrive() {
    let world = World::open(Disk::default(), Arc::default(), small()).await;
    let flow = Flow::chain("long", &[("put", PUT, note("more than ten bytes"))]);
    let secret = Flow::chain("secret", &[("put", WRITE, file("key.md", "abcdefgh more"))]);
    for flow in [flow, secret, Flow::chain("noop", &[("n", "core.noop", noop())])] {
        world.register(flow).await;
    }
    let put = async |new: NewMemory| world.host.put_memory(&tenant(), "team", new, None).await;
    let long = put(new_memory("äääääx")).await.unwrap_err();
    assert_eq!((long.kind, &long.details["observed"]), (ErrorKind::Invalid, &json!(11)), "bytes, not letters");
    put(new_memory("äääää")).await.unwrap();
    let at_once = put(NewMemory { ttl_ms: Some(0), ..new_memory("x") }).await.unwrap_err();
    assert_eq!(at_once.kind, ErrorKind::Invalid, "an entry that is never visible is a mistake");
    assert!(put(NewMemory { tags: vec![String::new()], ..new_memory("x") }).await.is_err());
    for scope in ["", "a\nb", &"x".repeat(241)] {
        assert!(world.host.put_memory(&tenant(), scope, new_memory("x"), None).await.is_err());
        assert_eq!(world.entries(&tenant(), scope).await, []);
    }
    let failed = world.finish("long").await;
    assert_eq!((failed.status, failed.error.unwrap().code.as_str()), (RunStatus::Failed, code::VALIDATION_ERROR));

    let put = async |path: &str, content: &str| {
        world.host.put_file(&tenant(), DEFAULT_WORKSPACE, new_file(path, content)).await
    };
    let long = put("a.md", "12345678901").await.unwrap_err();
    assert_eq!((long.kind, long.code), (ErrorKind::TooLarge, code::WORKSPACE_TOO_LARGE));
    assert_eq!(long.details["limit"], "maxFileBytes");
    put("a.md", "1234567890").await.unwrap();
    put("b.md", "").await.unwrap();
    let many = put("c.md", "").await.unwrap_err();
    assert_eq!((many.kind, &many.details["limit"]), (ErrorKind::TooLarge, &json!("maxFiles")));
    put("a.md", "again").await.unwrap();
    assert!(world.host.delete_file(&tenant(), DEFAULT_WORKSPACE, "b.md", None).await.unwrap());
    put("c.md", "").await.unwrap();
    for path in ["../up", "a/../b", "", "/root", "a b"] {
        assert_eq!(put(path, "x").await.unwrap_err().kind, ErrorKind::Invalid, "{path}");
    }
    // The marker is longer than the secret; what counts is what is stored.
    let failed = world.finish("secret").await;
    assert_eq!(failed.error.unwrap().code, code::WORKSPACE_TOO_LARGE);
    world.audit_versioned_stores("limits").await;
}

#[tokio::test]
async fn secrets_are_taken_out_of_entries_tags_and_files() {
    let options = Options { secrets: vec![Secret::new("key", "sk-live-1234")], ..options(512) };
    let world = World::open(Disk::default(), Arc::default(), options).await;
    let flow = Flow::chain(
        "leaky",
        &[
            ("put", PUT, json!({"content": "it is sk-live-1234", "tags": ["sk-live-1234"]})),
            ("write", WRITE, file("key.md", "sk-live-1234!")),
            ("list", LIST, list()),
        ],
    );
    world.register(flow).await;
    let ended = world.finish("leaky").await;
    assert_eq!(contents(&ended, "seen"), ["it is [REDACTED:key]"]);
    assert_eq!(ended.variables["seen"][0]["tags"], json!(["[REDACTED:key]"]));
    assert_eq!(world.read("key.md").await.unwrap().content, "[REDACTED:key]!");
    assert_eq!(world.remember("team", "sk-live-1234").await.content, "[REDACTED:key]");
    let kept = format!("{:?}", world.ledgers().await);
    assert!(!kept.contains("sk-live"), "{kept}");
}

/// The same names in two tenants are two different things.
#[tokio::test]
async fn tenants_share_nothing_but_names() {
    let world = World::new().await;
    let rival = other();
    let flow = |content: &str| {
        Flow::chain(
            "both",
            &[
                ("put", PUT, note(content)),
                ("write", WRITE, file("plan.md", content)),
                ("list", LIST, list()),
                ("files", FILES, files()),
            ],
        )
    };
    world.register(flow("ours")).await;
    world.host.register_workflow(&rival.tenant, flow("theirs").build()).await.unwrap();
    for _ in 0..2 {
        let run = world.start_in("both", "team").await;
        world.ended(&run).await;
    }
    let theirs = world.host.start_run(&rival, scoped("both", "team"), None).await.unwrap().run_id;
    world.settle().await;
    let ended = world.host.snapshot(&rival.tenant, &theirs).await.unwrap();
    assert_eq!((contents(&ended, "seen"), paths(&ended, "files")), (vec!["theirs".to_owned()], vec![]));
    assert_eq!(world.recall("team").await, ["ours", "ours"]);
    let foreign = world.entries(&rival.tenant, "team").await;
    assert_eq!(foreign.len(), 1);
    assert_eq!(world.host.memory_entry(&tenant(), "team", &foreign[0].id).await.unwrap(), None);
    assert!(!world.host.delete_memory(&tenant(), "team", &foreign[0].id).await.unwrap());
    assert_eq!(world.read("plan.md").await.unwrap().meta.version, 2);
    let their_file = world.host.file(&rival.tenant, DEFAULT_WORKSPACE, "plan.md", None).await.unwrap().unwrap();
    assert_eq!((their_file.meta.version, their_file.content.as_str()), (1, "theirs"));
    assert!(world.host.delete_file(&rival.tenant, DEFAULT_WORKSPACE, "plan.md", None).await.unwrap());
    assert_eq!(world.read("plan.md").await.unwrap().content, "ours");
    let scopes = world.host.memory_scopes(&rival.tenant).await.unwrap();
    assert_eq!(scopes.iter().map(|row| (row.scope.as_str(), row.version)).collect::<Vec<_>>(), [("team", 1)]);
    // Looking back is for the owner only.
    for result in [
        world.host.surroundings(&tenant(), &theirs, 0).await.map(drop),
        world.host.state_at(&tenant(), &theirs, None).await.map(drop),
        world.host.check_fork_point(&tenant(), &theirs, 0).await,
        world.host.prune(&tenant(), &theirs, false).await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().code, code::RUN_NOT_FOUND);
    }
    world.audit_versioned_stores("two tenants").await;
}

/// Nobody could look up what such a run remembers, and a list of scopes would be as long as their names.
#[tokio::test]
async fn a_run_has_no_scope_that_nobody_can_name() {
    let world = World::new().await;
    world.register(writer("plain", "noted")).await;
    for scope in ["", "a\u{0}b", &"x".repeat(241), &"x".repeat(1_000_000)] {
        let request = baton_runtime::StartRun { scope_id: Some(scope.to_owned()), ..common::request("plain") };
        let refused = world.host.start_run(&common::who(), request, None).await.unwrap_err();
        assert_eq!(refused.code, baton_model::code::VALIDATION_ERROR, "{refused}");
        assert_eq!(refused.details["path"], "/scopeId");
    }
    assert!(world.rows().await.is_empty());
    let longest = baton_runtime::StartRun { scope_id: Some("x".repeat(240)), ..common::request("plain") };
    world.host.start_run(&common::who(), longest, None).await.unwrap();
}
