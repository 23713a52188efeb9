use std::path::Path;

use baton_model::TenantId;
use baton_server::Keys;

use crate::config::Config;
use crate::exit::Exit;
use crate::failure::Failure;

/// The keys a host takes, and the tenants they speak for.
#[derive(Debug)]
pub(crate) struct ApiKeys {
    pub(crate) keys: Keys,
    pub(crate) tenants: Vec<TenantId>,
}

impl ApiKeys {
    /// From `BATON_API_KEYS`, or else the file. A host without keys would be open to everybody, so there is none.
    pub(crate) fn of(config: &Config) -> Result<Self, Failure> {
        let text = match (&config.api_keys, &config.api_keys_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => read(path)?,
            (None, None) => String::new(),
        };
        let keys = Self::parse(&text)?;
        if keys.tenants.is_empty() {
            return Err(Failure::usage("no API keys are set; without keys anybody could use the host")
                .hint("set BATON_API_KEYS=key:tenant (or api_keys_file), or use `baton dev` to try things out"));
        }
        Ok(keys)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let keys = Keys::parse(text).map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self { keys, tenants: tenants(text) })
    }
}

/// One key a line reads better in a file; blank lines and comments are skipped.
fn read(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.collect::<Vec<_>>().join(","))
}

/// The tenants of a key list that has been checked, each once, in order.
fn tenants(text: &str) -> Vec<TenantId> {
    let mut tenants: Vec<TenantId> = Vec::new();
    for tenant in text.split(',').filter_map(|entry| entry.trim().split(':').nth(1)) {
        let tenant = TenantId::new(tenant);
        if !tenants.contains(&tenant) {
            tenants.push(tenant);
        }
    }
    tenants
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::config::Layered;

    #[test]
    fn tenants_are_named_once() {
        let names: Vec<TenantId> = tenants("a:x, b:y:runs:read+runs:create,c:x");
        assert_eq!(names, [TenantId::new("x"), TenantId::new("y")]);
    }

    #[test]
    fn a_file_may_hold_one_key_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        std::fs::write(&path, "# team\nk1:a\n\nk2:b:runs:read\n").unwrap();
        let mut config = Layered::defaults().config().unwrap();
        config.api_keys_file = Some(path);
        assert_eq!(ApiKeys::of(&config).unwrap().tenants.len(), 2);
    }

    #[test]
    fn no_keys_is_a_usage_error() {
        let config = Layered::defaults().config().unwrap();
        assert_eq!(ApiKeys::of(&config).unwrap_err().exit, Exit::Usage);
    }
}
