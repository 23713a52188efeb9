//! What a checkpoint is, and what is none. That every state goes through one unchanged is what the other tests here see
//! to: they go on from checkpoints (`support/checkpoints.rs`).

use crate::support;

use std::sync::Arc;

use baton_engine::{Checkpoint, RunState, Unusable};
use baton_model::RunId;
use serde_json::json;
use support::checkpoints::again;
use support::{plan, run, workflow};

#[test]
fn a_checkpoint_is_of_one_plan() {
    let definition = |nodes: &[(&str, &str, serde_json::Value)]| workflow(nodes, &[]);
    let noop = || json!({"ms": 1000});
    let world = run(definition(&[("a", "core.delay", noop())]));
    let other = plan(definition(&[("a", "core.delay", noop()), ("b", "core.delay", noop())]));
    let written = Checkpoint::of(&world.state);
    let read = Checkpoint::restore(&written.body, other, |_| None);
    assert!(matches!(read, Err(Unusable::Plan)), "{read:?}");
    let cut = Checkpoint::restore(&written.body[..written.body.len() - 1], Arc::clone(world.state.plan()), |_| None);
    assert!(matches!(cut, Err(Unusable::Json(_))), "{cut:?}");
    assert_eq!(format!("{:?}", again(&world.state)), format!("{:?}", world.state));
}

#[test]
fn a_run_before_its_first_record_goes_through_one() {
    let state = RunState::new(RunId::new("r"), plan(workflow(&[("a", "core.delay", json!({"ms": 1000}))], &[])));
    assert_eq!(format!("{:?}", again(&state)), format!("{state:?}"));
}
