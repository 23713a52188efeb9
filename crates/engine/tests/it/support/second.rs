//! Going through a log a second time, as a shell would: a window that grows on demand, and a state kept in case a
//! record cannot be taken.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use baton_engine::{Difference, Next, Phase, Plan, Replay, RunState, apply, evolve};
use baton_model::{Record, RunId};

/// What a replay came to.
pub struct Second {
    pub state: RunState,
    pub log: Vec<Record>,
    pub difference: Option<Difference>,
}

/// The run before record `end`, as its log tells it.
pub fn folded(run: &RunId, plan: &Arc<Plan>, log: &[Record], end: usize) -> RunState {
    log[..end].iter().try_fold(RunState::new(run.clone(), Arc::clone(plan)), evolve).expect("the log folds")
}

/// Goes through `log` from `from` on, seeing `page` records at a time.
pub fn second(run: &RunId, plan: &Arc<Plan>, log: &[Record], from: usize, page: usize) -> Second {
    // Whatever the log is, one that goes on past a cancellation comes to an end too.
    let onward = onward(run, plan, log, from, page);
    assert!(matches!(onward.state.phase(), Phase::Ended { .. }), "a replay ends");
    go(Replay::new(RunId::new("run_source"), from as u64), folded(run, plan, log, from), log, from, page)
}

/// The same, going on where the run was cancelled.
pub fn onward(run: &RunId, plan: &Arc<Plan>, log: &[Record], from: usize, page: usize) -> Second {
    let replay = Replay::new(RunId::new("run_source"), from as u64).past_cancellation();
    go(replay, folded(run, plan, log, from), log, from, page)
}

fn go(mut replay: Replay, mut state: RunState, log: &[Record], from: usize, page: usize) -> Second {
    let mut made: Vec<Record> = Vec::new();
    let mut seen = from;
    // Every step takes something from the source or ends the run, but for the few that a run takes by itself.
    for _ in 0..10 * (log.len() + 1000) {
        let position = usize::try_from(replay.position()).unwrap().min(log.len());
        seen = seen.max(position);
        let kept = state.clone();
        match replay.step(&state, &log[position..seen], seen == log.len()) {
            Next::More => {
                assert!(seen < log.len(), "there is no more");
                seen = (seen + page).min(log.len());
            }
            Next::Done => return Second { state, log: made, difference: replay.difference },
            Next::Append { drafts, at, .. } => match apply(&mut state, drafts, at) {
                Ok(records) => made.extend(records),
                Err(_) => {
                    state = kept;
                    let Next::Append { drafts, at, .. } = replay.refused(&state, &log[position]) else { continue };
                    made.extend(apply(&mut state, drafts, at).expect("saying that it differs is always possible"));
                }
            },
        }
    }
    panic!("the replay does not come to an end");
}
