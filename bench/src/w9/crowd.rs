//! Trouble in numbers: a tenant that starts far more runs than it waits for, opens streams without end, or writes values as
//! large as they may be. Most of it is refused sooner or later, which is an answer, too; what counts is what the quiet tenant
//! feels of it.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::task::JoinSet;

use super::{OTHER_KEY, QUIET_START, quiet};
use crate::api;
use crate::http::Connection;
use crate::load::Load;

/// How many clients of the other tenant are at it.
const CLIENTS: usize = 64;
/// The largest value that is taken is 1 MiB.
const LARGE_BYTES: usize = 1_000_000;
/// How many streams the crowd leaves open: below what a process may have open files.
const MOST_STREAMS: usize = 512;
/// What a host says to somebody who wants too much: too large, too often, or not now.
const REFUSALS: [u16; 3] = [413, 429, 503];

#[derive(Clone, Copy)]
pub(super) enum Crowd {
    /// Runs are started as fast as they are taken, and nobody looks at them again.
    Starts,
    /// A stream of a run that waits is opened, left open, and the next one is opened.
    Streams,
    /// Runs are started with variables of a megabyte each.
    LargeValues,
}

/// The quiet tenant beside a crowd, how many requests of the crowd were taken, and how many refused.
pub(super) async fn beside(
    address: SocketAddr,
    crowd: Crowd,
    waiting: &str,
    time: Duration,
) -> Result<(Load, usize, usize)> {
    let counted = Rc::new((Cell::new(0), Cell::new(0)));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (counted, waiting) = (Rc::clone(&counted), waiting.to_owned());
        clients.spawn_local(async move { one(address, crowd, &waiting, &counted).await });
    }
    let load = quiet(address, time).await?;
    // None of them stops by itself.
    if let Some(Ok(stopped)) = clients.try_join_next() {
        stopped?;
    }
    clients.shutdown().await;
    ensure!(counted.0.get() > 0, "nothing of the crowd was taken");
    Ok((load, counted.0.get(), counted.1.get()))
}

async fn one(address: SocketAddr, crowd: Crowd, waiting: &str, counted: &(Cell<usize>, Cell<usize>)) -> Result<()> {
    let large = match crowd {
        Crowd::LargeValues => {
            json!({ "workflowId": "large", "inputs": { "large": "x".repeat(LARGE_BYTES) } }).to_string()
        }
        Crowd::Starts | Crowd::Streams => String::new(),
    };
    let stream = format!("/v1/runs/{waiting}/events");
    let mut open = Vec::new();
    let mut connection = Connection::open(address, OTHER_KEY).await?;
    loop {
        let status = match crowd {
            Crowd::Starts => connection.post("/v1/runs", QUIET_START).await?.status,
            Crowd::LargeValues => connection.post("/v1/runs", &large).await?.status,
            Crowd::Streams => {
                let mut another = Connection::open(address, OTHER_KEY).await?;
                let status = another.open_stream(&stream).await?;
                open.push(another);
                if open.len() > MOST_STREAMS / CLIENTS {
                    open.remove(0);
                }
                status
            }
        };
        match status {
            200..=299 => counted.0.set(counted.0.get() + 1),
            refused if REFUSALS.contains(&refused) => counted.1.set(counted.1.get() + 1),
            other => anyhow::bail!("a request of the crowd: {other}"),
        }
    }
}

/// What the crowd needs to be there.
pub(super) async fn prepare(other: &mut Connection) -> Result<String> {
    let noop = crate::definition::noop(super::QUIET);
    api::register(other, &noop).await?;
    let mut large = crate::definition::noop("large");
    large["variables"] = json!([{ "name": "large", "type": "string" }]);
    api::register(other, &large).await?;
    api::register(other, &crate::definition::approval("waits", "gate")).await?;
    api::start_run(other, r#"{"workflowId":"waits"}"#).await
}
