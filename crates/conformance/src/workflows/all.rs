use serde_json::Value;

use super::draft::Draft;
use super::{agents, children, interrupts, memory, models, orchestration, plain};

/// Every workflow of conformance mode, in the order in which they are registered.
pub(crate) fn all() -> Vec<Value> {
    let drafts = plain::workflows().into_iter().chain(interrupts::workflows()).chain(children::workflows());
    let drafts = drafts.chain(orchestration::workflows()).chain(memory::workflows()).chain(models::workflows());
    let drafts = drafts.chain(agents::workflows());
    drafts.map(Draft::build).chain([plain::configurable_schema(), plain::message_reducer()]).collect()
}
