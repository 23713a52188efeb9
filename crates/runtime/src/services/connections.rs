//! How the links to everything outside are doing. MCP servers say so themselves; of model providers and other hosts,
//! which are asked only when a run needs them, it is known from the last request to each. The host waits for none of
//! them when it starts.

use std::sync::Arc;

use baton_model::{Connection, ConnectionKind, ConnectionState, Secret, Timestamp, redact};
use baton_provider::ProviderFault;
use dashmap::DashMap;

use crate::clock::Clock;
use crate::services::children::remote::RemoteFault;

/// How much of a reason is kept: it may be another host's words.
const REASON_CHARS: usize = 300;

/// What the last requests showed, by kind and name. As many as the configuration names.
#[derive(Debug, Default)]
pub(crate) struct LastRequests(DashMap<(ConnectionKind, String), LastRequest>);

#[derive(Clone, Debug)]
struct LastRequest {
    /// None where it was answered.
    reason: Option<String>,
    since: Timestamp,
    failures: u32,
}

impl LastRequests {
    fn note(&self, kind: ConnectionKind, name: &str, at: Timestamp, reason: Option<String>) {
        let fresh = LastRequest { reason: None, since: at, failures: 0 };
        let mut entry = self.0.entry((kind, name.to_owned())).or_insert(fresh);
        if entry.reason.is_some() != reason.is_some() {
            (entry.since, entry.failures) = (at, 0);
        }
        entry.failures = if reason.is_some() { entry.failures.saturating_add(1) } else { 0 };
        entry.reason = reason;
    }

    pub(crate) fn connection(&self, kind: ConnectionKind, name: &str, started: Timestamp) -> Connection {
        let Some(last) = self.0.get(&(kind, name.to_owned())) else {
            return Connection::new(kind, name, ConnectionState::Idle, started);
        };
        let state = if last.reason.is_some() { ConnectionState::Failed } else { ConnectionState::Connected };
        let mut shown = Connection::new(kind, name, state, last.since);
        shown.failures = last.failures;
        shown.reason.clone_from(&last.reason);
        shown
    }
}

/// Remembers how models and other hosts answered last.
pub(crate) struct ConnectionLog {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) last_requests: Arc<LastRequests>,
    pub(crate) secrets: Arc<[Secret]>,
}

impl ConnectionLog {
    /// A provider was asked. One that turns a request down answers; one that nobody could use does not.
    pub(crate) fn provider_asked(&self, name: &str, fault: Option<&ProviderFault>) {
        let down = fault.filter(|fault| {
            matches!(
                fault.cause(),
                ProviderFault::Unavailable(_) | ProviderFault::TimedOut | ProviderFault::Unusable(_)
            )
        });
        self.asked(ConnectionKind::Provider, name, down.map(ToString::to_string));
    }

    /// Another host was asked.
    pub(crate) fn remote_asked(&self, name: &str, fault: Option<&RemoteFault>) {
        let down = fault.filter(|fault| matches!(fault, RemoteFault::Unavailable { .. }));
        self.asked(ConnectionKind::Remote, name, down.map(ToString::to_string));
    }

    fn asked(&self, kind: ConnectionKind, name: &str, reason: Option<String>) {
        let reason = reason.map(|reason| redact(&reason, &self.secrets).chars().take(REASON_CHARS).collect());
        self.last_requests.note(kind, name, self.clock.now(), reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_as_its_last_request_was_and_remembers_since_when() {
        let (kind, at) = (ConnectionKind::Remote, Timestamp::from_millis);
        let last = LastRequests::default();
        let shown = || last.connection(kind, "north", at(1));
        assert_eq!((shown().state, shown().since), (ConnectionState::Idle, at(1)));
        last.note(kind, "north", at(2), None);
        assert_eq!((shown().state, shown().since), (ConnectionState::Connected, at(2)));
        for n in 3..=5 {
            last.note(kind, "north", at(n), Some(format!("no answer {n}")));
        }
        assert_eq!((shown().state, shown().since, shown().failures), (ConnectionState::Failed, at(3), 3));
        assert_eq!(shown().reason.as_deref(), Some("no answer 5"));
        last.note(kind, "north", at(6), None);
        assert_eq!(
            (shown().state, shown().since, shown().failures, shown().reason),
            (ConnectionState::Connected, at(6), 0, None)
        );
    }
}
