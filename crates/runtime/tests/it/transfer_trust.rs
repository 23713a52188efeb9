//! A file says what happened; it cannot say whose it is here, nor what its runs may do.

use crate::common;
use crate::forking;
use crate::transferring;

use std::sync::Arc;

use baton_model::event::DivergenceKind;
use baton_model::{Limits, Owner, Principal, RunId, RunSnapshot, TenantId};
use baton_runtime::{ForkRun, Options};
use baton_store::{Disk, Store, StoredRecord};
use common::scenario::{call, parent, pipeline};
use common::{World, options, other, tenant, who};
use forking::forged::forged;
use forking::{branch_at, over, replay_from};
use serde_json::{Value, json};
use transferring::{elsewhere, export, fresh, import, import_as, lines, sealed};

fn owner(tenant: &TenantId, principal: Option<&str>) -> Owner {
    Owner { tenant: tenant.clone(), principal: principal.map(str::to_owned), subject: None }
}

fn caller(subject: &str) -> Principal {
    Principal { subject: subject.to_owned(), ..who() }
}

/// A file with a run that calls a child, in which every log says that it is somebody else's.
async fn file_of(victim: &Value) -> (String, RunId) {
    let world = World::with([parent("parent", call("pipeline")), pipeline("pipeline")]).await;
    let run = world.start("parent").await;
    world.ended(&run).await;
    let mut all = lines(&export(&world, &run).await);
    for line in &mut all {
        if line["record"]["kind"] == "run.started" {
            line["record"]["body"]["payload"]["owner"] = victim.clone();
        }
    }
    (sealed(&all), run)
}

impl World {
    async fn forked_by(&self, subject: &str, run: &RunId, request: ForkRun) -> RunSnapshot {
        let fork = self.host.fork(&caller(subject), run, request, None).await.unwrap().run_id;
        self.ended(&fork).await
    }
}

#[tokio::test]
async fn a_branch_of_what_came_with_a_file_acts_for_whoever_made_it() {
    for victim in [json!({"tenant": "victim", "principal": "ceo"}), json!({"tenant": "acme", "principal": "ceo"})] {
        let (file, run) = file_of(&victim).await;
        let there = fresh().await;
        import(&there.host, &file).await.unwrap();
        assert_eq!(there.snapshot(&run).await.owner.tenant, tenant(), "{victim}");
        let mine = owner(&tenant(), Some("key-9"));
        for from in [0, 1, 3] {
            let branch = there.forked_by("key-9", &run, branch_at(from)).await;
            assert_eq!(branch.owner, mine, "{victim}, branched at {from}");
            // Where it called its child itself, that one is for the same people.
            let child = there.snapshot(&branch.child_runs[0].run_id).await;
            assert_eq!(child.owner, mine, "{victim}, branched at {from}");
            // It is a run of this host, so what is forked off it stays with its owner, as with any other run.
            let twig = there.forked_by("key-8", &branch.run_id, branch_at(from + 1)).await;
            assert_eq!(twig.owner, mine, "{victim}, branched at {from}");
            if from > 1 {
                let before = there.forked_by("key-8", &branch.run_id, branch_at(1)).await;
                assert_eq!(before.owner, owner(&tenant(), Some("key-8")), "off the source, by way of the branch");
            }
            let replay = there.forked_by("key-9", &run, replay_from(from)).await;
            assert_eq!(replay.owner.tenant, tenant());
            let branch = there.forked_by("key-9", &replay.run_id, branch_at(replay.at_seq)).await;
            assert_eq!(branch.owner, mine, "{victim}, by way of a replay from {from}");
        }
    }
}

#[tokio::test]
async fn a_branch_at_home_stays_with_the_owner_of_its_source() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    for from in [0, 2] {
        let branch = world.forked_by("key-9", &run, branch_at(from)).await;
        assert_eq!(branch.owner, owner(&tenant(), Some("key-1")), "at {from}");
    }
    // Elsewhere nobody vouches for that branch either.
    let branch = world.forked_by("key-9", &run, branch_at(2)).await.run_id;
    let there = fresh().await;
    import_as(&there.host, &other(), &export(&world, &branch).await).await.unwrap();
    let (rival, mine) = (other().tenant, owner(&other().tenant, Some("key-1")));
    assert_eq!(there.host.snapshot(&rival, &branch).await.unwrap().owner, owner(&rival, None));
    let twig = there.host.fork(&other(), &branch, branch_at(4), None).await.unwrap().run_id;
    assert_eq!(there.host.snapshot(&rival, &twig).await.unwrap().owner, mine);
}

