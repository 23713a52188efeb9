//! Settings that have a new name. The old one works for one more version, with a warning.

/// A setting's old key and variable, and its key now.
pub(super) struct Renamed {
    pub(super) old_key: &'static str,
    pub(super) old_env: &'static str,
    pub(super) key: &'static str,
}

pub(super) const RENAMED: &[Renamed] = &[
    Renamed { old_key: "remote_patience_ms", old_env: "BATON_REMOTE_PATIENCE_MS", key: "remote_timeout_ms" },
    Renamed { old_key: "waive", old_env: "BATON_WAIVE", key: "ignore_requirements" },
    Renamed {
        old_key: "escalation.floor_percent",
        old_env: "BATON_ESCALATION_FLOOR_PERCENT",
        key: "escalation.min_confidence_percent",
    },
];

/// The warning about one old name.
pub(super) fn warning(old: &str, new: &str) -> String {
    format!("{old} is called {new} now; the old name stops working in the next version")
}
