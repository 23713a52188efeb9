use std::path::Path;

use baton_store::VersionedStoreId;
use baton_store_sqlite::{Gap, Report, SqliteStore, VersionGap};

use super::finding::{Finding, State};
use crate::target::Target;

const STORAGE: &str = "storage";
const RESTORE: &str =
    "keep a copy of the data folder, then restore the last backup; `baton storage check` lists all that is damaged";

/// Reads everything that is stored. Safe beside a host that is using it.
pub(super) fn integrity(data: &Path) -> Finding {
    if !data.is_dir() {
        return Finding::ok(STORAGE, format!("{} does not exist yet", data.display()));
    }
    match SqliteStore::check(data) {
        Ok(report) if report.is_sound() => {
            let (runs, events, place) = (report.runs, report.events, data.display());
            // As in a backup that was just put back.
            let unknown = if report.noted { "" } else { "; no baton.commits tells whether the end is there" };
            Finding::ok(STORAGE, format!("{runs} runs, {events} events, all logs whole in {place}{unknown}"))
        }
        Ok(report) => Finding::bad(STORAGE, State::Wrong, first_problem(&report), RESTORE),
        Err(error) if error.is_damage() => Finding::bad(STORAGE, State::Wrong, error.to_string(), RESTORE),
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
    damage.or(gap).or(ledger).or_else(|| report.wrong.first().cloned()).unwrap_or_default()
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
            wrong: Vec::new(),
            noted: true,
        };
        assert_eq!(first_problem(&report), "memory `team` of acme has 4 of 5 changes (1 such ledgers)");
    }
}
