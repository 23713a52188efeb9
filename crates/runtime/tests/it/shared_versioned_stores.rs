//! Memory and workspaces that several hosts write to: nothing is lost, nothing has a twin, and who reads sees what was
//! acknowledged.

use crate::common;
use crate::sharing;

use std::collections::BTreeSet;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{RunStatus, code};
use baton_store::{Claim, VersionedStoreId};
use baton_testkit::Flow;
use common::versioned_stores::{
    DELETE, FILES, LIST, PUT, WRITE, contents, file, files, list, new_file, new_memory, note, paths, scoped,
};
use common::{World, options, tenant, who};
use serde_json::json;
use sharing::{Company, audit_epochs, settle, shared, while_time_passes};

const SCOPE: &str = "team";

fn worker(id: &str) -> Flow {
    Flow::chain(
        id,
        &[
            ("put", PUT, note("by a run")),
            ("write", WRITE, file("plan.md", "by a run")),
            ("again", PUT, note("by a run, again")),
            ("list", LIST, list()),
        ],
    )
}

fn reader() -> Flow {
    Flow::chain("reader", &[("list", LIST, list()), ("files", FILES, files())])
}

async fn versions(world: &World, ledger: &VersionedStoreId) -> Vec<u64> {
    let mut changes = world.reader.versioned_changes(ledger, None, None, usize::MAX).await.unwrap();
    changes.reverse();
    changes.into_iter().map(|change| change.version).collect()
}

