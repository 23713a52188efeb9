//! What an operator says about a server: `[mcp.NAME]` in the configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_model::tool::{OutcomePolicy, SafetyTier};
use rmcp::model::ProtocolVersion;
use serde::Deserialize;
use serde_json::Value;

use crate::secrets::Text;

/// One server. Either `command` or `url`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpSettings {
    /// A program to start, found by `PATH`.
    pub command: Option<String>,
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment: texts, or references to secrets as `{"$secret" = "ID"}`. Nothing of the host's own environment
    /// is passed on but what a program needs to run at all (`PATH`, `HOME`, `LANG`, …).
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// The endpoint of a server that speaks streamable HTTP.
    pub url: Option<String>,
    /// The id of a secret to send as a bearer token.
    pub bearer: Option<String>,
    /// Refuse an address that is not on the public internet. Off, because the operator chose the address.
    #[serde(default)]
    pub public_only: bool,
    /// `auto`, or a revision of the protocol such as `2025-06-18`.
    pub revision: Option<String>,
    /// The longest a call may take.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// The largest result of a call.
    #[serde(default = "default_result_bytes")]
    pub max_result_bytes: usize,
    /// What the operator knows about its tools, by the names that the server has for them.
    #[serde(default)]
    pub tools: BTreeMap<String, ToolOverride>,
}

/// What the operator says about one tool.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolOverride {
    /// What it may do to the world; `write` unless it is said. `exec` is not for tools of other programs.
    pub tier: Option<SafetyTier>,
    /// What to do when nobody knows whether a call took place: `retry` for tools that only read, else `ask`.
    pub outcome_policy: Option<OutcomePolicy>,
    /// Scopes its caller must hold.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// What a simulated call answers.
    pub stub: Option<Value>,
}

const fn default_timeout_ms() -> u64 {
    60_000
}

const fn default_result_bytes() -> usize {
    256 * 1024
}

/// Why a server cannot be set up. Says what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[mcp.{name}] {problem}")]
pub struct WrongSettings {
    name: String,
    problem: String,
}

impl WrongSettings {
    pub(super) fn new(name: &str, problem: impl Into<String>) -> Self {
        Self { name: name.to_owned(), problem: problem.into() }
    }
}

impl McpSettings {
    /// Settings of a server that is reached in another way than by `command` or `url`.
    pub fn in_process() -> Self {
        Self { timeout_ms: default_timeout_ms(), max_result_bytes: default_result_bytes(), ..Self::default() }
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    pub(super) fn check(&self, name: &str) -> Result<(), WrongSettings> {
        let wrong = |problem: String| Err(WrongSettings::new(name, problem));
        let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(letter) {
            return wrong("is not a name for a server: use 1 to 64 of a-z 0-9 - _".to_owned());
        }
        if self.timeout_ms == 0 || self.max_result_bytes == 0 {
            return wrong("`timeout_ms` and `max_result_bytes` must be 1 or more".to_owned());
        }
        for (tool, said) in &self.tools {
            if said.tier == Some(SafetyTier::Exec) {
                return wrong(format!("tools.{tool}: the tier `exec` is for tools of the host only; use `write`"));
            }
            if said.scopes.iter().any(|scope| scope.trim().is_empty()) {
                return wrong(format!("tools.{tool}: a scope must not be empty"));
            }
        }
        match self.pinned() {
            Ok(_) => Ok(()),
            Err(unknown) => {
                let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
                wrong(format!("`revision` {unknown} is not known here; use auto or one of {}", known.join(", ")))
            }
        }
    }

    /// The revision that the operator insists on.
    pub(super) fn pinned(&self) -> Result<Option<ProtocolVersion>, String> {
        match self.revision.as_deref() {
            None | Some("auto") => Ok(None),
            Some(pinned) => {
                let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| known.as_str() == pinned);
                known.cloned().map(Some).ok_or_else(|| pinned.to_owned())
            }
        }
    }

    pub(super) fn environment(&self, name: &str) -> Result<BTreeMap<String, Text>, WrongSettings> {
        let read = |(variable, value): (&String, &Value)| match Text::read(value) {
            Ok(text) => Ok((variable.clone(), text)),
            Err(problem) => Err(WrongSettings::new(name, format!("env.{variable} {problem}"))),
        };
        self.env.iter().map(read).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problem(name: &str, settings: Value) -> Option<String> {
        let settings: McpSettings = serde_json::from_value(settings).unwrap();
        settings.check(name).err().map(|wrong| wrong.to_string())
    }

    #[test]
    fn wrong_settings_say_what_to_change() {
        assert_eq!(problem("files", json!({"command": "x", "revision": "auto"})), None);
        assert_eq!(problem("files", json!({"url": "https://x", "tools": {"t": {"tier": "read"}}})), None);
        for (name, settings, hint) in [
            ("a.b", json!({}), "[mcp.a.b] is not a name"),
            ("", json!({}), "is not a name"),
            ("x", json!({"timeout_ms": 0}), "1 or more"),
            ("x", json!({"tools": {"rm": {"tier": "exec"}}}), "tools.rm: the tier `exec`"),
            ("x", json!({"tools": {"rm": {"scopes": [" "]}}}), "must not be empty"),
            ("x", json!({"revision": "2023-01-01"}), "auto or one of 2024-11-05"),
        ] {
            let message = problem(name, settings).unwrap();
            assert!(message.contains(hint), "{message}");
        }
        assert!(serde_json::from_value::<McpSettings>(json!({"comand": "x"})).is_err());
    }
}
