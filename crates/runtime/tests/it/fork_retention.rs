//! What forks need is kept, and what is gone is not made up.

use crate::common;
use crate::forking;

use baton_model::{RunId, RunStatus, code};
use baton_runtime::ErrorKind;
use baton_store::VersionedStoreId;
use common::versioned_stores::contents;
use common::{World, accept, tenant};
use forking::library;
use forking::{branch_at, replay_from};

/// A run that has ended, and a branch of it that waits where the run waited.
async fn parted() -> (World, RunId, RunId, u64) {
    let world = World::with([library::mindful("mindful")]).await;
    let run = world.start("mindful").await;
    world.waiting(&run).await;
    let waits = world.length(&run).await;
    world.drive(0).await;
    let branch = world.fork(&run, branch_at(waits)).await;
    world.waiting(&branch).await;
    (world, run, branch, waits)
}

#[tokio::test]
async fn a_log_that_forks_share_is_not_dropped() {
    let (world, run, branch, _) = parted().await;
    let replay = world.replayed(&run, 4).await;
    for fork in [&branch, &replay] {
        let refused = world.host.prune(&tenant(), &run, true).await.unwrap_err();
        assert_eq!((refused.kind, refused.code), (ErrorKind::Conflict, code::RUN_CONFLICT));
        assert!(refused.message.contains(fork.as_str()), "{refused:?}");
        world.see_through().await;
        world.host.prune(&tenant(), fork, true).await.unwrap();
    }
    world.host.prune(&tenant(), &run, true).await.unwrap();
    for run in [&run, &branch, &replay] {
        assert_eq!(world.host.events(&tenant(), run, None, 9).await.unwrap_err().code, code::RUN_PRUNED);
        let refused = world.try_fork(run, replay_from(1)).await.unwrap_err();
        assert_eq!(refused.code, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE);
        assert_eq!(refused.details["reason"], "event_log_unavailable");
    }
    // Nothing of theirs is left, also not what a branch had of its own.
    for row in world.rows().await {
        let ledgers = [
            VersionedStoreId::memory(&tenant(), row.memory_scope.clone()),
            VersionedStoreId::workspace(&tenant(), row.workspace_scope.clone()),
        ];
        for ledger in ledgers.iter().filter(|ledger| ledger.scope != "default") {
            assert_eq!(world.reader.versioned_changes(ledger, None, None, 9).await.unwrap(), [], "{ledger:?}");
            assert_eq!(world.reader.versioned_base(ledger).await.unwrap(), None, "{ledger:?}");
        }
    }
    assert!(world.read("plan.md").await.is_some(), "the tenant's files stay");
    world.stop().await;
}

#[tokio::test]
async fn what_a_branch_remembers_outlives_its_source() {
    let (world, run, branch, waits) = parted().await;
    let saw = world.looked(&run, waits - 1).await;
    world.host.prune(&tenant(), &run, false).await.unwrap();
    // The branch goes on with what there was at its fork point.
    world.resolve(&branch, "gate", accept()).await.unwrap();
    let view = world.ended(&branch).await;
    assert_eq!(view.status, RunStatus::Completed);
    assert_eq!(contents(&view, "seen"), saw.0, "from before the fork");
    assert_eq!(contents(&view, "then"), ["two", "one"], "the newest of them was forgotten");
    assert_eq!(world.recall(branch.as_str()).await, ["two", "one"]);
    // What came before is the source's, of which nobody can say any more how it looked.
    for seq in [0, waits - 1] {
        let refused = world.host.surroundings(&tenant(), &branch, seq).await.unwrap_err();
        assert_eq!(refused.code, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE, "{seq}");
        assert_eq!(refused.details["reason"], "retention_expired", "{seq}");
    }
    let refused = world.try_fork(&branch, branch_at(waits - 1)).await.unwrap_err();
    assert_eq!(refused.code, code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE);
    let twig = world.fork(&branch, branch_at(waits)).await;
    world.waiting(&twig).await;
    world.resolve(&twig, "gate", accept()).await.unwrap();
    assert_eq!(contents(&world.ended(&twig).await, "then"), ["two", "one"], "a fork of its own part still can");
    assert_eq!(world.looked(&branch, waits).await.0, saw.0);
    let log = world.log_of(&branch).await;
    world.verified(&branch, "its log is whole").await;
    assert_eq!(log.len() as u64, world.length(&branch).await);
    world.stop().await;
}

/// A branch can be pruned while others that came from it are kept, as long as its log stays.
#[tokio::test]
async fn a_branch_in_the_middle_can_be_forgotten() {
    let (world, _, branch, waits) = parted().await;
    world.see_through().await;
    let length = world.length(&branch).await;
    let twig = world.fork(&branch, branch_at(length - 3)).await;
    world.ended(&twig).await;
    let saw = world.looked(&twig, world.length(&twig).await - 1).await;
    assert_eq!(world.host.prune(&tenant(), &branch, true).await.unwrap_err().kind, ErrorKind::Conflict);
    world.host.prune(&tenant(), &branch, false).await.unwrap();
    assert_eq!(world.looked(&twig, world.length(&twig).await - 1).await, saw);
    let refused = world.host.surroundings(&tenant(), &twig, waits).await.unwrap_err();
    assert_eq!(refused.details["reason"], "retention_expired");
    world.stop().await;
}
