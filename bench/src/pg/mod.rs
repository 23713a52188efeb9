//! PG: several hosts on one PostgreSQL, a private one on the same disk, beside what that server commits for pgbench and
//! what the same host does on SQLite.

mod crew;
mod letters;
mod pgbench;
mod takeover;

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use baton_testkit::postgres::{Cluster, rows};

use crate::Sizes;
use crate::report::{Bound, Report, clients as in_words};
use crate::server::{Baton, Server};
use crate::stats::millis;
use crate::w2::ten_turns::{self, TURNS};
use crate::{w1, w2};
use crew::Crew;

const HOSTS: [usize; 3] = [1, 2, 3];
/// Of all hosts together.
const W1_CLIENTS: usize = 64;
const W2_CLIENTS: usize = 16;
/// What one host on PostgreSQL must do of what it does on SQLite.
const TARGET_SHARE: f64 = 0.5;

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    // Not in the folder of the other workloads, which is ours alone: the server runs as somebody else.
    let open_to_all = folder.parent().unwrap_or(folder);
    let Some(cluster) = Cluster::start_in(open_to_all).await else {
        writeln!(std::io::stderr(), "PG is left out: there is no PostgreSQL here")?;
        return Ok(());
    };
    let sqlite = alone(baton, folder, sizes).await?;
    let mut section = report.section("PG");
    section.show(format!("SQLite: noop runs, {}", in_words(W1_CLIENTS)), sqlite.runs, "runs/s");
    section.show(format!("SQLite: ten-turn loops, {}", in_words(W2_CLIENTS)), sqlite.turns, "turns/s");
    let database = cluster.database().await;
    for clients in w1::CLIENTS {
        let commits = pgbench::commits(&cluster, &database, clients, sizes.load_time)?;
        let name = format!("pgbench, one-row inserts, {}", in_words(clients));
        report.section("PG").show(name, commits, "commits/s");
    }
    for hosts in HOSTS {
        together(report, baton, folder, &cluster, hosts, &sqlite, sizes).await?;
    }
    letters::measure(report, baton, folder, &cluster, sizes).await?;
    takeover::measure(report, baton, folder, &cluster, sizes).await
}

/// What one host does without a database.
struct Alone {
    runs: f64,
    turns: f64,
}

async fn alone(baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<Alone> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    w1::prepare(&server).await?;
    let (load, _) = w1::iterate(server.address(), W1_CLIENTS, sizes.load_time).await?;
    ten_turns::prepare(&server).await?;
    let (loops, runs) = ten_turns::iterate(server.address(), W2_CLIENTS, sizes.load_time).await?;
    ten_turns::check(&mut server.connect().await?, &runs).await?;
    server.kill().await?;
    Ok(Alone { runs: load.rate(), turns: loops.rate() * TURNS as f64 })
}

async fn together(
    report: &mut Report,
    baton: &Baton,
    folder: &Path,
    cluster: &Cluster,
    hosts: usize,
    sqlite: &Alone,
    sizes: &Sizes,
) -> Result<()> {
    let database = cluster.database().await;
    let crew = Crew::start(baton, folder, &database, hosts, sizes.lease).await?;
    for server in &crew.servers {
        w1::prepare(server).await?;
    }
    // Disks change their mood, so the yardstick is taken beside each measurement.
    let commits = pgbench::commits(cluster, &cluster.database().await, 1, sizes.load_time)?;
    let addresses = crew.addresses();
    let time = sizes.load_time;
    let noop =
        crew::share(&addresses, W1_CLIENTS, async move |at, clients| Ok(w1::iterate(at, clients, time).await?.0))
            .await?;
    let mut section = report.section("PG");
    let words = if hosts == 1 { "1 host".to_owned() } else { format!("{hosts} hosts") };
    let name = format!("{words}: noop runs, {}", in_words(W1_CLIENTS));
    if hosts == 1 {
        section.judge(name, noop.rate, "runs/s", Bound::AtLeast(TARGET_SHARE * sqlite.runs));
        section.note(format!("half of {:.0} on SQLite", sqlite.runs));
    } else {
        section.show(name, noop.rate, "runs/s");
    }
    section.show("  p50", millis(noop.samples.median()), "ms").show("  p99", millis(noop.samples.percentile(99)), "ms");
    section.show("  runs per commit of one pgbench client", noop.rate / commits.max(1.0), "");
    if hosts == 1 {
        sizes_on_disk(report, &database).await?;
    }
    for server in &crew.servers {
        ten_turns::prepare(server).await?;
    }
    let loops = crew::share(&addresses, W2_CLIENTS, async move |at, clients| {
        let (load, runs) = ten_turns::iterate(at, clients, time).await?;
        let mut connection = crate::http::Connection::open(at, crate::KEY).await?;
        ten_turns::check(&mut connection, &runs).await?;
        Ok(load)
    })
    .await?;
    let mut section = report.section("PG");
    let name = format!("{words}: ten-turn loops, {}", in_words(W2_CLIENTS));
    let turns = loops.rate * w2::ten_turns::TURNS as f64;
    if hosts == 1 {
        section.judge(name, turns, "turns/s", Bound::AtLeast(TARGET_SHARE * sqlite.turns));
        section.note(format!("half of {:.0} on SQLite", sqlite.turns));
    } else {
        section.show(name, turns, "turns/s");
    }
    let per_turn = millis(loops.samples.median()) / TURNS as f64;
    section.show("  per turn, p50", per_turn, "ms");
    crew.kill().await
}

/// What a noop run takes up, indexes included.
async fn sizes_on_disk(report: &mut Report, database: &str) -> Result<()> {
    for (table, what) in [("runs", "a noop run: its row"), ("events", "a noop run: one of its records")] {
        let sql = format!("SELECT pg_total_relation_size('{table}'), greatest(count(*), 1) FROM {table}");
        let answer = rows(database, &sql).await;
        let number = |at: usize| answer.first().and_then(|row| row.get(at)?.parse::<f64>().ok());
        let (bytes, count) = number(0).zip(number(1)).context("the size of a table")?;
        report.section("PG").show(what, bytes / count, "bytes").note(format!("{count} rows of {table}, with indexes"));
    }
    Ok(())
}

/// The first of a crew, which is there.
fn first(servers: &[Server]) -> Result<&Server> {
    servers.first().context("no host")
}
