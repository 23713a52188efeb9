//! Conformance mode, if this program was built with it.

use std::sync::Arc;

use baton_runtime::TestHooks;

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

/// What the mode brings along for one host.
#[cfg(feature = "conformance")]
pub(super) fn hooks(config: &Config) -> Option<Arc<dyn TestHooks>> {
    baton_conformance::Conformance::hooks().filter(|_| config.conformance)
}

#[cfg(not(feature = "conformance"))]
pub(super) fn hooks(_: &Config) -> Option<Arc<dyn TestHooks>> {
    None
}
