//! How often runs have reached outwards: a log cannot tell a call that was made again from one that was answered from the
//! record. Counted where the call leaves. There a call can be held too, as if whoever makes it had stalled.

use std::sync::{Arc, OnceLock};

use baton_model::RunId;
use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

/// Calls that left, by run, and those that are held.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    counts: DashMap<RunId, u64>,
    holds: DashMap<RunId, Arc<Gate>>,
}

#[derive(Debug, Default)]
struct Gate {
    /// The key of the call that stands here.
    key: OnceLock<String>,
    reached: CancellationToken,
    open: CancellationToken,
}

impl Calls {
    pub(crate) fn count(&self, run: &RunId) {
        *self.counts.entry(run.clone()).or_default() += 1;
    }

    pub(crate) fn of(&self, run: &RunId) -> u64 {
        self.counts.get(run).map_or(0, |count| *count)
    }

    /// Holds a run's next effect until what is returned is dropped.
    pub(crate) fn hold(&self, run: &RunId) -> Hold<'_> {
        let gate = Arc::<Gate>::default();
        self.holds.insert(run.clone(), Arc::clone(&gate));
        Hold { calls: self, run: run.clone(), gate }
    }

    /// Lets a call through once nobody holds it.
    pub(crate) async fn pass(&self, run: &RunId, key: &str) {
        let gate = self.holds.get(run).map(|gate| Arc::clone(&gate));
        if let Some(gate) = gate {
            // Whoever came first stays the one that is asked about.
            let _ = gate.key.set(key.to_owned());
            gate.reached.cancel();
            gate.open.cancelled().await;
        }
    }
}

pub(crate) struct Hold<'a> {
    calls: &'a Calls,
    run: RunId,
    gate: Arc<Gate>,
}

impl Hold<'_> {
    /// The key of the call, once it stands here.
    pub(crate) async fn reached(&self) -> String {
        self.gate.reached.cancelled().await;
        self.gate.key.get().cloned().unwrap_or_default()
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.calls.holds.remove_if(&self.run, |_, gate| Arc::ptr_eq(gate, &self.gate));
        self.gate.open.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_held_call_waits_and_any_other_passes() {
        let calls = Calls::default();
        let (held, free) = (RunId::new("run_held"), RunId::new("run_free"));
        let hold = calls.hold(&held);
        calls.pass(&free, "other").await;
        let let_go = async {
            assert_eq!(hold.reached().await, "first");
            drop(hold);
        };
        tokio::join!(calls.pass(&held, "first"), let_go);
        // Nobody holds it any more.
        assert!(tokio::time::timeout(Duration::from_secs(5), calls.pass(&held, "second")).await.is_ok());
    }

    #[test]
    fn calls_are_counted_by_run() {
        let (calls, run) = (Calls::default(), RunId::new("run_a"));
        assert_eq!(calls.of(&run), 0);
        calls.count(&run);
        calls.count(&run);
        assert_eq!((calls.of(&run), calls.of(&RunId::new("run_b"))), (2, 0));
    }
}
