//! How deeply a value may nest. JSON readers stop at 128 levels, and a record wraps a value in a few of its own, so a
//! value that is let onto the log deeper than this could not be read back: the run would be lost with it.

use baton_model::{Fault, code, json};
use serde_json::Value;

const MOST: usize = 64;

/// Refuses a value that nests too deeply; `what` names it.
pub(crate) fn check(what: &str, value: &Value) -> Result<(), Fault> {
    let depth = json::depth(value);
    if depth <= MOST {
        return Ok(());
    }
    let message = format!("`{what}` nests {depth} levels deep; at most {MOST} are allowed.");
    Err(Fault::new(code::VALIDATION_ERROR, message).with("depth", depth).with("limit", MOST))
}
