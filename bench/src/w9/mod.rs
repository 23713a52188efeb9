//! W9: one tenant does as much as it may while another works. What the other one feels of it is the figure.
//!
//! Runs whose expressions use up nearly all that a step may use, round after round; runs whose expressions would need far
//! more and are refused at their first step; and trouble in numbers (`crowd`). The quiet tenant starts plain runs meanwhile.

mod crowd;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::sleep;

use self::crowd::Crowd;
use crate::KEY;
use crate::Sizes;
use crate::api;
use crate::definition::{chain, node, noop, repeated};
use crate::http::Connection;
use crate::load::{Budget, Load, closed_loop};
use crate::report::{Bound, Report, Section};
use crate::server::Baton;
use crate::stats::{Samples, millis};

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
/// How often the quiet tenant is compared with itself. A machine that is busy elsewhere for a second spoils one
/// comparison and not the median.
const COMPARISONS: usize = 3;
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
    let waiting = crowd::prepare(&mut other).await?;
    quiet(address, sizes.load_time / 5).await?;
    let slowest = slowest_refusal(&mut other).await?;

    let mut rounds = Vec::with_capacity(COMPARISONS);
    for _ in 0..COMPARISONS {
        rounds.push(compare(address, &mut other, &waiting, sizes.load_time / 2).await?);
    }
    let resident = server.resident_bytes()?;
    server.kill().await?;

    let mut section = report.section("W9");
    type Case = (&'static str, fn(&Round) -> &Load, bool);
    let cases: [Case; 6] = [
        ("beside 64 runs that compute all the time", |round| &round.heavy, true),
        ("beside 64 clients whose runs are too costly", |round| &round.costly, true),
        ("beside the same clients, asking every 20 ms", |round| &round.asking, false),
        ("beside 64 clients that start runs without end", |round| &round.starts.0, true),
        ("beside 64 clients that open streams without end", |round| &round.streams.0, true),
        ("beside 64 clients that write values of 1 MB", |round| &round.large.0, true),
    ];
    show(&mut section, "quiet tenant alone, 4 clients", &rounds, |round| &round.alone);
    // At its best: what a crowd leaves behind may still be at work when the next round begins.
    let undisturbed = rounds.iter().map(|round| p99(&round.alone)).fold(f64::INFINITY, f64::min).max(f64::EPSILON);
    for (name, load, judged) in cases {
        show(&mut section, name, &rounds, load);
        let mut times: Vec<f64> = rounds.iter().map(|round| p99(load(round)) / undisturbed).collect();
        times.sort_by(f64::total_cmp);
        let (name, median) = ("  p99, times that of the tenant alone", times[times.len() / 2]);
        match judged {
            true => section.judge(name, median, "x", Bound::AtMost(MOST_TIMES)),
            false => section.show(name, median, "x"),
        };
        let times: Vec<String> = times.iter().map(|times| format!("{times:.2}")).collect();
        section.note(format!("median of {}", times.join(", ")));
    }
    section.judge("slowest run that is too costly, alone", millis(slowest.median), "ms", Bound::AtMost(MOST_MILLIS));
    section.note(format!("median of {TRIES}, worst {:.1} ms", millis(slowest.worst)));
    section.show(
        "rounds of the runs that compute",
        rounds.iter().map(|round| round.computed).sum::<usize>() as f64,
        "",
    );
    section.show("runs refused as too costly", rounds.iter().map(|round| round.refused).sum::<usize>() as f64, "runs");
    type Crowded = fn(&Round) -> &(Load, usize, usize);
    let crowds: [(&str, Crowded); 3] = [
        ("runs started by the crowd", |round| &round.starts),
        ("streams opened by the crowd", |round| &round.streams),
        ("large values written by the crowd", |round| &round.large),
    ];
    for (name, crowd) in crowds {
        let (taken, refused) = rounds.iter().map(crowd).fold((0, 0), |sum, one| (sum.0 + one.1, sum.1 + one.2));
        section.show(name, taken as f64, "");
        section.note(format!("and {refused} refused"));
    }
    section.show("memory afterwards", resident as f64 / (1024.0 * 1024.0), "MiB");
    Ok(())
}

/// The quiet tenant by itself and beside each kind of trouble, one right after the other.
struct Round {
    alone: Load,
    heavy: Load,
    costly: Load,
    asking: Load,
    /// Beside crowds, with the requests of those that were taken and refused.
    starts: (Load, usize, usize),
    streams: (Load, usize, usize),
    large: (Load, usize, usize),
    /// Rounds of the runs that compute, and runs that were refused.
    computed: usize,
    refused: usize,
}

async fn compare(address: SocketAddr, other: &mut Connection, waiting: &str, time: Duration) -> Result<Round> {
    let alone = quiet(address, time).await?;
    let runs = start_heavy(other).await?;
    let heavy = quiet(address, time).await?;
    let computed = cancel_all(other, &runs).await?;
    let (costly, refused) = beside(address, Waiting::Told, time).await?;
    let (asking, _) = beside(address, Waiting::Asking, time).await?;
    let starts = crowd::beside(address, Crowd::Starts, waiting, time).await?;
    let streams = crowd::beside(address, Crowd::Streams, waiting, time).await?;
    let large = crowd::beside(address, Crowd::LargeValues, waiting, time).await?;
    Ok(Round { alone, heavy, costly, asking, starts, streams, large, computed, refused })
}

/// The round whose p99 is the median one.
fn show(section: &mut Section<'_>, name: &str, rounds: &[Round], load: fn(&Round) -> &Load) {
    let mut loads: Vec<&Load> = rounds.iter().map(load).collect();
    loads.sort_by(|a, b| p99(a).total_cmp(&p99(b)));
    let median = loads[loads.len() / 2];
    section.show(name, median.rate(), "runs/s");
    section.show("  p50", millis(median.samples.median()), "ms").show("  p99", p99(median), "ms");
}

fn p99(load: &Load) -> f64 {
    millis(load.samples.percentile(99))
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

/// How long the slowest kind of costly run takes on an idle machine.
#[derive(Default)]
struct Slowest {
    /// The median try of the slowest kind.
    median: Duration,
    /// The worst try of all.
    worst: Duration,
}

async fn slowest_refusal(other: &mut Connection) -> Result<Slowest> {
    let mut slowest = Slowest::default();
    for number in 0..TOO_COSTLY.len() {
        let mut tries = Vec::with_capacity(TRIES);
        for _ in 0..TRIES {
            let begun = std::time::Instant::now();
            let run = api::start_run(other, &format!(r#"{{"workflowId":"costly-{number}"}}"#)).await?;
            while api::status(other, &run).await? != "failed" {
                anyhow::ensure!(begun.elapsed() < RUN_LIMIT, "{run} does not end");
            }
            tries.push(begun.elapsed());
        }
        let tries = Samples::new(tries);
        slowest = Slowest { median: slowest.median.max(tries.median()), worst: slowest.worst.max(tries.max()) };
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
    let (begun, mut after) = (std::time::Instant::now(), String::new());
    loop {
        anyhow::ensure!(begun.elapsed() < RUN_LIMIT, "{run} does not end");
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
