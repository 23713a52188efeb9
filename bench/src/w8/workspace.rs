//! Files over HTTP: written over again and again, and read.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::Counter;
use crate::Sizes;
use crate::load::{Budget, closed_loop};
use crate::probe::{Disk, Loopback};
use crate::report::{Bound, Report, clients as in_words};
use crate::server::Server;
use crate::stats::millis;

const CLIENTS: [usize; 2] = [1, 16];
const FILES: usize = 200;
const FILE_BYTES: usize = 1024;

pub(super) async fn measure(
    report: &mut Report,
    server: &Server,
    folder: &Path,
    loopback: &Loopback,
    sizes: &Sizes,
) -> Result<()> {
    let mut connection = server.connect().await?;
    let body = json!({ "content": "f".repeat(FILE_BYTES) }).to_string();
    for place in 0..FILES {
        connection.put(&path(place), &body).await?.expect(200, "write a file")?;
    }
    for clients in CLIENTS {
        let disk = Disk::probe(folder)?;
        let budget = Budget { time: sizes.versioned_time / 2, count: usize::MAX };
        let (count, body) = (Counter::default(), body.clone());
        let puts = closed_loop(server.address(), clients, budget, async move |connection| {
            connection.put(&path(count.next()), &body).await?.expect(200, "write a file")?;
            Ok(())
        })
        .await?;
        let count = Counter::default();
        let gets = closed_loop(server.address(), clients, budget, async move |connection| {
            connection.get(&path(count.next())).await?.expect(200, "read a file")?;
            Ok(())
        })
        .await?;
        let machine = loopback.requests_per_second(clients).max(1.0);
        let mut section = report.section("W8");
        section.show(format!("workspace puts of {FILE_BYTES} bytes, {}", in_words(clients)), puts.rate(), "puts/s");
        section.note(format!("{FILES} files, each written over"));
        let p50 = millis(puts.samples.median());
        if clients == 1 {
            section.judge("  p50", p50, "ms", Bound::AtMost(disk.one_commit_bound())).note(disk.note());
        } else {
            section.show("  p50", p50, "ms");
        }
        section.show(format!("workspace gets, {}", in_words(clients)), gets.rate(), "gets/s");
        section.note(format!("{:.0} % of the empty handler", gets.rate() / machine * 100.0));
        section.show("  p50", millis(gets.samples.median()), "ms");
    }
    Ok(())
}

fn path(place: usize) -> String {
    format!("/v1/host/workspace/files/bench/{}.md", place % FILES)
}
