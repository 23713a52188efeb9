//! A number that must be so, or must lie between two.

use serde::Deserialize;

/// `3`, or `{min: 1, max: 3}` with either.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "expected a number, or a mapping with `min`, `max` or both")]
pub enum Bound {
    Exactly(f64),
    Between { min: Option<f64>, max: Option<f64> },
}

/// Costs are sums of small fractions.
const CLOSE: f64 = 1e-9;

impl Bound {
    pub fn holds(self, found: f64) -> bool {
        match self {
            Self::Exactly(wanted) => (wanted - found).abs() <= CLOSE,
            Self::Between { min, max } => {
                min.is_none_or(|min| found >= min - CLOSE) && max.is_none_or(|max| found <= max + CLOSE)
            }
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exactly(wanted) => write!(f, "{wanted}"),
            Self::Between { min: Some(min), max: Some(max) } => write!(f, "{min} to {max}"),
            Self::Between { min: Some(min), max: None } => write!(f, "at least {min}"),
            Self::Between { min: None, max: Some(max) } => write!(f, "at most {max}"),
            Self::Between { min: None, max: None } => f.write_str("anything"),
        }
    }
}
