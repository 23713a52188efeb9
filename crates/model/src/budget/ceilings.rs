//! What a budget counts, and how much of it there may be.

use serde::{Deserialize, Serialize};

use crate::Amount;

/// What a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = BudgetDimension))]
pub enum Dimension {
    Tokens,
    Cost,
    ToolCalls,
    Retries,
}

impl Dimension {
    pub const ALL: [Self; 4] = [Self::Tokens, Self::Cost, Self::ToolCalls, Self::Retries];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::ToolCalls => "toolCalls",
            Self::Retries => "retries",
        }
    }

    /// This many units of it as the wire shows them.
    pub fn shown(self, units: u64) -> Amount {
        match self {
            Self::Cost => Amount::from(units as f64 / NANOS),
            Self::Tokens | Self::ToolCalls | Self::Retries => Amount::Whole(units),
        }
    }
}

/// Money is counted in billionths of a dollar, so that sums do not depend on their order.
const NANOS: f64 = 1_000_000_000.0;

/// Dollars as they are counted.
pub fn nanos(usd: f64) -> u64 {
    // A cast saturates: what is more than anybody has is a lot.
    (usd * NANOS).round() as u64
}

/// Ceilings as the wire shows them. What is absent is not bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Ceilings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u64>,
}

impl Ceilings {
    /// One of them, in the units that are counted.
    pub fn get(&self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Tokens => self.max_tokens,
            Dimension::Cost => self.max_cost_usd.map(nanos),
            Dimension::ToolCalls => self.max_tool_calls,
            Dimension::Retries => self.max_retries,
        }
    }

    pub fn set(&mut self, dimension: Dimension, units: u64) {
        match dimension {
            Dimension::Tokens => self.max_tokens = Some(units),
            Dimension::Cost => self.max_cost_usd = Some(units as f64 / NANOS),
            Dimension::ToolCalls => self.max_tool_calls = Some(units),
            Dimension::Retries => self.max_retries = Some(units),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Bounded by `other` too.
    pub fn tighten(&mut self, other: &Self) {
        for dimension in Dimension::ALL {
            if let Some(most) = other.get(dimension)
                && self.get(dimension).is_none_or(|own| own > most)
            {
                self.set(dimension, most);
            }
        }
    }
}

/// What happens when nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnExhaustion {
    #[default]
    Fail,
    /// A human may extend it.
    Interrupt,
}
