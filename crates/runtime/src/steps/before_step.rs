//! A hook for tests that need a run to misbehave.

use std::sync::Arc;

use baton_store::RunRow;

/// Called before each step, with whether the run goes on by itself. For tests that need a run to misbehave.
#[derive(Clone)]
pub struct BeforeStep(pub Arc<Before>);

type Before = dyn Fn(&RunRow, bool) + Send + Sync;

impl std::fmt::Debug for BeforeStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BeforeStep")
    }
}
