//! A disk that fails, and heals again.

use super::{World, in_time};

impl World {
    /// Lets time pass until the disk takes writes again: the host tries at intervals.
    pub async fn recovered(&self) {
        in_time("recovery", async {
            while !self.host.readiness().ready {
                self.clock.advance(100);
                self.settle().await;
            }
        })
        .await;
    }

    /// The disk fails and heals again and again under a busy host.
    pub async fn flap(&self, rounds: u64) {
        for round in 0..rounds {
            self.store.fail_after(round % 7);
            in_time("trouble", async {
                while self.host.readiness().ready {
                    tokio::task::yield_now().await;
                }
            })
            .await;
            self.store.heal();
            in_time("the host is ready again", async {
                while !self.host.readiness().ready {
                    self.clock.advance(50);
                    tokio::task::yield_now().await;
                }
            })
            .await;
        }
    }
}
