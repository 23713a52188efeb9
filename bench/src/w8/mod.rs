//! W8: what outlives a run. Memory and workspace from outside and from inside runs, what they cost a supervisor's turn
//! and the disk, and how quickly one can look back.

mod look_back;
mod memory;
mod nodes;
mod storage;
mod turns;
mod workspace;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::Sizes;
use crate::api;
use crate::definition::{chain, node};
use crate::load::{Budget, closed_loop};
use crate::probe::Loopback;
use crate::report::Report;
use crate::server::{Baton, Server};

const ENTRY_BYTES: usize = 200;
/// A worker that remembers one thing.
const NOTE_WORKER: &str = "bench-note";
const FILL_CLIENTS: usize = 16;
const FILL_LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn measure(
    report: &mut Report,
    baton: &Baton,
    folder: &Path,
    loopback: &Loopback,
    sizes: &Sizes,
) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    let mut connection = server.connect().await?;
    api::register(&mut connection, &chain(NOTE_WORKER, &[note()], json!([]))).await?;
    memory::measure(report, &server, folder, loopback, sizes).await?;
    workspace::measure(report, &server, folder, loopback, sizes).await?;
    nodes::measure(report, &mut connection, sizes).await?;
    turns::measure(report, &server, folder, sizes).await?;
    server.kill().await?;
    look_back::measure(report, baton, folder, sizes).await?;
    storage::measure(report, baton, folder, sizes).await
}

/// A request that puts one entry.
fn entry() -> String {
    json!({ "content": "m".repeat(ENTRY_BYTES), "tags": ["bench"] }).to_string()
}

/// A node that puts one entry.
fn note() -> Value {
    node("note", "vendor.baton.memory.put", json!({ "content": "m".repeat(ENTRY_BYTES), "tags": ["bench"] }))
}

/// Puts `count` entries into a scope and returns their ids.
async fn fill(server: &Server, scope: &'static str, count: usize) -> Result<Vec<String>> {
    let ids = Rc::new(RefCell::new(Vec::with_capacity(count)));
    let (put, body) = (Rc::clone(&ids), entry());
    let budget = Budget { time: FILL_LIMIT, count };
    closed_loop(server.address(), FILL_CLIENTS, budget, async move |connection| {
        let id = api::remember(connection, scope, &body).await?;
        put.borrow_mut().push(id);
        Ok(())
    })
    .await?;
    let ids = ids.take();
    ensure!(ids.len() == count, "only {} of {count} entries were put in {FILL_LIMIT:?}", ids.len());
    Ok(ids)
}

/// 0, 1, 2, … for the operations of a load.
#[derive(Default)]
struct Counter(Cell<usize>);

impl Counter {
    fn next(&self) -> usize {
        self.0.replace(self.0.get() + 1)
    }
}
