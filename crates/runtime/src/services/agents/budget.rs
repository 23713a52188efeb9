//! Which budget holds for a tree: settled when its first run starts.

use std::collections::BTreeMap;

use baton_engine::Plan;
use baton_model::{AgentPin, Budget, BudgetPolicy, ModelPins};
use serde_json::{Map, Value};

use crate::Error;
use crate::services::agents::service::Agents;
use crate::services::budgets::estimate::has_price;

impl Agents {
    pub(crate) fn budget(
        &self,
        plan: &Plan,
        configurable: &Map<String, Value>,
        agents: &BTreeMap<String, AgentPin>,
        models: &ModelPins,
    ) -> Result<Option<Box<Budget>>, Error> {
        let asked = configurable.get("budget").map(BudgetPolicy::read).transpose().map_err(|(path, why)| {
            Error::invalid(format!("`configurable.budget`: {why}")).with("path", format!("/configurable/budget{path}"))
        })?;
        let budget = Budget::resolve(asked.as_ref(), plan.budget().as_ref(), &self.options.limits);
        if budget.as_ref().is_some_and(|budget| budget.ceilings.max_cost_usd.is_some()) {
            let unpriced =
                |choice: &baton_model::ModelChoice| !has_price(&self.options.prices, &choice.provider, &choice.model);
            if let Some(choice) = plan.models(configurable, agents, models).find(unpriced) {
                let baton_model::ModelChoice { provider, model } = choice;
                let message = format!(
                    "What a run may cost cannot be bounded: the model `{model}` has no price on this host. Set `[prices.\"{provider}/{model}\"]`, or bound tokens with `maxTokens`."
                );
                let path = "/configurable/budget/maxCostUsd";
                return Err(Error::invalid(message).with("path", path).with("model", model));
            }
        }
        Ok(budget.map(Box::new))
    }
}
