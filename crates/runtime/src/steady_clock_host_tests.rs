//! A whole host whose wall clock is set while a timer runs.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use baton_model::{Principal, RunId, RunStatus, Scopes, TenantId, Timestamp};
use baton_store::MemoryStore;
use serde_json::json;
use tokio::sync::watch;

use super::{SteadyClock, TimeSource};
use crate::{Clock, Host, Options, RandomIds, StartRun};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;

#[derive(Default)]
struct Hands {
    wall: AtomicI64,
    elapsed: AtomicI64,
}

impl TimeSource for Arc<Hands> {
    fn wall(&self) -> i64 {
        self.wall.load(Ordering::Relaxed)
    }
    fn elapsed(&self) -> i64 {
        self.elapsed.load(Ordering::Relaxed)
    }
}

struct HandsClock {
    hands: Arc<Hands>,
    steady: SteadyClock<Arc<Hands>>,
    moved: watch::Sender<()>,
}

#[async_trait]
impl Clock for HandsClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.steady.now())
    }

    async fn until(&self, at: Timestamp) {
        let mut moved = self.moved.subscribe();
        while self.now() < at {
            let _ = moved.changed().await;
        }
    }
}

impl HandsClock {
    /// Real time passes, and the wall clock with it.
    async fn pass(&self, seconds: i64) {
        for _ in 0..seconds {
            self.hands.wall.fetch_add(SECOND, Ordering::Relaxed);
            self.hands.elapsed.fetch_add(SECOND, Ordering::Relaxed);
            self.moved.send_replace(());
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn jump(&self, micros: i64) {
        self.hands.wall.fetch_add(micros, Ordering::Relaxed);
        self.moved.send_replace(());
    }
}

async fn status(host: &Host, run: &RunId) -> RunStatus {
    host.snapshot(&TenantId::new("t"), run).await.unwrap().status
}

/// An hour forward, back and forward again, and jumps that stay: a timer of an hour fires after an hour.
#[tokio::test]
async fn a_timer_of_an_hour_takes_an_hour_whatever_is_done_to_the_wall_clock() {
    // What is done to the clock, after how many seconds each; how early and how late the timer may be.
    let cases: [(&[(i64, i64)], i64); 5] = [
        (&[(600, HOUR), (30, -HOUR)], 1),
        (&[(600, -HOUR), (30, HOUR), (30, HOUR), (30, -HOUR)], 1),
        (&[(10, HOUR)], 2),
        (&[(10, -HOUR)], 2),
        (&[(10, 48 * HOUR)], 2),
    ];
    for (jumps, off) in cases {
        let hands = Arc::new(Hands { wall: AtomicI64::new(1_800_000_000 * SECOND), elapsed: AtomicI64::new(0) });
        let steady = SteadyClock::new(Arc::clone(&hands));
        let clock = Arc::new(HandsClock { hands, steady, moved: watch::Sender::new(()) });
        let store = Arc::new(MemoryStore::new());
        let host = Host::open_with(store, Options::default(), Arc::clone(&clock) as _, Arc::new(RandomIds));
        let host = host.await.unwrap();
        let tenant = TenantId::new("t");
        let flow = json!({
            "id": "hour", "name": "hour", "version": "1", "triggers": [], "variables": [], "metadata": {}, "settings": {},
            "nodes": [{"id": "wait", "typeId": "core.delay", "name": "wait", "position": {"x": 0, "y": 0},
                       "config": {"ms": 3_600_000}, "inputs": {}}],
            "edges": [],
        });
        host.register_workflow(&tenant, flow).await.unwrap();
        let who = Principal { tenant, subject: "key".to_owned(), acts_for: None, scopes: Scopes::all(), test: false };
        let request = StartRun { workflow_id: "hour".to_owned(), ..StartRun::default() };
        let run = host.start_run(&who, request, None).await.unwrap().run_id;
        let mut passed = 0;
        for (after, jump) in jumps {
            clock.pass(*after).await;
            clock.jump(*jump);
            passed += after;
        }
        clock.pass(3600 - off - passed).await;
        assert_eq!(status(&host, &run).await, RunStatus::Running, "{jumps:?}: early");
        clock.pass(2 * off + 1).await;
        assert_eq!(status(&host, &run).await, RunStatus::Completed, "{jumps:?}: late");
        host.shutdown().await;
    }
}
