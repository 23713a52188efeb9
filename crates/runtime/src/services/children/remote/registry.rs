//! Which hosts there are, and which of them a worker's address means.

use std::fmt;
use std::sync::Arc;

use baton_model::{Fault, TenantId, WorkflowId, code};
use reqwest::Url;

use super::port::RemoteHost;

const TIMEOUT_MS: u64 = 120_000;
const LONGEST_ID: usize = 128;

/// The other hosts of a host.
#[derive(Clone)]
pub struct Remotes {
    hosts: Vec<Arc<dyn RemoteHost>>,
    /// How other hosts reach this one.
    pub(super) address: String,
    /// How long a host may stay silent before the run goes on without it.
    pub(super) timeout_ms: u64,
}

impl Default for Remotes {
    fn default() -> Self {
        Self { hosts: Vec::new(), address: String::new(), timeout_ms: TIMEOUT_MS }
    }
}

impl Remotes {
    /// For a host that others reach at `address`.
    pub fn new(address: impl Into<String>, timeout_ms: u64) -> Self {
        Self { hosts: Vec::new(), address: address.into(), timeout_ms }
    }

    #[must_use]
    pub fn with(mut self, host: Arc<dyn RemoteHost>) -> Self {
        self.hosts.push(host);
        self
    }

    /// What the operator calls them.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.name())
    }

    /// The host a worker's address means, and the workflow's id there.
    pub(super) fn find(
        &self,
        tenant: &TenantId,
        worker: &WorkflowId,
    ) -> Result<(&Arc<dyn RemoteHost>, String), Box<Fault>> {
        let Some((origin, workflow)) = address(worker.as_str()) else {
            let message = format!("`{worker}` is no workflow's address. Write it as https://host/workflows/ID.");
            return Err(Box::new(Fault::new(code::UNKNOWN_CHILD_WORKFLOW, message)));
        };
        let found = self.hosts.iter().find(|host| host.origin() == origin && host.serves(tenant));
        found.map(|host| (host, workflow)).ok_or_else(|| {
            let message = format!(
                "No remote is configured for {origin}, or not for this tenant. Add [remotes.NAME] with \
                 url = \"{origin}\" and a credential to this host's configuration."
            );
            Box::new(Fault::new(code::UNKNOWN_CHILD_WORKFLOW, message).with("origin", origin))
        })
    }
}

impl fmt::Debug for Remotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.hosts.iter().map(|host| host.origin())).finish()
    }
}

/// `https://Host:443/workflows/id` → (`https://host`, `id`).
fn address(text: &str) -> Option<(String, String)> {
    let url = Url::parse(text).ok()?;
    let plain = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none()
        && matches!(url.scheme(), "https" | "http")
        && url.host_str().is_some_and(|host| !host.is_empty());
    let id = url.path().strip_prefix("/workflows/")?;
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let named = (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(letter);
    (plain && named).then(|| (url.origin().ascii_serialization(), id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_an_origin_and_a_workflow() {
        let read = |text: &str| address(text).unwrap_or_default();
        let here = ("https://north.example".to_owned(), "draft-2".to_owned());
        for text in ["https://north.example/workflows/draft-2", "https://North.Example:443/workflows/draft-2"] {
            assert_eq!(read(text), here);
        }
        assert_eq!(read("http://127.0.0.1:7717/workflows/w").0, "http://127.0.0.1:7717");
        assert_eq!(read("https://[::1]:8443/workflows/w").0, "https://[::1]:8443");
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "draft",
            "https://",
            "https://north.example",
            "https://north.example/workflows",
            "https://north.example/workflows/",
            "https://north.example/workflows/a/b",
            "https://north.example/workflows/../v1",
            "https://north.example/workflows/a%2Fb",
            "https://north.example/x/workflows/a",
            "https://north.example/workflows/a?b",
            "https://north.example/workflows/a#b",
            "https://me@north.example/workflows/a",
            "https://me:pw@north.example/workflows/a",
            "ftp://north.example/workflows/a",
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
