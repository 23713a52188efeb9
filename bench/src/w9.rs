//! W9: one tenant computes as hard as it may while another works. What the other one feels of it is the figure.
//!
//! Two kinds of trouble: runs whose expressions use up nearly all that a step may use, round after round, and runs whose
//! expressions would need far more and are refused at their first step. The quiet tenant starts plain runs meanwhile.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::KEY;
use crate::Sizes;
use crate::api;
use crate::definition::{chain, node, noop, repeated};
use crate::http::Connection;
use crate::load::{Budget, Load, closed_loop};
use crate::report::{Bound, Report};
use crate::server::Baton;
use crate::stats::millis;

const OTHER_KEY: &str = "bench-other-key";
const QUIET: &str = "bench-noop";
const QUIET_START: &str = r#"{"workflowId":"bench-noop"}"#;
const QUIET_CLIENTS: usize = 4;
const RUN_LIMIT: Duration = Duration::from_secs(30);
/// How many runs of the other tenant are under way at once.
const HOSTILE_RUNS: usize = 64;
/// More rounds than any run gets through while we measure.
const ROUNDS: usize = 9_000;
/// How often an impatient client asks how its run stands.
const AGAIN: Duration = Duration::from_millis(20);
/// How the clients whose runs are too costly wait for their end.
#[derive(Clone, Copy)]
enum Waiting {
    /// They are told: one request that stays open.
    Told,
    /// They ask again and again. That is a load of its own, 3,200 requests a second, whatever their runs cost.
    Asking,
}

/// How often each costly expression is tried with nothing else going on.
const TRIES: usize = 10;
/// How long one of those may take, from the start of its run to its end on disk.
const MOST_MILLIS: f64 = 50.0;
/// How much slower the slowest hundredth of the quiet tenant's runs may become.
const MOST_TIMES: f64 = 2.0;

/// A large part of what one step may use: 150 times 150 visits, a few units each.
const HEAVY: &str = "variables.l.all(a, variables.l.all(b, a + b >= 0))";

/// Each would need far more than a step may use.
const TOO_COSTLY: [&str; 5] = [
    "variables.l.all(a, variables.l.all(b, variables.l.all(c, true)))",
    "[variables.l].map(a, a + a).map(a, a + a).map(a, a + a)[0].map(a, variables.l.map(b, [a, b])).size()",
    "['x'].map(s, s + s).map(s, s + variables.s).map(s, variables.l.map(a, s + s + s)).size()",
    "variables.l.all(a, (variables.s + variables.s).contains(variables.s + 'y') || true)",
    "variables.l.all(a, variables.s.matches('(x+x+)+y' + string(a)) || true)",
];

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let keys = format!("{KEY}:bench,{OTHER_KEY}:elsewhere");
    let server = baton.start_with(data.path(), &[("BATON_API_KEYS", &keys)]).await?;
    let address = server.address();
    api::register(&mut server.connect().await?, &noop(QUIET)).await?;
    let mut other = Connection::open(address, OTHER_KEY).await?;
    api::register(&mut other, &heavy()).await?;
    for (number, expression) in TOO_COSTLY.iter().enumerate() {
        api::register(&mut other, &costly(number, expression)).await?;
    }
    quiet(address, sizes.load_time / 5).await?;
    let slowest = slowest_refusal(&mut other).await?;

    let alone = quiet(address, sizes.load_time).await?;
    let heavy = start_heavy(&mut other).await?;
    let beside_heavy = quiet(address, sizes.load_time).await?;
    let rounds = cancel_all(&mut other, &heavy).await?;
    let (beside_costly, refused) = beside(address, Waiting::Told, sizes.load_time).await?;
    let (beside_asking, _) = beside(address, Waiting::Asking, sizes.load_time).await?;
    let resident = server.resident_bytes()?;
    server.kill().await?;

    let p99 = |load: &Load| millis(load.samples.percentile(99));
    let mut section = report.section("W9");
    section.show("quiet tenant alone, 4 clients", alone.rate(), "runs/s");
    section.show("  p50", millis(alone.samples.median()), "ms").show("  p99", p99(&alone), "ms");
    for (name, load) in [
        ("beside 64 runs that compute all the time", &beside_heavy),
        ("beside 64 clients whose runs are too costly", &beside_costly),
    ] {
        section.show(name, load.rate(), "runs/s");
        section.show("  p50", millis(load.samples.median()), "ms").show("  p99", p99(load), "ms");
        section.judge(
            "  p99, times that of the tenant alone",
            p99(load) / p99(&alone).max(0.001),
            "x",
            Bound::AtMost(MOST_TIMES),
        );
    }
    section.show("beside the same clients, asking every 20 ms", beside_asking.rate(), "runs/s");
    section.show("  p50", millis(beside_asking.samples.median()), "ms").show("  p99", p99(&beside_asking), "ms");
    section.judge("slowest run that is too costly, alone", millis(slowest), "ms", Bound::AtMost(MOST_MILLIS));
    section.show("rounds of the runs that compute", rounds as f64, "rounds");
    section.show("runs refused as too costly", refused as f64, "runs");
    section.show("memory afterwards", resident as f64 / (1024.0 * 1024.0), "MiB");
    Ok(())
}

