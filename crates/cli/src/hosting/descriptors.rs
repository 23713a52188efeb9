//! File descriptors: every connection is one, and so is every file. Clients must not take those that the store needs.

use baton_server::ConnectionLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises what the process may open as far as these limits need it and the system lets it, and gives the limits that fit.
pub(super) fn make_room(limits: ConnectionLimits) -> ConnectionLimits {
    let wanted = limits.descriptors();
    let now = getrlimit(Resource::Nofile);
    let may_open = match now.current {
        Some(current) if current < wanted => raised(now, wanted).unwrap_or(current),
        Some(current) => current,
        None => u64::MAX,
    };
    let total = limits.total;
    let limits = limits.within(may_open);
    if limits.total < total {
        tracing::warn!(
            may_open,
            connections = limits.total,
            "the process can open few files, so it takes fewer connections than connections.max; raise the limit \
             (LimitNOFILE in systemd, ulimit -n in a shell)"
        );
    }
    limits
}

fn raised(now: Rlimit, wanted: u64) -> Option<u64> {
    let current = now.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: now.maximum }) {
        Ok(()) => Some(current),
        Err(error) => {
            tracing::debug!(%error, "the limit of open files could not be raised");
            None
        }
    }
}