/// What a host does not allow its own runs, a file does not allow them either.
#[tokio::test]
async fn a_branch_keeps_to_the_limits_of_its_host() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    let file = export(&world, &run).await;
    let limits = Limits {
        max_node_executions: 3,
        max_run_duration_ms: 5_000,
        max_loop_iterations: 2,
        max_fan_out: 1,
        max_budget_tokens: 700,
        ..Limits::default()
    };
    let small = Options { limits, ..options(512) };
    let there = elsewhere(Disk::default(), Arc::default(), small).await;
    import(&there.host, &file).await.unwrap();
    assert_eq!(there.ended(&there.start("pipeline").await).await.error.unwrap().code, "recursion_limit_exceeded");
    for from in [0, 3] {
        let branch = there.forked_by("key-1", &run, branch_at(from)).await;
        let error = branch.error.unwrap_or_else(|| panic!("branched at {from}, it went on"));
        assert_eq!(error.code, "recursion_limit_exceeded", "{from}");
        // What it may have stays in what is known of it, so whoever folds it again finds the same.
        let overlay = there.row(&branch.run_id).await.origin.unwrap().overlay;
        let bounds = (overlay.max_duration_ms, overlay.max_loop_iterations, overlay.max_fan_out);
        assert_eq!(bounds, (Some(5_000), Some(2), Some(1)));
        assert_eq!(overlay.budget.unwrap().ceilings.max_tokens, Some(700));
        there.verified(&branch.run_id, "within the limits").await;
        // And a branch of the branch has no more.
        let twig = there.forked_by("key-1", &branch.run_id, branch_at(from + 1)).await;
        assert_eq!(twig.error.unwrap().code, "recursion_limit_exceeded", "{from}");
    }
}

fn edit(record: &mut StoredRecord, change: impl Fn(&mut Value)) {
    let mut body: Value = serde_json::from_str(&record.body).unwrap();
    change(&mut body);
    record.body = body.to_string();
}

/// Whoever has the disk can write what they like; they cannot have it called proven.
#[tokio::test]
async fn what_is_served_is_what_is_proven() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    type Change = fn(&mut StoredRecord);
    let forgeries: [(Change, DivergenceKind, &str); 5] = [
        (|record| edit(record, |body| body["nodeId"] = json!("other")), DivergenceKind::Output, "nodeId"),
        (|record| edit(record, |body| body["causationId"] = json!("evt_x")), DivergenceKind::Output, "causationId"),
        (|record| edit(record, |body| body["note"] = json!("ok")), DivergenceKind::Output, "note"),
        (|record| edit(record, |body| body["payload"]["note"] = json!("ok")), DivergenceKind::Output, "payload"),
        (|record| edit(record, |body| body["type"] = json!("node.failed")), DivergenceKind::TypeMismatch, "type"),
    ];
    for (change, kind, member) in forgeries {
        let store = forged(&world, &run, |all| change(&mut all[4])).await;
        let other = over(Arc::clone(&store) as _, store, Arc::clone(&world.clock), 2, options(512)).await;
        let found = other.host.verify(&tenant(), &run).await.unwrap().difference;
        let found = found.unwrap_or_else(|| panic!("{member} is found out"));
        assert_eq!((found.seq, found.kind), (4, kind), "{member}");
        let (Some(said), Some(meant)) = (found.original, found.replayed) else { panic!("{member}: both are shown") };
        assert_ne!(said[member], meant[member], "{said} and {meant}");
    }
    // Another order of members is another build's, and no other event.
    let store = forged(&world, &run, |all| edit(&mut all[4], |_| {})).await;
    let text = async |store: &dyn Store| store.records(&run, 4, 1).await.unwrap().pop().unwrap().body;
    assert_ne!(text(store.as_ref()).await, text(world.reader.as_ref()).await, "the test would prove nothing");
    let other = over(Arc::clone(&store) as _, store, Arc::clone(&world.clock), 2, options(512)).await;
    other.verified(&run, "in another order").await;
}

/// The file as a version would have written it that knew no checksums, and otherwise byte by byte the same.
fn text_without_checksums(file: &str) -> String {
    let (mut text, mark) = (file.replacen("\"version\":4", "\"version\":3", 1), ",\"sum\":\"");
    while let Some(begin) = text.find(mark) {
        let value = begin + mark.len();
        let end = value + text[value..].find('"').unwrap() + 1;
        text.replace_range(begin..end, "");
    }
    text
}

/// What was written down with care to look alike comes in as this host would have written it.
#[tokio::test]
async fn an_event_that_can_be_read_in_two_ways_is_not_kept_that_way() {
    let world = World::with([pipeline("pipeline")]).await;
    let run = world.start("pipeline").await;
    world.ended(&run).await;
    let text = export(&world, &run).await;
    let plain = text_without_checksums(&text);
    let twice = plain.replacen(r#""type":"run.completed""#, r#""type":"run.failed","type":"run.completed""#, 1);
    assert_ne!(plain, twice);
    let body = twice.rsplit_once("{\"footer\"").unwrap().0;
    let digest = baton_model::Digest::of_bytes(body);
    let mut footer = lines(&plain).pop().unwrap();
    footer["footer"]["digest"] = json!(digest);
    let there = fresh().await;
    import(&there.host, &format!("{body}{footer}\n")).await.unwrap();
    let last = there.length(&run).await - 1;
    let (ours, theirs) =
        (world.reader.records(&run, last, 1).await.unwrap(), there.reader.records(&run, last, 1).await.unwrap());
    assert_eq!(ours, theirs);
    assert!(import(&there.host, &text).await.unwrap().already_here);
}
