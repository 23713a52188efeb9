use std::path::Path;

use baton_store::Error;
use baton_store_sqlite::{Gap, SqliteStore};

use super::{Finding, State};
use crate::context::Context;

const STORAGE: &str = "storage";
const RESTORE: &str = "keep a copy of the data folder, then restore the last backup";

/// Reads everything that is stored. Safe beside a host that is using it.
pub(super) fn integrity(data: &Path) -> Finding {
    if !data.is_dir() {
        return Finding::ok(STORAGE, format!("{} does not exist yet", data.display()));
    }
    match SqliteStore::check(data) {
        Ok(report) if report.is_sound() => Finding::ok(
            STORAGE,
            format!("{} runs, {} events, all logs whole in {}", report.runs, report.events, data.display()),
        ),
        Ok(report) => {
            let damage = report.damage.first().cloned();
            let gap = report.gaps.first().map(|Gap { run, next_seq, events, .. }| {
                format!("{run} has {events} of {next_seq} events ({} such runs)", report.gaps.len())
            });
            let found = damage.or(gap).unwrap_or_default();
            Finding::bad(STORAGE, State::Wrong, found, RESTORE)
        }
        Err(error @ Error::Corrupt { .. }) => Finding::bad(STORAGE, State::Wrong, error.to_string(), RESTORE),
        Err(error) => Finding::bad(
            STORAGE,
            State::Wrong,
            error.to_string(),
            "check --data, and that the folder is readable by this user",
        ),
    }
}

/// Whether a host answers, and whether it takes writes. None running is not wrong.
pub(super) async fn host(context: &Context) -> Finding {
    const NAME: &str = "host";
    let url = &context.target.url;
    let client = match context.client() {
        Ok(client) => client,
        Err(_) => {
            return Finding::bad(NAME, State::Wrong, format!("{url} is not an address"), "mend --url or BATON_URL");
        }
    };
    match client.readiness().await {
        Ok(said) if said.ready => Finding::ok(NAME, format!("{url} is ready")),
        Ok(said) => Finding::bad(
            NAME,
            State::Wrong,
            format!("{url} takes no writes: {}", said.reason.unwrap_or_else(|| "no reason given".to_owned())),
            "look at its log; a full or read-only disk is the usual cause",
        ),
        Err(baton_client::Error::Unreachable { .. }) => Finding::ok(NAME, format!("none running at {url}")),
        Err(error) => Finding::bad(NAME, State::Warning, error.to_string(), "is this the address of a Baton host?"),
    }
}
