//! Credentials by reference. Whoever writes a call names a secret; only the moment the call is made sees its value, and
//! only if it may go to that destination: a model that can name both a secret and an address must not be able to carry
//! one to the other.

use std::collections::BTreeMap;
use std::fmt;

use baton_model::{Secret, TenantId};
use serde_json::Value;

/// Where a secret is about to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination<'a> {
    /// A host that a tenant's workflow or agent calls, in lower case and without a port.
    Http { tenant: &'a TenantId, host: &'a str },
    /// A server of the operator's own configuration.
    McpServer { name: &'a str },
}

/// The keeper of secrets.
pub trait Secrets: Send + Sync {
    /// The value, if there is such a secret and it may go there. Both refusals look alike, so that nobody learns which
    /// secrets exist.
    fn resolve(&self, id: &str, destination: Destination<'_>) -> Option<String>;

    /// All there are: what must not show in anything that comes back.
    fn known(&self) -> Vec<Secret>;
}

/// There are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn resolve(&self, _: &str, _: Destination<'_>) -> Option<String> {
        None
    }

    fn known(&self) -> Vec<Secret> {
        Vec::new()
    }
}

/// Secrets that an operator wrote down, each with the hosts it is for.
#[derive(Clone, Default)]
pub struct SecretTable(BTreeMap<String, Entry>);

#[derive(Clone)]
struct Entry {
    value: String,
    hosts: Vec<String>,
    tenants: Option<Vec<TenantId>>,
}

impl SecretTable {
    /// Adds a secret. `hosts` are exact names, or `*.example.com` for everything below a domain; with none it is for
    /// the operator's MCP servers only. `tenants` limits whose calls may carry it; `None` means everybody's.
    #[must_use]
    pub fn with(
        mut self,
        id: impl Into<String>,
        value: impl Into<String>,
        hosts: impl IntoIterator<Item = String>,
        tenants: Option<Vec<TenantId>>,
    ) -> Self {
        let hosts = hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect();
        self.0.insert(id.into(), Entry { value: value.into(), hosts, tenants });
        self
    }
}

impl Secrets for SecretTable {
    fn resolve(&self, id: &str, destination: Destination<'_>) -> Option<String> {
        let entry = self.0.get(id)?;
        let allowed = match destination {
            Destination::McpServer { .. } => true,
            Destination::Http { tenant, host } => {
                entry.tenants.as_ref().is_none_or(|tenants| tenants.contains(tenant))
                    && entry.hosts.iter().any(|pattern| covers(pattern, host))
            }
        };
        allowed.then(|| entry.value.clone())
    }

    fn known(&self) -> Vec<Secret> {
        self.0.iter().map(|(id, entry)| Secret::new(id, &entry.value)).collect()
    }
}

impl fmt::Debug for SecretTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn covers(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(domain) => host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => pattern == host,
    }
}

/// A text as it is written, or a reference to a secret: `{"$secret": "ID"}`, with `"scheme": "Bearer"` to put a word
/// and a space before the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Plain(String),
    Secret { id: String, scheme: Option<String> },
}

impl Text {
    pub(crate) fn read(value: &Value) -> Result<Self, &'static str> {
        const SHAPE: &str = "must be a text or {\"$secret\": \"ID\"}";
        match value {
            Value::String(text) => Ok(Self::Plain(text.clone())),
            Value::Object(members) => {
                let text = |name: &str| members.get(name).map(|value| value.as_str().map(str::to_owned).ok_or(SHAPE));
                let id = text("$secret").ok_or(SHAPE)??;
                let scheme = text("scheme").transpose()?;
                let known = members.keys().all(|name| name == "$secret" || name == "scheme");
                if known { Ok(Self::Secret { id, scheme }) } else { Err(SHAPE) }
            }
            _ => Err(SHAPE),
        }
    }

    /// The text to send. What was secret in it is added to `used`, so that it can be kept out of the answer.
    pub(crate) fn resolve(
        &self,
        secrets: &dyn Secrets,
        destination: Destination<'_>,
        used: &mut Vec<Secret>,
    ) -> Option<String> {
        match self {
            Self::Plain(text) => Some(text.clone()),
            Self::Secret { id, scheme } => {
                let value = secrets.resolve(id, destination)?;
                used.push(Secret::new(id, &value));
                Some(match scheme {
                    Some(scheme) => format!("{scheme} {value}"),
                    None => value,
                })
            }
        }
    }

    pub(crate) const fn is_secret(&self) -> bool {
        matches!(self, Self::Secret { .. })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_goes_to_its_hosts_only() {
        let (acme, other) = (TenantId::new("acme"), TenantId::new("other"));
        let hosts = ["api.example.com".to_owned(), "*.Example.org".to_owned()];
        let table = SecretTable::default()
            .with("wide", "value-wide", hosts, None)
            .with("acme", "value-acme", ["api.example.com".to_owned()], Some(vec![acme.clone()]))
            .with("mcp", "value-mcp", [], None);
        let http = |id, tenant, host| table.resolve(id, Destination::Http { tenant, host });
        assert_eq!(http("wide", &acme, "api.example.com").as_deref(), Some("value-wide"));
        assert_eq!(http("wide", &acme, "a.b.example.org").as_deref(), Some("value-wide"));
        for host in ["example.com", "evil-api.example.com", "example.org", ".example.org", "xexample.org", ""] {
            assert_eq!(http("wide", &acme, host), None, "{host}");
        }
        assert_eq!(http("acme", &acme, "api.example.com").as_deref(), Some("value-acme"));
        assert_eq!(http("acme", &other, "api.example.com"), None);
        assert_eq!(http("mcp", &acme, "api.example.com"), None);
        assert_eq!(table.resolve("mcp", Destination::McpServer { name: "x" }).as_deref(), Some("value-mcp"));
        assert_eq!(table.known().len(), 3);
        assert!(!format!("{table:?} {:?}", table.known()).contains("value-"));
    }

    #[test]
    fn a_reference_has_one_shape() {
        assert_eq!(Text::read(&json!("x")).unwrap(), Text::Plain("x".to_owned()));
        assert!(Text::read(&json!({"$secret": "A", "scheme": "Bearer"})).unwrap().is_secret());
        for wrong in [json!(1), json!({}), json!({"$secret": 1}), json!({"$secret": "A", "x": "y"}), json!(null)] {
            assert!(Text::read(&wrong).is_err(), "{wrong}");
        }
    }
}
