//! Workflows and agents that every tenant has.

/// Workflows every tenant can start: the ones the operator ships. A tenant's own of the same id comes first.
pub(crate) const SHARED: &str = "*";
