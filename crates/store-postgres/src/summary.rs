//! What lists look for in a run's summary.

use baton_store::RunRow;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) diverged: bool,
    pub(crate) over_budget: bool,
    pub(crate) cost_usd: Option<f64>,
}

impl Told {
    pub(crate) fn by(row: &RunRow) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Summary {
            diverged: bool,
            over_budget: bool,
            usage: Usage,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Usage {
            cost_usd: Option<f64>,
        }
        let summary = row.summary.as_deref().and_then(|text| serde_json::from_str::<Summary>(text).ok());
        let summary = summary.unwrap_or_default();
        Self { diverged: summary.diverged, over_budget: summary.over_budget, cost_usd: summary.usage.cost_usd }
    }
}
