//! A child's beginning names the event of its parent that asked for it.

use crate::common;
use crate::forking;

use baton_model::{EventId, RunId};
use common::{World, tenant};
use forking::branch_at;
use forking::library::{self, Case};
use serde_json::{Value, json};

async fn events(world: &World, run: &RunId) -> Vec<Value> {
    let page = world.host.events(&tenant(), run, None, 1000).await.unwrap();
    page.events.iter().map(|event| serde_json::from_str(&event.body).unwrap()).collect()
}

/// The event of a parent that planned this child: the beginning of its handoff, or its sub-workflow's visit.
fn asked(log: &[Value], child: &RunId) -> u64 {
    let made = log.iter().find(|event| event["payload"]["childRunId"] == json!(child)).unwrap();
    let seq = made["sequence"].as_u64().unwrap() as usize;
    let succeeded = log[seq..].iter().find(|event| {
        event["payload"]["phase"] == "dispatch.succeeded" && event["payload"]["childRunId"] == json!(child)
    });
    match succeeded {
        Some(event) => {
            let began = log.iter().find(|began| began["eventId"] == event["causationId"]).unwrap();
            assert_eq!(began["payload"]["phase"], "dispatch.began");
            began["sequence"].as_u64().unwrap()
        }
        None => {
            let visit = |event: &&Value| event["type"] == "node.started" && event["nodeId"] == made["nodeId"];
            log[..seq].iter().rfind(visit).unwrap()["sequence"].as_u64().unwrap()
        }
    }
}

#[tokio::test]
async fn the_beginning_of_a_child_is_caused_by_its_parent() {
    let mut children = 0;
    for case in library::all().into_iter().filter(Case::ended) {
        let (world, run) = case.played().await;
        for row in world.rows().await {
            let first = events(&world, &row.id).await.swap_remove(0);
            assert_eq!(first["payload"].get("causationHostId"), None, "it happened here");
            let Some(parent) = &row.parent else {
                assert_eq!(first.get("causationId"), None, "{}: nobody caused it", case.name);
                continue;
            };
            let cause = EventId::at(parent, asked(&events(&world, parent).await, &row.id));
            assert_eq!(first["causationId"], json!(cause), "{}: {}", case.name, row.workflow);
            children += 1;
            world.verified(&row.id, case.name).await;
            // A branch of it from the very beginning is nobody's child.
            let branch = world.fork(&row.id, branch_at(0)).await;
            assert_eq!(events(&world, &branch).await[0].get("causationId"), None, "{}", case.name);
        }
        world.see_through().await;
        // The children of a branch follow from the branch's own events.
        let branch = world.fork(&run, branch_at(1)).await;
        world.see_through().await;
        for row in world.rows().await.into_iter().filter(|row| row.parent.as_ref() == Some(&branch)) {
            let first = events(&world, &row.id).await.swap_remove(0);
            let cause = EventId::at(&branch, asked(&events(&world, &branch).await, &row.id));
            assert_eq!(first["causationId"], json!(cause), "{}: {}", case.name, row.workflow);
        }
        world.stop().await;
    }
    assert!(children > 20, "{children}");
}
