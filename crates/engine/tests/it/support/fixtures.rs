//! The protocol's own test workflows, where a copy of them is at hand: point `OPENWOP_FIXTURES` at their folder. Without
//! it there is nothing to run, and nothing is said.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::disallowed_methods,
    reason = "reading an optional folder is the point here; the engine itself does not"
)]

use std::path::PathBuf;

use serde_json::Value;

use super::World;
use super::agents::started;

/// A run of this workflow, as far as it goes by itself.
pub fn fixture(id: &str) -> Option<World> {
    let folder = PathBuf::from(std::env::var_os("OPENWOP_FIXTURES")?);
    let text = std::fs::read_to_string(folder.join(format!("{id}.json"))).expect("the fixture is there");
    let definition: Value = serde_json::from_str(&text).expect("a fixture is JSON");
    Some(started(definition))
}
