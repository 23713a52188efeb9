//! W2: the supervisor loop. A supervisor decides turn by turn which worker runs next; each worker is a run of its own
//! that is given a value and hands one back.

mod long;
mod shapes;
pub(crate) mod ten_turns;

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::Sizes;
use crate::api::{self, Outcome};
use crate::definition::{chain, node};
use crate::http::Connection;
use crate::report::Report;
use crate::server::Baton;

const WORKER: &str = "bench-worker";

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    let mut connection = server.connect().await?;
    api::register(&mut connection, &worker()).await?;
    ten_turns::measure(report, &server, folder, sizes).await?;
    shapes::measure(report, &mut connection, sizes).await?;
    long::measure(report, &mut connection, sizes).await?;
    server.kill().await
}

/// Adds one to what it is given.
fn worker() -> Value {
    let add = node("add", "core.setVariable", json!({ "assign": { "result": "variables.task + 1" } }));
    chain(WORKER, &[add], json!([{ "name": "task", "type": "number" }, { "name": "result", "type": "number" }]))
}

/// Each worker is given the loop's value, and its result becomes the loop's value.
fn handed_through() -> Value {
    json!({ "inputMapping": { "task": "value" }, "outputMapping": { "value": "result" } })
}

/// Starts a run with this value, and returns its id.
async fn start(connection: &mut Connection, workflow: &str, value: u64) -> Result<String> {
    api::start_run(connection, &format!(r#"{{"workflowId":"{workflow}","inputs":{{"value":{value}}}}}"#)).await
}

fn check_value(outcome: &Outcome, expected: u64) -> Result<()> {
    let value = &outcome.variables["value"];
    ensure!(value.as_f64() == Some(expected as f64), "the loop ended with {value}, not {expected}");
    Ok(())
}
