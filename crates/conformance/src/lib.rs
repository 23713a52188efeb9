//! Everything that exists only so that a conformance suite can drive a host: its workflows and agents, the mock provider,
//! and a look at what leaves the host. The host asks through [`baton_runtime::TestHooks`] and does not know this crate.

mod agents;
mod calls;
mod memory_checks;
mod mode;
mod prompts;
mod race;
mod switches;
mod transcripts;
mod unchecked;
mod workflows;

pub use agents::{CONFORMANCE_AGENT, CONFORMANCE_STRICT_AGENT};
pub use mode::Conformance;
pub use transcripts::transcript_window;
pub use unchecked::{known_offers, unchecked};
