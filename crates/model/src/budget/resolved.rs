//! The budget that holds for a tree of runs.

use serde::{Deserialize, Serialize};

use super::ceilings::{Ceilings, OnExhaustion};
use super::glob;
use super::policy::BudgetPolicy;
use crate::Limits;

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
