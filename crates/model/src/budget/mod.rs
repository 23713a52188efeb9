//! What a run, and every run below it, may spend. A policy is what somebody asks for; a [`Budget`] is what holds once
//! everybody who has a say was heard, settled when the tree's first run starts and never afterwards.

mod glob;
mod policy;

pub use policy::BudgetPolicy;

use serde::{Deserialize, Serialize};

use crate::{Amount, Limits};

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

/// Whose word the ceilings are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BudgetScope {
    #[default]
    Run,
    Workflow,
    Agent,
    Project,
}

/// The budget of a tree of runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    pub ceilings: Ceilings,
    pub scope: BudgetScope,
    /// Lists of models; one that is missing from any of them is not called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_percent: Option<f64>,
    pub on_exhaustion: OnExhaustion,
    /// How far a human may extend it: what the host allows.
    #[serde(skip_serializing_if = "Ceilings::is_empty")]
    pub most: Ceilings,
}

impl Budget {
    /// The smallest of what the run's creator and the workflow's author ask for and the host allows; nothing where nobody
    /// says anything.
    pub fn resolve(run: Option<&BudgetPolicy>, workflow: Option<&BudgetPolicy>, limits: &Limits) -> Option<Self> {
        let most = host(limits);
        if run.is_none() && workflow.is_none() && most.is_empty() {
            return None;
        }
        let mut ceilings = run.map(|policy| policy.ceilings).unwrap_or_default();
        ceilings.tighten(&most);
        let own = ceilings;
        if let Some(workflow) = workflow {
            ceilings.tighten(&workflow.ceilings);
        }
        let scope = if ceilings == own { BudgetScope::Run } else { BudgetScope::Workflow };
        let both = || run.into_iter().chain(workflow);
        let strict = both().any(|policy| policy.on_exhaustion == Some(OnExhaustion::Fail));
        let asks = !strict && both().any(|policy| policy.on_exhaustion == Some(OnExhaustion::Interrupt));
        Some(Self {
            ceilings,
            scope,
            allow: both().filter_map(|policy| policy.model_allow.clone()).collect(),
            deny: both().flat_map(|policy| policy.model_deny.clone()).collect(),
            threshold_percent: both().filter_map(|policy| policy.threshold_percent).reduce(f64::min),
            on_exhaustion: if asks { OnExhaustion::Interrupt } else { OnExhaustion::Fail },
            most,
        })
    }

    /// Whether this model may be called. A refusal wins over a permission, and a list that names nothing permits nothing.
    pub fn allows(&self, provider: &str, model: &str) -> bool {
        let listed = |list: &Vec<String>| list.iter().any(|pattern| glob::names(pattern, provider, model));
        !listed(&self.deny) && self.allow.iter().all(listed)
    }
}

fn host(limits: &Limits) -> Ceilings {
    let some = |n: u64| (n > 0).then_some(n);
    Ceilings {
        max_tokens: some(limits.max_budget_tokens),
        max_cost_usd: some(limits.max_budget_cost_cents).map(|cents| cents as f64 / 100.0),
        ..Ceilings::default()
    }
}

#[cfg(test)]
mod tests;
