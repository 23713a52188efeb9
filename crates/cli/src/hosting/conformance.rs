//! Conformance mode, if this program was built with it.

use crate::config::Config;
use crate::failure::Failure;

/// Whether the mode can be had that the configuration asks for.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    if config.conformance && !cfg!(feature = "conformance") {
        return Err(Failure::usage("this program was built without conformance mode")
            .hint("build it with the cargo feature `conformance`, which is on by default"));
    }
    Ok(())
}

pub(super) use mode::{capabilities, hooks, let_in};

#[cfg(feature = "conformance")]
mod mode {
    use std::sync::Arc;

    use baton_conformance::Conformance;
    use baton_runtime::{Host, TestHooks};
    use baton_server::{Entrance, ServerOptions};
    use serde_json::{Map, Value};

    use crate::config::Config;

    /// What the mode brings along for one host.
    pub(crate) fn hooks(config: &Config) -> Option<Arc<dyn TestHooks>> {
        Conformance::hooks().filter(|_| config.conformance)
    }

    /// What the mode adds to the discovery document of a host that has no workflow yet.
    pub(crate) fn capabilities(config: &Config) -> Option<Map<String, Value>> {
        config.conformance.then(|| Conformance::default().capabilities())
    }

    /// Lets everybody in, and to the test endpoints if the host is in conformance mode.
    pub(crate) fn let_in(entrance: &Entrance, host: &Host, options: ServerOptions) {
        match Conformance::of(host) {
            Err(_) => entrance.open(host.clone(), options),
            Ok(mode) => {
                let options = ServerOptions { test_capabilities: Some(mode.capabilities()), ..options };
                entrance.open_with(host.clone(), options, baton_conformance::routes());
            }
        }
    }
}

#[cfg(not(feature = "conformance"))]
mod mode {
    use std::sync::Arc;

    use baton_runtime::{Host, TestHooks};
    use baton_server::{Entrance, ServerOptions};
    use serde_json::{Map, Value};

    use crate::config::Config;

    pub(crate) fn hooks(_: &Config) -> Option<Arc<dyn TestHooks>> {
        None
    }

    pub(crate) fn capabilities(_: &Config) -> Option<Map<String, Value>> {
        None
    }

    pub(crate) fn let_in(entrance: &Entrance, host: &Host, options: ServerOptions) {
        entrance.open(host.clone(), options);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Layered;

    #[test]
    fn a_program_without_the_mode_refuses_it() {
        let mut config = Layered::defaults().config().unwrap();
        assert!(check(&config).is_ok());
        config.conformance = true;
        assert_eq!(check(&config).is_ok(), cfg!(feature = "conformance"));
        assert_eq!(hooks(&config).is_some(), cfg!(feature = "conformance"));
    }
}
