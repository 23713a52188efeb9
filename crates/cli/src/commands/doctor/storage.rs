use std::path::Path;

use baton_store::{Error, VersionedStoreId};
use baton_store_sqlite::{Gap, Report, SqliteStore, VersionGap};

use super::finding::{Finding, State};
use crate::target::Target;

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
        Ok(report) => Finding::bad(STORAGE, State::Wrong, first_problem(&report), RESTORE),
        Err(error @ Error::Corrupt { .. }) => Finding::bad(STORAGE, State::Wrong, error.to_string(), RESTORE),
        Err(error) => Finding::bad(
            STORAGE,
            State::Wrong,
            error.to_string(),
            "check --data, and that the folder is readable by this user",
        ),
    }
}

/// The worst of what was found: a damaged file, else a log that is not whole, else a versioned store that is not.
fn first_problem(report: &Report) -> String {
    let damage = report.damage.first().cloned();
    let gap = report.gaps.first().map(|Gap { run, next_seq, events, .. }| {
        format!("{run} has {events} of {next_seq} events ({} such runs)", report.gaps.len())
    });
    let ledger = report.version_gaps.first().map(|VersionGap { ledger, version, forgotten, changes, .. }| {
        let whole = version.saturating_sub(*forgotten);
        let VersionedStoreId { tenant, kind, scope } = ledger;
        let count = report.version_gaps.len();
        format!("{} `{scope}` of {tenant} has {changes} of {whole} changes ({count} such ledgers)", kind.as_str())
    });
    damage.or(gap).or(ledger).unwrap_or_default()
}

/// Whether a host answers, and whether it takes writes. None running is not wrong.
pub(super) async fn host(target: &Target) -> Finding {
    const NAME: &str = "host";
    let url = &target.url;
    let client = match target.client() {
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

#[cfg(test)]
mod tests {
    use baton_model::TenantId;

    use super::*;

    #[test]
    fn a_versioned_store_that_is_not_whole_is_named() {
        let ledger = VersionedStoreId::memory(&TenantId::new("acme"), "team");
        let gap = VersionGap { ledger, version: 7, forgotten: 2, changes: 4, last: Some(7) };
        let report = Report {
            runs: 0,
            events: 0,
            damage: Vec::new(),
            gaps: Vec::new(),
            ledgers: 1,
            changes: 4,
            version_gaps: vec![gap],
        };
        assert_eq!(first_problem(&report), "memory `team` of acme has 4 of 5 changes (1 such ledgers)");
    }
}