fn variables() -> Value {
    let list: Vec<u32> = (0..150).collect();
    json!([
        { "name": "l", "type": "array", "defaultValue": list },
        { "name": "s", "type": "string", "defaultValue": "x".repeat(20_000) },
    ])
}

fn heavy() -> Value {
    let set = node("set", "core.setVariable", json!({ "name": "out", "expression": HEAVY }));
    let mut workflow = repeated("heavy", ROUNDS, &[set]);
    workflow["variables"] = variables();
    workflow
}

fn costly(number: usize, expression: &str) -> Value {
    let set = node("set", "core.setVariable", json!({ "name": "out", "expression": expression }));
    chain(&format!("costly-{number}"), &[set], variables())
}

async fn quiet(address: SocketAddr, time: Duration) -> Result<Load> {
    closed_loop(address, QUIET_CLIENTS, Budget { time, count: usize::MAX }, async move |connection| {
        let run = api::start_run(connection, QUIET_START).await?;
        api::await_completed(connection, &run, RUN_LIMIT).await?;
        Ok(())
    })
    .await
}

async fn start_heavy(other: &mut Connection) -> Result<Vec<String>> {
    let mut runs = Vec::with_capacity(HOSTILE_RUNS);
    for _ in 0..HOSTILE_RUNS {
        runs.push(api::start_run(other, r#"{"workflowId":"heavy"}"#).await?);
    }
    Ok(runs)
}

/// Ends the runs, having checked that all of them were still at it. Returns how many rounds they made.
async fn cancel_all(other: &mut Connection, runs: &[String]) -> Result<usize> {
    let mut rounds = 0;
    for run in runs {
        anyhow::ensure!(api::status(other, run).await? == "running", "{run} has ended: nothing was computed beside");
        let response = other.get(&format!("/v1/runs/{run}/events/poll?timeoutMs=0")).await?;
        response.expect(200, "look at a run")?;
        let body: Value = serde_json::from_slice(response.body)?;
        rounds += usize::try_from(body["lastEventSeq"].as_u64().unwrap_or_default())? / 4;
    }
    for run in runs {
        let response = other.post(&format!("/v1/runs/{run}/cancel"), "{}").await?;
        anyhow::ensure!(response.status < 300, "cancel a run: {}", response.status);
    }
    Ok(rounds)
}

/// How long the slowest of the costly runs takes on an idle machine.
async fn slowest_refusal(other: &mut Connection) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for number in 0..TOO_COSTLY.len() {
        for _ in 0..TRIES {
            let begun = std::time::Instant::now();
            let run = api::start_run(other, &format!(r#"{{"workflowId":"costly-{number}"}}"#)).await?;
            while api::status(other, &run).await? != "failed" {
                anyhow::ensure!(begun.elapsed() < RUN_LIMIT, "{run} does not end");
            }
            slowest = slowest.max(begun.elapsed());
        }
    }
    Ok(slowest)
}

/// The quiet tenant beside the clients whose runs are too costly, and how many of those runs there were.
async fn beside(address: SocketAddr, waiting: Waiting, time: Duration) -> Result<(Load, usize)> {
    let hostile = tokio::task::spawn_local(refused_again_and_again(address, waiting, time));
    let load = quiet(address, time).await?;
    Ok((load, hostile.await??))
}

/// Waits for the end of a run that is too costly.
async fn await_refused(connection: &mut Connection, run: &str, waiting: Waiting) -> Result<()> {
    let mut after = String::new();
    loop {
        let status = match waiting {
            Waiting::Told => {
                let response = connection.get(&format!("/v1/runs/{run}/events/poll?timeout=10{after}")).await?;
                response.expect(200, "wait for a run")?;
                let body: Value = serde_json::from_slice(response.body)?;
                after = format!("&lastSequence={}", body["lastEventSeq"]);
                body["runStatus"].as_str().unwrap_or_default().to_owned()
            }
            Waiting::Asking => {
                sleep(AGAIN).await;
                api::status(connection, run).await?
            }
        };
        match status.as_str() {
            "failed" => return Ok(()),
            "running" | "pending" => {}
            other => anyhow::bail!("a run that is too costly is {other}"),
        }
    }
}

/// 64 clients that start costly runs, wait for their end, and start the next.
async fn refused_again_and_again(address: SocketAddr, waiting: Waiting, time: Duration) -> Result<usize> {
    let begun = std::time::Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..HOSTILE_RUNS {
        clients.spawn_local(async move {
            let mut connection = Connection::open(address, OTHER_KEY).await?;
            let mut refused = 0_usize;
            while begun.elapsed() < time {
                let body = format!(r#"{{"workflowId":"costly-{}"}}"#, (client + refused) % TOO_COSTLY.len());
                let run = api::start_run(&mut connection, &body).await?;
                await_refused(&mut connection, &run, waiting).await?;
                refused += 1;
            }
            anyhow::Ok(refused)
        });
    }
    let mut refused = 0;
    while let Some(client) = clients.join_next().await {
        refused += client.context("a client")??;
    }
    Ok(refused)
}
