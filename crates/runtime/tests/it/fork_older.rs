//! Branches that were made before branches began where no child is under way: their logs fold as they did. Children that
//! were under way are begun again, under other names, and the rest of the step they were forked in is theirs.

use crate::common;
use crate::forking;

use baton_model::RunStatus;
use common::{World, tenant};
use forking::library::{self, Case};
use serde_json::Value;

fn cases() -> Vec<Case> {
    let wanted = ["a child", "a supervisor", "a supervisor of parallel workers", "a loop that remembers"];
    library::all().into_iter().filter(|case| wanted.contains(&case.name)).collect()
}

fn begins(log: &[Value], phase: &str) -> usize {
    log.iter().filter(|event| event["payload"]["phase"] == phase).count()
}

#[tokio::test]
async fn a_branch_that_began_in_the_middle_goes_on_as_it_did() {
    let mut again = 0;
    for case in cases() {
        let (world, run) = case.played().await;
        let source = world.log_of(&run).await;
        let disk = world.stop().await;
        for seq in 1..source.len() as u64 {
            let context = format!("{}, branched at {seq}", case.name);
            let world = World::open(disk.clone(), std::sync::Arc::default(), common::options(512)).await;
            let (world, branch) = forking::written_by_hand(world, &run, seq, None).await;
            world.see_through().await;
            assert_eq!(world.status(&branch).await, RunStatus::Completed, "{context}");
            let log = world.log_of(&branch).await;
            let rest = world.reader.records(&branch, seq, usize::MAX).await.unwrap();
            let rest = rest.iter().take_while(|record| record.part.is_some_and(|part| !part.first)).count();
            assert_eq!(log[..seq as usize + rest], source[..seq as usize + rest], "{context}");
            // A worker that was under way had begun, and its second beginning is told as it always was.
            again += usize::from(begins(&log, "dispatch.succeeded") > begins(&log, "dispatch.began"));
            world.verified(&branch, &context).await;
            let replay = world.replayed(&branch, 0).await;
            assert_eq!(world.log_of(&replay).await, log, "{context}");
            // One of it that is made now begins where no child is under way, before that branch if need be.
            let twig = world.fork(&branch, forking::branch_at(seq)).await;
            world.see_through().await;
            let origin = world.row(&twig).await.origin.unwrap();
            assert!(origin.seq <= seq, "{context}");
            let view = world.host.state_at(&tenant(), &branch, Some(origin.seq.saturating_sub(1))).await.unwrap().view;
            assert!(origin.seq == 0 || view.child_runs.iter().all(|child| child.status.is_terminal()), "{context}");
            let log = world.log_of(&twig).await;
            assert_eq!(begins(&log, "dispatch.succeeded"), begins(&log, "dispatch.began"), "{context}");
            world.verified(&twig, &context).await;
            world.stop().await;
        }
    }
    assert!(again > 5, "only {again} of them were made while a worker was under way");
}
