//! A decision that stands in a node's configuration.

use baton_model::Decision;
use serde_json::Value;

use super::config::Config;
use crate::expr::Strictness;
use crate::plan::problem::Problem;

pub(crate) fn read_decision(config: &Config<'_>, place: &str, value: Option<&Value>) -> Result<Decision, Vec<Problem>> {
    let value = value.ok_or_else(|| config.problem(place, "A decision is missing here."))?;
    // On record it counts as absent, as it did then.
    if config.strictness == Strictness::New && value.get("confidence").is_some_and(Value::is_null) {
        let message = "`confidence` is a number from 0 to 1; leave it out where there is none.";
        return Err(config.problem(&format!("{place}/confidence"), message));
    }
    Decision::read(value).map_err(|error| config.problem(place, format!("Not a decision: {error}.")))
}
