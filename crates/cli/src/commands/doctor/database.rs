use std::time::Duration;

use baton_store_postgres::{PostgresStore, Report, Settings};

use super::finding::{Finding, State};
use crate::hosting::storage::database_failure;

const NAME: &str = "database";
/// A commit is two ways there and back; beyond this a person feels it.
const FAR: Duration = Duration::from_millis(20);

/// Whether the database answers, how far away it is, and whether what is in it is whole. Changes nothing.
pub(super) async fn check(settings: &Settings) -> Finding {
    let place = settings.place();
    let report = match PostgresStore::check(settings).await {
        Ok(report) => report,
        Err(error) => {
            let failure = database_failure(&error);
            let fix = failure.advice().unwrap_or("look at the server's log").to_owned();
            return Finding::bad(NAME, State::Wrong, failure.message().unwrap_or_default(), fix);
        }
    };
    let Report { server, round_trip, runs, events, hosts, .. } = &report;
    let far = format!("PostgreSQL {server}, {:.2}ms away", round_trip.as_secs_f64() * 1000.0);
    if let Some(problem) = report.problems.first() {
        let found = format!("{problem} ({} such findings) in {place}", report.problems.len());
        return Finding::bad(NAME, State::Wrong, found, "keep a copy (pg_dump), then restore the last backup");
    }
    if *round_trip > FAR {
        return Finding::bad(NAME, State::Warning, format!("{far}: {place}"), "move host and database closer together");
    }
    let pages = if report.page_checksums { "on" } else { "off" };
    if report.empty {
        return Finding::ok(NAME, format!("{far}, empty, page checksums {pages}: {place}"));
    }
    Finding::ok(
        NAME,
        format!("{far}, {runs} runs, {events} events, all logs whole, {hosts} hosts, page checksums {pages}: {place}"),
    )
}
