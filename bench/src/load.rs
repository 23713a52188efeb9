//! A closed loop: each client sends its next request when the answer to the last one is there.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::KEY;
use crate::http::Connection;
use crate::stats::Samples;

/// How long a loop goes on: whichever comes first.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) time: Duration,
    /// Operations of all clients together.
    pub(crate) count: usize,
}

pub(crate) struct Load {
    pub(crate) samples: Samples,
    pub(crate) elapsed: Duration,
}

impl Load {
    pub(crate) fn rate(&self) -> f64 {
        self.samples.len() as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }
}

/// Runs `operation` from `clients` connections until the budget is used up. Must be called inside a `LocalSet`: the
/// generator keeps to one thread, so that it takes as little as possible from the server.
pub(crate) async fn closed_loop<F>(address: SocketAddr, clients: usize, budget: Budget, operation: F) -> Result<Load>
where
    F: AsyncFn(&mut Connection) -> Result<()> + 'static,
{
    let mut connections = Vec::with_capacity(clients);
    for _ in 0..clients {
        connections.push(Connection::open(address, KEY).await?);
    }
    let operation = Rc::new(operation);
    let durations = Rc::new(RefCell::new(Vec::with_capacity(budget.count.min(1 << 20))));
    let left = Rc::new(std::cell::Cell::new(budget.count));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut connection in connections {
        let (operation, durations, left) = (Rc::clone(&operation), Rc::clone(&durations), Rc::clone(&left));
        tasks.spawn_local(async move {
            while left.get() > 0 && start.elapsed() < budget.time {
                left.set(left.get() - 1);
                let begun = Instant::now();
                operation(&mut connection).await?;
                durations.borrow_mut().push(begun.elapsed());
            }
            anyhow::Ok(())
        });
    }
    while let Some(finished) = tasks.join_next().await {
        finished??;
    }
    let elapsed = start.elapsed();
    Ok(Load { samples: Samples::new(durations.take()), elapsed })
}
