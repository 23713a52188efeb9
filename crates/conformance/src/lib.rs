//! Everything that exists only so that a conformance suite can drive a host: its workflows and agents, the mock provider,
//! a look at what leaves the host, and test endpoints. The host asks through [`baton_runtime::TestHooks`] and does not know this crate.

mod agents;
mod calls;
mod discovery;
mod endpoints;
mod journal;
mod memory_checks;
mod mode;
mod prompts;
mod race;
mod switches;
mod transcripts;
mod unchecked;
mod workflows;

pub use endpoints::routes;
pub use mode::Conformance;