#[tokio::test]
async fn writes_of_callers_and_runs_on_three_hosts_interleave_without_loss() {
    let (company, a, b) = Company::two([worker("worker")]).await;
    let c = company.join(9, options(512)).await;
    let hosts = [&a, &b, &c];
    let mut work = Vec::new();
    for round in 0..12 {
        for (n, world) in hosts.into_iter().enumerate() {
            let host = world.host.clone();
            work.push(tokio::spawn(async move {
                match (round + n) % 3 {
                    0 => drop(host.start_run(&who(), scoped("worker", SCOPE), None).await.unwrap()),
                    1 => drop(
                        host.put_memory(&tenant(), SCOPE, new_memory(&format!("{n} {round}")), None).await.unwrap(),
                    ),
                    _ => {
                        let file = new_file(&format!("{n}-{round}.md"), "text");
                        drop(host.put_file(&tenant(), DEFAULT_WORKSPACE, file).await.unwrap());
                    }
                }
            }));
        }
    }
    let all = async {
        for one in work {
            one.await.unwrap();
        }
    };
    while_time_passes(&company, &hosts, all).await;
    while_time_passes(&company, &hosts, async {
        while a.rows().await.iter().any(|row| !row.status.is_terminal()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let runs = a.rows().await;
    assert_eq!(runs.len(), 12);
    for row in &runs {
        assert_eq!(row.status, RunStatus::Completed, "{:?}", b.snapshot(&row.id).await.error);
    }
    let memory = versions(&b, &VersionedStoreId::memory(&tenant(), SCOPE)).await;
    assert_eq!(memory, (1..=12 * 2 + 12).collect::<Vec<u64>>(), "every write has a version of its own");
    let entries = c.host.memory(&tenant(), SCOPE, None, None).await.unwrap();
    assert_eq!(entries.iter().map(|entry| &entry.id).collect::<BTreeSet<_>>().len(), 36);
    assert_eq!(versions(&b, &VersionedStoreId::workspace(&tenant(), DEFAULT_WORKSPACE)).await.len(), 24);
    b.audit("ledgers").await;
    b.audit_versioned_stores("ledgers").await;
    audit_epochs(&b, "ledgers").await;
    for world in hosts {
        assert_eq!((world.reader.generation(), world.store.lost()), (1, 0), "nobody's commit was refused");
    }
}

/// What was acknowledged on one host, a run that starts on another sees.
#[tokio::test]
async fn a_run_sees_what_was_written_elsewhere_before_it_began() {
    let (_company, a, b) = Company::two([reader(), worker("worker")]).await;
    let run = b.host.start_run(&who(), scoped("reader", SCOPE), None).await.unwrap().run_id;
    assert!(contents(&b.ended(&run).await, "seen").is_empty());
    for round in 0..3 {
        let (writes, reads) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        let text = format!("round {round}");
        let entry = writes.host.put_memory(&tenant(), SCOPE, new_memory(&text), None).await.unwrap();
        writes.host.put_file(&tenant(), DEFAULT_WORKSPACE, new_file(&format!("{round}.md"), "text")).await.unwrap();
        let run = reads.host.start_run(&who(), scoped("reader", SCOPE), None).await.unwrap().run_id;
        let seen = reads.ended(&run).await;
        assert_eq!(contents(&seen, "seen")[0], text);
        assert_eq!(paths(&seen, "files").len(), round + 1);
        assert_eq!(reads.host.memory_entry(&tenant(), SCOPE, &entry.id).await.unwrap(), Some(entry));
    }
    settle(&[&a, &b]).await;
}

/// A conditional write has one winner, whichever hosts are asked.
#[tokio::test]
async fn a_conditional_write_has_one_winner_among_all_hosts() {
    let (_company, a, b) = Company::two([]).await;
    let first = a.host.put_file(&tenant(), DEFAULT_WORKSPACE, new_file("plan.md", "one")).await.unwrap();
    let write = |world: &World, text: &str| {
        let (host, mut file) = (world.host.clone(), new_file("plan.md", text));
        file.if_match = Some(first.meta.etag.clone());
        tokio::spawn(async move { host.put_file(&tenant(), DEFAULT_WORKSPACE, file).await })
    };
    let mut won = 0;
    for attempt in [write(&a, "two"), write(&b, "three"), write(&a, "four")] {
        match attempt.await.unwrap() {
            Ok(written) => {
                assert_eq!(written.meta.version, 2);
                won += 1;
            }
            Err(error) => assert_eq!(error.code, code::WORKSPACE_CONFLICT),
        }
    }
    assert_eq!(won, 1);
}

/// An entry is forgotten once, whoever asks; and the claim of a versioned store that nobody uses is let go.
#[tokio::test]
async fn an_entry_is_forgotten_once_and_claims_do_not_pile_up() {
    let forget = Flow::chain("forget", &[("gone", DELETE, json!({"id": "no-such"})), ("put", PUT, note("x"))]);
    let (company, a, b) = Company::two([forget]).await;
    let entry = a.host.put_memory(&tenant(), SCOPE, new_memory("once"), None).await.unwrap();
    let gone = [&a, &b, &a].map(|world| {
        let (host, id) = (world.host.clone(), entry.id.clone());
        tokio::spawn(async move { host.delete_memory(&tenant(), SCOPE, &id).await.unwrap() })
    });
    let mut forgot = 0;
    for one in gone {
        forgot += usize::from(one.await.unwrap());
    }
    assert_eq!(forgot, 1);
    let run = a.start("forget").await;
    assert_eq!(a.ended(&run).await.status, RunStatus::Completed);
    let name = format!("ledger:{}/memory/{run}", tenant());
    assert_eq!(shared(&b).claim(&name).await.unwrap(), Claim::Held(shared(&a).epoch()), "its own memory");
    a.host.prune(&tenant(), &run, true).await.unwrap();
    company.pass(&[&a, &b], 10_000).await;
    assert_eq!(shared(&b).claim(&name).await.unwrap(), Claim::Mine, "let go with the run");
}

/// The host that may write dies with it; the next one has what was acknowledged.
#[tokio::test]
async fn a_dead_writer_holds_nobody_up_for_longer_than_its_lease() {
    let (company, a, b) = Company::two([]).await;
    for n in 0..3 {
        a.host.put_memory(&tenant(), SCOPE, new_memory(&format!("{n}")), None).await.unwrap();
    }
    a.store.die();
    let host = b.host.clone();
    let next = async move { host.put_memory(&tenant(), SCOPE, new_memory("next"), None).await };
    while_time_passes(&company, &[&a, &b], next).await.unwrap();
    assert_eq!(versions(&b, &VersionedStoreId::memory(&tenant(), SCOPE)).await, [1, 2, 3, 4]);
}

/// Versioned stores that a host wrote to and has put out of its mind, and whose claims it still has.
async fn write_to_many(world: &World, count: usize) {
    for number in 0..count {
        let scope = format!("{SCOPE}-{number}");
        world.host.put_memory(&tenant(), &scope, new_memory("text"), None).await.unwrap();
    }
}

/// As many as stay in mind are not unused; see `KEPT_LEDGERS`.
const MANY: usize = 2500;

#[tokio::test]
async fn claims_that_nobody_uses_are_let_go_in_a_few_commits() {
    let (company, a, b) = Company::two([]).await;
    write_to_many(&a, MANY).await;
    let claim = format!("ledger:{}/memory/{SCOPE}-0", tenant());
    assert!(matches!(shared(&b).claim(&claim).await.unwrap(), Claim::Held(_)));
    let before = a.store.commits();
    company.pass(&[&a, &b], sharing::LEASE_MS / 3 + 1000).await;
    assert!(matches!(shared(&b).claim(&claim).await.unwrap(), Claim::Mine));
    let commits = a.store.commits() - before;
    assert!(commits < 50, "{commits} commits for {MANY} claims");
    // What is let go can be taken again, and what is in use was not let go.
    for scope in [format!("{SCOPE}-1"), format!("{SCOPE}-{}", MANY - 1)] {
        a.host.put_memory(&tenant(), &scope, new_memory("more"), None).await.unwrap();
    }
}

/// However long the disk takes with other things, a host that is alive says so.
#[tokio::test]
async fn the_lease_is_renewed_while_claims_wait_for_the_disk() {
    let (company, a, b) = Company::two([]).await;
    write_to_many(&a, MANY).await;
    let me = shared(&a).epoch();
    a.store.hold();
    company.past_lease(&[&a, &b]).await;
    let live = shared(&b).sessions().await.unwrap();
    assert!(live.iter().any(|session| session.epoch == me && !session.lapsed), "{live:?}");
    a.store.release();
    settle(&[&a, &b]).await;
    assert_eq!((shared(&a).epoch(), a.reader.generation()), (me, 1));
}

/// Nor does it wait for those who read.
#[tokio::test]
async fn the_lease_is_renewed_while_all_readers_are_taken() {
    let (company, a, b) = Company::two([]).await;
    let me = shared(&a).epoch();
    a.store.take_readers();
    company.past_lease(&[&a, &b]).await;
    let live = shared(&b).sessions().await.unwrap();
    assert!(live.iter().any(|session| session.epoch == me && !session.lapsed), "{live:?}");
    a.store.give_readers_back();
    write_to_many(&a, 1).await;
    assert_eq!((shared(&a).epoch(), a.reader.generation()), (me, 1));
}
