//! Memory over HTTP: putting, where every answer is a durable commit, and reading.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Counter, ENTRY_BYTES, entry, fill};
use crate::Sizes;
use crate::api;
use crate::load::{Budget, Load, closed_loop};
use crate::metric::{COMMITS, counter};
use crate::probe::{Disk, Loopback};
use crate::report::{Bound, Report, clients as in_words};
use crate::server::Server;
use crate::stats::millis;

const CLIENTS: [usize; 2] = [1, 16];
const WARM_UP: Duration = Duration::from_millis(500);
/// A scope holds 10,000 entries; a load writes more than that.
const PER_SCOPE: usize = 5_000;
const READ_SCOPE: &str = "bench-read";
const LISTED: usize = 100;
/// As for W1: an absolute target, and the share of the machine's own limit that replaces it on slower machines.
const TARGET_RATE: f64 = 4000.0;
const TARGET_SHARE: f64 = 0.4;

pub(super) async fn measure(
    report: &mut Report,
    server: &Server,
    folder: &Path,
    loopback: &Loopback,
    sizes: &Sizes,
) -> Result<()> {
    puts(server, 16, "warm", WARM_UP).await?;
    for clients in CLIENTS {
        // Disks change their mood within seconds, so the yardstick is taken beside each measurement.
        let disk = Disk::probe(folder)?;
        let (load, commits) = puts(server, clients, &format!("put-{clients}"), sizes.versioned_time).await?;
        let machine = loopback.requests_per_second(clients);
        let mut section = report.section("W8");
        let name = format!("memory puts of {ENTRY_BYTES} bytes, {}", in_words(clients));
        let p50 = millis(load.samples.median());
        if clients == 1 {
            section.show(name, load.rate(), "puts/s");
            section.judge("  p50", p50, "ms", Bound::AtMost(disk.one_commit_bound())).note(disk.note());
        } else {
            let bound = TARGET_RATE.min(TARGET_SHARE * machine);
            section.judge(name, load.rate(), "puts/s", Bound::AtLeast(bound));
            section.note(format!("{TARGET_RATE}, or 40 % of the empty handler's rate ({machine:.0}) if lower"));
            section.show("  p50", p50, "ms");
        }
        section.show("  p99", millis(load.samples.percentile(99)), "ms");
        section.show("  puts per commit", load.samples.len() as f64 / commits.max(1) as f64, "");
        section.note("all put, counted by the scopes' versions");
    }
    reads(report, server, loopback, sizes).await
}

/// Puts for a while. Returns the number of commits as well, after checking that every put has changed its scope.
async fn puts(server: &Server, clients: usize, prefix: &str, time: Duration) -> Result<(Load, u64)> {
    let mut connection = server.connect().await?;
    let before = counter(&mut connection, COMMITS).await?;
    let (count, body, own) = (Counter::default(), entry(), prefix.to_owned());
    let load = closed_loop(server.address(), clients, Budget { time, count: usize::MAX }, async move |connection| {
        let scope = format!("{own}.{}", count.next() / PER_SCOPE);
        api::remember(connection, &scope, &body).await?;
        Ok(())
    })
    .await?;
    let commits = counter(&mut connection, COMMITS).await? - before;
    let of_load = |scope: &str| scope.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
    let scopes = api::memory_scopes(&mut connection).await?;
    let written: u64 = scopes.iter().filter(|row| of_load(&row.scope)).map(|row| row.version).sum();
    ensure!(written == load.samples.len() as u64, "{} puts changed memory {written} times", load.samples.len());
    Ok((load, commits))
}

#[derive(Deserialize)]
struct List {
    entries: Vec<IgnoredAny>,
}

async fn reads(report: &mut Report, server: &Server, loopback: &Loopback, sizes: &Sizes) -> Result<()> {
    let held = sizes.read_entries;
    let ids = fill(server, READ_SCOPE, held).await?;
    let mut connection = server.connect().await?;
    let list = format!("/v1/host/baton/memory/{READ_SCOPE}?limit={LISTED}");
    let response = connection.get(&list).await?;
    response.expect(200, "list memory")?;
    let listed = serde_json::from_slice::<List>(response.body).context("a list of entries")?.entries.len();
    ensure!(listed == LISTED.min(held), "{listed} entries were listed, not {LISTED}");
    for clients in CLIENTS {
        let budget = Budget { time: sizes.versioned_time / 2, count: usize::MAX };
        let (count, ids) = (Counter::default(), ids.clone());
        let gets = closed_loop(server.address(), clients, budget, async move |connection| {
            // A stride that is prime to the number of entries visits all of them, and no two neighbours in a row.
            let id = &ids[count.next() * 7919 % ids.len()];
            connection.get(&format!("/v1/host/baton/memory/{READ_SCOPE}/{id}")).await?.expect(200, "read an entry")?;
            Ok(())
        })
        .await?;
        let path = list.clone();
        let lists = closed_loop(server.address(), clients, budget, async move |connection| {
            connection.get(&path).await?.expect(200, "list memory")?;
            Ok(())
        })
        .await?;
        let machine = loopback.requests_per_second(clients).max(1.0);
        let share = |load: &Load| format!("{:.0} % of the empty handler", load.rate() / machine * 100.0);
        let mut section = report.section("W8");
        section.show(format!("memory gets, one of {held}, {}", in_words(clients)), gets.rate(), "gets/s");
        section.note(share(&gets));
        section.show("  p50", millis(gets.samples.median()), "ms");
        section.show(format!("memory lists, {listed} of {held}, {}", in_words(clients)), lists.rate(), "lists/s");
        section.note(share(&lists));
        section.show("  p50", millis(lists.samples.median()), "ms");
    }
    Ok(())
}
