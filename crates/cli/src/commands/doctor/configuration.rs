use baton_store_sqlite::DataAccess;

use super::finding::{DataLocation, Finding, State};
use crate::commands::serve;
use crate::config::{Config, SETTINGS};
use crate::hosting::{self, ApiKeys, resolve_secrets};

const NAME: &str = "configuration";

/// The data to look at, and whether `serve` could start with this configuration.
pub(super) fn check(args: &serve::Args) -> (DataLocation, Vec<Finding>) {
    let config = match args.layered().and_then(|layered| layered.config()) {
        Ok(config) => config,
        Err(error) => {
            let finding =
                Finding::bad(NAME, State::Wrong, error.to_string(), "`baton config show` lists every setting");
            return (DataLocation::Folder(args.data_or_default(), DataAccess::Owner), vec![finding]);
        }
    };
    let keys = match ApiKeys::of(&config) {
        Ok(keys) => Finding::ok("keys", format!("{} for {} tenants", keys.keys.len(), keys.tenants.len())),
        Err(_) => Finding::bad(
            "keys",
            State::Warning,
            "no usable keys; `baton serve` would not start",
            "set BATON_API_KEYS=key:tenant (`baton dev` creates its own)",
        ),
    };
    let mut findings = vec![Finding::ok(NAME, format!("{} settings read", SETTINGS.len())), keys, host_id(&config)];
    if !config.secrets.is_empty() {
        findings.push(match resolve_secrets(&config.secrets) {
            Ok(secrets) => Finding::ok("secrets", format!("{} are kept out of memory and workspace", secrets.len())),
            Err(failure) => Finding::bad(
                "secrets",
                State::Wrong,
                failure.message().unwrap_or("not all can be read"),
                "set the variable or create the file; `baton serve` does not start without it",
            ),
        });
    }
    findings.extend(remotes(&config));
    let renamed = config.warnings.iter();
    findings.extend(renamed.map(|warning| Finding::bad(NAME, State::Warning, warning.clone(), "use the new name")));
    let folder = DataLocation::Folder(config.data, config.data_access);
    (config.database.map_or(folder, DataLocation::Database), findings)
}

fn remotes(config: &Config) -> Option<Finding> {
    const NAME: &str = "remotes";
    if config.remotes.is_empty() {
        return None;
    }
    if let Err(failure) = hosting::remotes::Credentials::read(config) {
        let found = failure.message().unwrap_or("not all credentials can be read");
        let advice = "`baton serve` does not start like this; it prints what to do";
        return Some(Finding::bad(NAME, State::Wrong, found, advice));
    }
    let plain = config.remotes.iter().find(|remote| remote.is_exposed());
    Some(match plain {
        Some(remote) => Finding::bad(
            NAME,
            State::Warning,
            format!("the credential of `{}` goes to {} unencrypted", remote.credential.id, remote.origin),
            "write https:// and put a reverse proxy with TLS in front of that host",
        ),
        None => Finding::ok(NAME, format!("{} configured", config.remotes.len())),
    })
}

fn host_id(config: &Config) -> Finding {
    const NAME: &str = "host id";
    if config.database.is_some() && hosting::host_id::given(config).is_none() {
        return Finding::ok(NAME, "kept in the database");
    }
    match hosting::host_id::find(config.host_id.as_deref(), config.public_url.as_deref(), &config.data) {
        Ok(Some((id, None))) => Finding::ok(NAME, id),
        Ok(Some((id, Some(origin)))) => Finding::ok(NAME, format!("{id} ({origin})")),
        Ok(None) => Finding::ok(NAME, "none yet; made at the first start"),
        Err(failure) => Finding::bad(
            NAME,
            State::Wrong,
            failure.message().unwrap_or("it cannot be read"),
            "remove the file to create a new id, or set one with --host-id",
        ),
    }
}
