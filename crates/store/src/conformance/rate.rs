//! How many commits and events a second a store takes: the same load for the `…_append_rate` example of every adapter.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use baton_model::{RunStatus, Versions};

use super::sample::{append, row};
use crate::{Commit, CommitError, CommitReceipt, Journal, RunRow, Write};

const EVENTS: u64 = 4;

/// What a store took with so many commits under way.
#[derive(Debug)]
pub struct Rate {
    under_way: usize,
    commits: usize,
    transactions: u64,
    took: Duration,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (commits, seconds) = (self.commits as f64, self.took.as_secs_f64());
        write!(
            f,
            "{:>4} under way: {:>7.0} commits/s {:>8.0} events/s, {:>5.1} commits per transaction",
            self.under_way,
            commits / seconds,
            commits * EVENTS as f64 / seconds,
            commits / self.transactions as f64,
        )
    }
}

/// Writes runs to an empty store, more and more of them at a time, and reports after each round. `transactions` says
/// how many there have been.
pub async fn measure(
    store: &impl Journal,
    runs: usize,
    transactions: impl Fn() -> u64,
    mut report: impl FnMut(Rate),
) -> Result<(), CommitError> {
    let mut number = 0;
    for (window, runs) in [(1, runs / 20), (16, runs / 4), (64, runs), (256, runs)] {
        let commits: Vec<_> = (number..number + runs).map(run).collect();
        number += runs;
        let before = transactions();
        let took = time(store, commits, window).await?;
        report(Rate { under_way: window, commits: runs, transactions: transactions() - before, took });
    }
    Ok(())
}

/// One commit of a whole run, as a workflow without effects makes it.
fn run(number: usize) -> Commit {
    let row = RunRow { status: RunStatus::Completed, busy: false, ..row(&format!("run_{number:032x}")) };
    let mut whole = append(row.clone(), 0, EVENTS);
    if let Write::Append { records, .. } = &mut whole {
        for record in records {
            let payload = "x".repeat(300);
            record.kind = "node.completed".to_owned();
            record.body = format!(r#"{{"runId":"{}","sequence":{},"payload":"{payload}"}}"#, row.id, record.seq);
            (record.private, record.versions, record.part) = (None, Versions::default(), None);
        }
    }
    Commit::new(1, vec![Write::CreateRun(row), whole])
}

/// Keeps `window` commits under way until all are durable.
async fn time(store: &impl Journal, commits: Vec<Commit>, window: usize) -> Result<Duration, CommitError> {
    let start = Instant::now();
    let mut under_way = VecDeque::<CommitReceipt>::new();
    for commit in commits {
        if under_way.len() == window
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.await?;
        }
        under_way.push_back(store.submit(commit));
    }
    for ticket in under_way {
        ticket.await?;
    }
    Ok(start.elapsed())
}
