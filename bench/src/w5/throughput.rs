//! Going through a long log again: written down as a replay, and only verified.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{FORK_LIMIT, FORK_POLL};
use crate::api;
use crate::http::Connection;
use crate::long_log::{LongLog, check_end};
use crate::report::{Bound, Report};
use crate::stats::{Samples, millis};

const ROUNDS: usize = 3;
const TARGET_RATE: f64 = 50_000.0;

#[derive(Deserialize)]
struct Verified {
    events: usize,
    difference: Option<IgnoredAny>,
}

pub(super) async fn measure(report: &mut Report, connection: &mut Connection, log: &LongLog) -> Result<()> {
    let mut replays = Vec::with_capacity(ROUNDS);
    let mut verifications = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (replay, _) = api::fork(connection, &log.run, "replay", 0).await?;
        let acknowledged = Instant::now();
        api::await_end(connection, &replay, FORK_LIMIT, FORK_POLL).await?;
        replays.push(acknowledged.elapsed());
        // A difference would be one event more.
        check_end(connection, &replay, log.events).await?;

        let response = connection.post(&format!("/v1/host/baton/runs/{}/verify", log.run), "{}").await?;
        response.expect(200, "verify a run")?;
        verifications.push(response.total);
        let verified: Verified = serde_json::from_slice(response.body).context("a verification")?;
        let whole = verified.events == log.events && verified.difference.is_none();
        ensure!(whole, "{} of {} events hold", verified.events, log.events);
    }
    let mut section = report.section("W5");
    let mut rate = |name: String, durations, bound: Option<Bound>| {
        let samples = Samples::new(durations);
        let rate = log.events as f64 / samples.median().as_secs_f64().max(f64::EPSILON);
        match bound {
            Some(bound) => section.judge(name, rate, "events/s", bound),
            None => section.show(name, rate, "events/s"),
        };
        section.note(format!("median of {ROUNDS}, {:.0} ms", millis(samples.median())));
    };
    rate(format!("replay {} events", log.events), replays, Some(Bound::AtLeast(TARGET_RATE)));
    rate(format!("verify {} events", log.events), verifications, None);
    Ok(())
}
