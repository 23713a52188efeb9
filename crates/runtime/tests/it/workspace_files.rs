//! Files from outside a run: versions, etags, conflicts, and their histories.

use crate::common;

use baton_model::code;
use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_runtime::{ErrorKind, NewFile};
use baton_testkit::Flow;
use common::versioned_stores::{WRITE, file, new_file};
use common::{World, tenant};
use serde_json::json;

fn matching(path: &str, content: &str, etag: &str) -> NewFile {
    NewFile { if_match: Some(etag.to_owned()), ..new_file(path, content) }
}

#[tokio::test]
async fn a_write_that_expects_another_file_is_refused() {
    let world = World::new().await;
    let put = async |new: NewFile| world.host.put_file(&tenant(), DEFAULT_WORKSPACE, new).await;
    let missing = put(matching("a.md", "x", "w1")).await.unwrap_err();
    assert_eq!((missing.kind, missing.code), (ErrorKind::Conflict, code::WORKSPACE_CONFLICT));
    assert_eq!(missing.details["currentVersion"], json!(0));
    let first = put(new_file("a.md", "one")).await.unwrap();
    let stale = put(matching("a.md", "x", "definitely-stale")).await.unwrap_err();
    assert_eq!(stale.details["currentVersion"], json!(1));
    let second = put(matching("a.md", "two", &first.meta.etag)).await.unwrap();
    assert_eq!(second.meta.version, 2);
    assert_eq!(put(matching("a.md", "x", &first.meta.etag)).await.unwrap_err().details["currentVersion"], json!(2));
    put(matching("a.md", "three", &format!("\"{}\"", second.meta.etag))).await.unwrap();
    put(matching("a.md", "four", "*")).await.unwrap();
    assert_eq!(put(new_file("a.md", "five")).await.unwrap().meta.version, 5, "without If-Match, the last one wins");

    let delete = async |etag: Option<&str>| {
        world.host.delete_file(&tenant(), DEFAULT_WORKSPACE, "a.md", etag.map(str::to_owned)).await
    };
    assert_eq!(delete(Some("w1")).await.unwrap_err().details["currentVersion"], json!(5));
    let current = world.read("a.md").await.unwrap().meta.etag;
    assert!(delete(Some(&current)).await.unwrap());
    assert!(!delete(None).await.unwrap(), "gone is gone");
    assert!(put(matching("a.md", "x", &current)).await.is_err(), "what was deleted does not match");
    world.audit_versioned_stores("conflicts").await;
}

#[tokio::test]
async fn a_file_made_again_begins_at_version_one_and_its_past_stays_in_the_history() {
    let run = Flow::chain("run", &[("write", WRITE, file("a.md", "by a run"))]);
    let world = World::with([run]).await;
    let one = world.write("a.md", "one").await;
    world.write("a.md", "two").await;
    assert!(world.host.delete_file(&tenant(), DEFAULT_WORKSPACE, "a.md", None).await.unwrap());
    assert_eq!(world.read("a.md").await, None);
    let again = world.write("a.md", "again").await;
    assert_eq!(again.meta.version, 1);
    assert_ne!(again.meta.etag, one.meta.etag, "another file, another etag");
    let by_run = world.finish("run").await;
    world.write("b.md", "other").await;

    let at = async |version: u64| {
        let found = world.host.file(&tenant(), DEFAULT_WORKSPACE, "a.md", Some(version)).await.unwrap();
        found.map(|file| file.content)
    };
    assert_eq!((at(1).await.unwrap().as_str(), at(2).await.unwrap().as_str()), ("again", "by a run"));
    assert_eq!(at(3).await, None);
    let changes = world.host.file_changes(&tenant(), DEFAULT_WORKSPACE, Some("a.md"), None, 100).await.unwrap();
    let versions: Vec<_> =
        changes.iter().map(|change| (change.change, change.file.as_ref().map(|f| f.version))).collect();
    assert_eq!(versions, [(5, Some(2)), (4, Some(1)), (3, None), (2, Some(2)), (1, Some(1))]);
    assert_eq!(changes[0].run_id, Some(by_run.run_id));
    let older = world.host.file_changes(&tenant(), DEFAULT_WORKSPACE, None, Some(4), 2).await.unwrap();
    assert_eq!(older.iter().map(|change| change.change).collect::<Vec<_>>(), [3, 2]);
    world.audit_versioned_stores("made again").await;
}

/// Named workspaces are apart from the one runs see.
#[tokio::test]
async fn another_workspace_is_another_versioned_store() {
    let world = World::new().await;
    world.write("a.md", "shared").await;
    world.host.put_file(&tenant(), "mine", new_file("a.md", "private")).await.unwrap();
    assert_eq!(world.read("a.md").await.unwrap().content, "shared");
    let mine = world.host.file(&tenant(), "mine", "a.md", None).await.unwrap().unwrap();
    assert_eq!((mine.content.as_str(), mine.meta.version), ("private", 1));
}
