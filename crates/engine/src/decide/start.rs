//! The beginning of a run: inputs are judged, and everything the run follows from then on is recorded.

use baton_model::event::{REDACTED, RunCancelled, RunSettings, RunStarted};
use baton_model::workflow::{Variable, VariableKind};
use baton_model::{Draft, Event, Fault, ValueBounds, code, json};
use serde_json::{Map, Value};

use crate::ENGINE_RULE;
use crate::command::{Refusal, RefusalKind, Start};
use crate::depth;
use crate::expr::kind_of;
use crate::plan::Plan;
use crate::size;
use crate::state::{Phase, RunState};

pub(super) fn start(state: &RunState, start: &Start) -> Result<Vec<Draft>, Refusal> {
    if state.phase != Phase::New {
        return Ok(Vec::new());
    }
    let variables = first_variables(state, start)?;
    let mut public = start.inputs.clone();
    let mut hidden = Map::new();
    for (name, value) in &mut public {
        if state.plan.is_sensitive(name) {
            hidden.insert(name.clone(), std::mem::replace(value, REDACTED.into()));
        }
    }
    let event = RunStarted {
        workflow_id: state.plan.id().clone(),
        inputs: public,
        transport: "rest".to_owned(),
        owner: start.owner.clone(),
        tags: start.tags.clone(),
        metadata: start.metadata.clone(),
        causation_host_id: start.settings.cause.as_ref().map(|cause| cause.host_id.clone().into()),
        private: RunSettings {
            workflow: Some(state.plan.digest().clone()),
            variables,
            hidden_inputs: hidden,
            engine_rule: ENGINE_RULE,
            ..(*start.settings).clone()
        },
    };
    let mut drafts = vec![Event::from(event).into()];
    if start.withdrawn {
        let parent_run_id = start.settings.cause.as_ref().map(|cause| cause.run_id.clone());
        let reason = Some("parent-cancelled".to_owned());
        drafts.push(Event::from(RunCancelled { reason, cancelled_by: None, parent_run_id }).into());
    }
    Ok(drafts)
}

/// Defaults first, then inputs, then what a parent maps in. Undeclared inputs are welcome.
fn first_variables(state: &RunState, start: &Start) -> Result<Map<String, Value>, Refusal> {
    let definition = &state.plan.definition;
    let bounds = start.settings.value_bounds();
    let mut variables: Map<String, Value> = definition
        .variables
        .iter()
        .filter_map(|variable| Some((variable.name.clone(), variable.default_value.clone()?)))
        .collect();
    for (name, value) in start.inputs.iter().chain(&start.variables) {
        settable(state.plan(), name, value, bounds)?;
        variables.insert(name.clone(), value.clone());
    }
    fit(variables.iter(), bounds)?;
    for declared in &definition.variables {
        match variables.get(&declared.name) {
            None if declared.required => {
                return Err(Refusal::invalid(format!("The workflow needs the input `{}`.", declared.name))
                    .with("path", format!("/inputs/{}", declared.name)));
            }
            // A parent's mapping is not a caller's mistake to be refused at the door.
            Some(value) if start.inputs.contains_key(&declared.name) => as_declared(declared, value)?,
            _ => {}
        }
    }
    Ok(variables)
}

/// Refuses values that are too large for a run, one by one and together.
fn fit<'v>(variables: impl Iterator<Item = (&'v String, &'v Value)>, bounds: ValueBounds) -> Result<(), Refusal> {
    let mut all = 0;
    for (name, value) in variables {
        all += json::named_size(name, value);
        let refused = |fault| unfit(fault).with("path", format!("/inputs/{name}"));
        size::one(name, json::size(value), bounds).map_err(refused)?;
        size::together(all, bounds).map_err(refused)?;
    }
    Ok(())
}

/// Judges what a branch lays over its source, as a new run's inputs are judged, by the bounds that the source has.
pub fn check_overlay(
    plan: &Plan,
    inputs: &Map<String, Value>,
    variables: &Map<String, Value>,
    bounds: ValueBounds,
) -> Result<(), Refusal> {
    inputs.iter().chain(variables).try_for_each(|(name, value)| settable(plan, name, value, bounds))?;
    fit(inputs.iter().chain(variables), bounds)?;
    let declared = plan.definition.variables.iter();
    let given = declared.filter_map(|declared| Some((declared, inputs.get(&declared.name)?)));
    given.into_iter().try_for_each(|(declared, value)| as_declared(declared, value))
}

fn settable(plan: &Plan, name: &str, value: &Value, bounds: ValueBounds) -> Result<(), Refusal> {
    if plan.definition.channels.contains_key(name) {
        return Err(Refusal::invalid(format!("`{name}` is a channel and cannot be set as an input."))
            .with("path", format!("/inputs/{name}")));
    }
    depth::check(name, value)
        .and_then(|()| size::one(name, json::size(value), bounds))
        .map_err(|fault| unfit(fault).with("path", format!("/inputs/{name}")))
}

/// A value that its sender has to mend.
pub(super) fn unfit(fault: Fault) -> Refusal {
    Refusal { kind: RefusalKind::Invalid, fault: Fault { code: code::VALIDATION_ERROR.to_owned(), ..fault } }
}

fn as_declared(declared: &Variable, value: &Value) -> Result<(), Refusal> {
    if fits(declared.kind, value) {
        return Ok(());
    }
    let (is, wanted) = (kind_of(value), name_of(declared.kind));
    let message = format!("The input `{}` is {is}, but the workflow declares {wanted}.", declared.name);
    Err(Refusal::invalid(message).with("path", format!("/inputs/{}", declared.name)))
}

fn fits(kind: VariableKind, value: &Value) -> bool {
    match kind {
        VariableKind::String => value.is_string(),
        VariableKind::Number => value.is_number(),
        VariableKind::Boolean => value.is_boolean(),
        // The protocol's own fixtures pass scalars and lists through variables declared `object`.
        VariableKind::Object => true,
        VariableKind::Array => value.is_array(),
    }
}

fn name_of(kind: VariableKind) -> &'static str {
    match kind {
        VariableKind::String => "a string",
        VariableKind::Number => "a number",
        VariableKind::Boolean => "a boolean",
        VariableKind::Object => "an object",
        VariableKind::Array => "an array",
    }
}
