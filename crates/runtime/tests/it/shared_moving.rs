//! Who has nothing to do asks who has much. What moves is at rest, and nothing of it is lost or done twice.

use crate::common;
use crate::sharing;

use baton_model::RunStatus;
use baton_runtime::{Options, Sharing};
use common::options;
use common::scenario::{call, delayed, parent};
use sharing::{Company, LEASE_MS, audit_epochs, settle, shared};

#[tokio::test]
async fn an_idle_host_takes_work_off_a_busy_one() {
    let (company, a, b) = Company::two([delayed("delayed", 40_000), parent("family", call("delayed"))]).await;
    let mut runs = Vec::new();
    for n in 0..30 {
        runs.push(a.start(if n % 3 == 0 { "family" } else { "delayed" }).await);
    }
    settle(&[&a, &b]).await;
    company.pass(&[&a, &b], 2 * LEASE_MS).await;
    let mut moved = 0;
    for run in &runs {
        let owner = shared(&a).owner(run).await.unwrap();
        moved += usize::from(owner == Some(shared(&b).epoch()));
        for row in a.rows().await.iter().filter(|row| row.root.as_ref() == Some(run)) {
            assert_eq!(shared(&a).owner(&row.id).await.unwrap(), owner, "a tree stays together");
        }
    }
    assert!((5..=25).contains(&moved), "{moved} of 30 moved");
    company.pass(&[&a, &b], 60_000).await;
    for run in &runs {
        assert_eq!(b.ended(run).await.status, RunStatus::Completed);
    }
    assert_eq!(a.rows().await.len(), 40, "every child once");
    b.audit("moved").await;
    assert_eq!(audit_epochs(&b, "moved").await, 2);
    assert_eq!((a.reader.generation(), b.reader.generation()), (1, 1), "nobody met anybody");
    assert_eq!((a.store.lost(), b.store.lost()), (0, 0), "nobody met anybody");
}

#[tokio::test]
async fn nobody_takes_anything_where_that_is_not_wanted() {
    let company = Company::new();
    let alone = || Options { sharing: Sharing { steal: false, ..Sharing::default() }, ..options(512) };
    let (a, b) = (company.join(7, alone()).await, company.join(8, alone()).await);
    a.register(delayed("delayed", 40_000)).await;
    for _ in 0..30 {
        a.start("delayed").await;
    }
    company.pass(&[&a, &b], 60_000).await;
    assert!(a.rows().await.iter().all(|row| row.status == RunStatus::Completed));
    assert_eq!(audit_epochs(&b, "not moved").await, 1);
}
