//! What this host can run, as far as registration cares.

use crate::expr::Strictness;

/// What this host can run, as far as registration cares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Test-only node types are allowed.
    pub conformance: bool,
    /// The definition was written by a test seam: it is a test workflow whatever its id, and dots may stand in the id,
    /// as they do in the ids other hosts' tests use.
    pub for_test_endpoint: bool,
    /// Supervisors may be live agents; the shell can ask them.
    pub live_agents: bool,
    /// Mappings that an operator (or a test) has switched off.
    pub no_dispatch_mapping: bool,
    pub no_sub_workflow_mapping: bool,
    /// The definition was accepted before and a run of it is on record: what is over a bound that came later is read all
    /// the same, and fails when it is evaluated.
    pub recorded: bool,
}

impl Features {
    pub(crate) fn strictness(self) -> Strictness {
        if self.recorded { Strictness::Recorded } else { Strictness::New }
    }
}
