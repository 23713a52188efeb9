//! Many runs that wait for a human: the load that W4 measures in memory and W6 restarts over.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::api;
use crate::definition;
use crate::load::{Budget, closed_loop};
use crate::server::Server;

/// Where the runs wait.
pub(crate) const GATE: &str = "gate";
const WORKFLOW: &str = "bench-approval";
const START: &str = r#"{"workflowId":"bench-approval"}"#;
const CLIENTS: usize = 64;
const START_LIMIT: Duration = Duration::from_secs(120);

/// Starts `count` runs, checks a sample of them for waiting, and returns their ids.
pub(crate) async fn suspend(server: &Server, count: usize) -> Result<Vec<String>> {
    api::register(&mut server.connect().await?, &definition::approval(WORKFLOW, GATE)).await?;
    let started = Rc::new(RefCell::new(Vec::with_capacity(count)));
    let ids = Rc::clone(&started);
    let budget = Budget { time: START_LIMIT, count };
    closed_loop(server.address(), CLIENTS.min(count), budget, async move |connection| {
        let id = api::start_run(connection, START).await?;
        ids.borrow_mut().push(id);
        Ok(())
    })
    .await?;
    let runs = started.take();
    ensure!(runs.len() == count, "only {} of {count} runs were started in {START_LIMIT:?}", runs.len());
    let mut connection = server.connect().await?;
    for run in runs.iter().step_by((count / 100).max(1)) {
        let status = api::status(&mut connection, run).await?;
        ensure!(status == "waiting-approval", "run {run} is {status}, not waiting");
    }
    Ok(runs)
}
