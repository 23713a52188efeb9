//! What a branch has otherwise than its source: what its creator asks for, judged as for a new run, and never more than
//! this host allows, whatever the source was allowed.

use std::collections::BTreeMap;

use baton_engine::{Plan, check_overlay};
use baton_model::{Budget, ModelPins, Overlay, Principal};
use baton_store::RunRow;
use serde_json::{Map, Value};

use super::inherited::Inherited;
use crate::history::fork::service::Forks;
use crate::run::first_row::duration_bound;
use crate::run::start::{bounds, check_configurable, read_threshold};
use crate::services::workflows::Whose;
use crate::steps::WorkKind;
use crate::{Error, ForkRun};

impl Forks {
    pub(super) async fn overlay(&self, who: &Principal, source: &RunRow, request: &ForkRun) -> Result<Overlay, Error> {
        let limits = &self.options.limits;
        let plan = self.plan_loader.plan(Whose::Tenant(&source.tenant), &source.digest).await?;
        let inherited = self.inherited(source, request.from_seq).await?;
        let mut configurable = inherited.configurable();
        configurable.extend(request.configurable.clone());
        let values = inherited.values();
        let judge = || {
            check_overlay(&plan, &request.inputs, &request.variables, values).map_err(crate::run::refused)?;
            if request.configurable.is_empty() { Ok(()) } else { check_configurable(&plan, &configurable) }
        };
        self.pool.compute_here(WorkKind::Judge, &source.tenant, judge).await??;
        crate::services::models::check_options(&request.configurable)?;
        let asked = bounds(limits, &request.configurable)?;
        let duration = inherited.latest(|overlay| overlay.max_duration_ms, |facts| facts.max_duration_ms);
        let turns = inherited.latest(|overlay| overlay.max_loop_iterations, |facts| facts.max_loop_iterations);
        let nodes = inherited.latest(|overlay| overlay.max_node_executions, |facts| facts.max_node_executions);
        let fan_out = inherited.latest(|overlay| overlay.max_fan_out, |facts| facts.max_fan_out);
        let floor = inherited.latest(|overlay| overlay.decision_floor, |facts| facts.escalation.floor);
        let allowed = duration_bound(limits, &plan, Some(asked.duration_ms.unwrap_or(duration)));
        let models = self.other_models(&plan, &inherited, request, &configurable);
        Ok(Overlay {
            inputs: request.inputs.clone(),
            variables: request.variables.clone(),
            configurable: request.configurable.clone(),
            owner: inherited.owner_of_branch(who),
            max_duration_ms: (allowed != duration).then_some(allowed),
            max_loop_iterations: asked.turns.or_else(|| less(turns, limits.max_loop_iterations)),
            max_node_executions: asked.nodes.or_else(|| less(nodes, limits.max_node_executions)),
            max_fan_out: less(fan_out, limits.max_fan_out),
            budget: self.bounded(&plan, &inherited, &request.configurable)?,
            agent_threshold: read_threshold(&request.configurable)?,
            decision_floor: Some(self.options.escalation.floor).filter(|host| *host > floor),
            tool_grant: narrowed_grant(&inherited, &request.configurable)?,
            tool_scopes: narrowed_scopes(who, &inherited),
            models,
        })
    }

    /// The budget that a branch's creator asks for, or what is left of its source's within this host's ceilings.
    fn bounded(
        &self,
        plan: &Plan,
        inherited: &Inherited,
        asked: &Map<String, Value>,
    ) -> Result<Option<Box<Budget>>, Error> {
        let had = inherited.latest_said(|overlay| overlay.budget.clone(), |facts| facts.budget.clone());
        let most = Budget::resolve(None, None, &self.options.limits);
        match (had, most) {
            _ if asked.contains_key("budget") => {
                self.agents.budget(plan, asked, &BTreeMap::new(), &ModelPins::default())
            }
            (_, None) => Ok(None),
            (None, Some(_)) => self.agents.budget(plan, asked, &BTreeMap::new(), &ModelPins::default()),
            (Some(had), Some(host)) => {
                let mut within = Budget { most: host.most, ..(*had).clone() };
                within.ceilings.tighten(&host.most);
                Ok((within != *had).then(|| Box::new(within)))
            }
        }
    }

    /// What the models can do that a branch asks instead of its source's.
    fn other_models(
        &self,
        plan: &Plan,
        inherited: &Inherited,
        request: &ForkRun,
        configurable: &Map<String, Value>,
    ) -> ModelPins {
        if !crate::services::agents::changes_models(&request.configurable) {
            return ModelPins::default();
        }
        // Where a model is missing altogether, the node that asks it says so.
        self.agents.model_pins(plan, configurable, &inherited.started.private.agents).unwrap_or_default()
    }
}

/// The host's bound, where the source had more.
fn less<T: PartialOrd>(had: T, host: T) -> Option<T> {
    (had > host).then_some(host)
}

/// What a branch's agents may have at most, where its creator says something about it.
fn narrowed_grant(inherited: &Inherited, asked: &Map<String, Value>) -> Result<Option<Vec<String>>, Error> {
    let Some(asked) = crate::services::agents::tool_grant(asked)? else { return Ok(None) };
    Ok(Some(match inherited.latest_said(|overlay| overlay.tool_grant.clone(), |facts| facts.tool_grant.clone()) {
        Some(had) => baton_tool::narrowed(&had, &asked),
        None => asked,
    }))
}

/// The scopes that a branch calls tools with, where its creator does not hold all.
fn narrowed_scopes(who: &Principal, inherited: &Inherited) -> Option<Vec<String>> {
    let held = crate::run::start::tool_scopes(who)?;
    let had = inherited.latest_said(|overlay| overlay.tool_scopes.clone(), |facts| facts.tool_scopes.clone());
    crate::run::start::narrowed(Some(held), had)
}
