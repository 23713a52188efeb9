use std::path::PathBuf;

use super::{Finding, State};
use crate::commands::serve;
use crate::config::SETTINGS;
use crate::hosting::KeyRing;

const NAME: &str = "configuration";

/// The data folder to look at, and whether `serve` could start with this configuration.
pub(super) fn check(args: &serve::Args) -> (PathBuf, Vec<Finding>) {
    let config = match args.layered().and_then(|layered| layered.config()) {
        Ok(config) => config,
        Err(error) => {
            let finding =
                Finding::bad(NAME, State::Wrong, error.to_string(), "`baton config show` lists every setting");
            return (args.data_or_default(), vec![finding]);
        }
    };
    let keys = match KeyRing::of(&config) {
        Ok(ring) => Finding::ok("keys", format!("{} for {} tenants", ring.keys.len(), ring.tenants.len())),
        Err(_) => Finding::bad(
            "keys",
            State::Warning,
            "none that can be used; `baton serve` would refuse to start",
            "set BATON_API_KEYS=key:tenant (`baton dev` makes its own)",
        ),
    };
    (config.data, vec![Finding::ok(NAME, format!("{} settings read", SETTINGS.len())), keys])
}
