//! What is under way in the world on behalf of runs: model and tool calls, children on other hosts. It belongs to the
//! host and not to a live run: a run that leaves memory, or is thrown away with its chain, comes back and finds it
//! still there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_model::RunId;
use baton_store::WriteChain;
use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

/// What the task that sees to something holds.
pub(crate) struct InFlightToken {
    number: u64,
    pub(crate) cancelled: CancellationToken,
}

/// How far something is.
enum Stage {
    /// For the commit of what it follows from, as a link of this chain. If that is lost, so is this.
    Waiting(Arc<WriteChain>),
    /// Out in the world; it follows from what is on disk, whatever becomes of the chain.
    Out,
    /// The answer is in hand and on its way to the log. It is not asked for again, and not given up.
    Answering,
}

struct UnderWay {
    number: u64,
    stage: Stage,
    cancelled: CancellationToken,
}

struct OfRun<K> {
    under_way: BTreeMap<K, UnderWay>,
    /// What this process has recorded itself that it is going to do, and has not begun. Of anything else that is open,
    /// nobody here knows whether it was done.
    intended: BTreeSet<K>,
}

impl<K> Default for OfRun<K> {
    fn default() -> Self {
        Self { under_way: BTreeMap::new(), intended: BTreeSet::new() }
    }
}

impl<K: Ord> OfRun<K> {
    fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.intended.is_empty()
    }

    /// Gives up what is neither kept nor already on its way to the log.
    fn keep(&mut self, kept: impl Fn(&K) -> bool) {
        self.under_way.retain(|key, one| {
            let keep = matches!(one.stage, Stage::Answering) || kept(key);
            if !keep {
                one.cancelled.cancel();
            }
            keep
        });
    }
}

pub(crate) struct InFlight<K> {
    runs: DashMap<RunId, OfRun<K>>,
    numbers: AtomicU64,
}

impl<K: Ord> Default for InFlight<K> {
    fn default() -> Self {
        Self { runs: DashMap::new(), numbers: AtomicU64::new(0) }
    }
}

impl<K: Ord> InFlight<K> {
    /// Gives up what is not wanted any more, and returns what must be begun: nothing for a run that is paused.
    pub(crate) fn reconcile<W>(
        &self,
        run: &RunId,
        chain: &Arc<WriteChain>,
        paused: bool,
        wanted: Vec<W>,
        key: impl Fn(&W) -> K,
    ) -> Vec<(W, InFlightToken)> {
        if wanted.is_empty() && !self.runs.contains_key(run) {
            return Vec::new();
        }
        let mut of_run = self.runs.entry(run.clone()).or_default();
        // A live run of a broken chain may still be at work for a moment, and knows nothing of what is wanted now. Asked
        // with the run's entry in hand, so that nobody newer comes in between.
        if chain.is_broken() {
            drop(of_run);
            self.forget_if_empty(run);
            return Vec::new();
        }
        let is_wanted = |one: &K| wanted.iter().any(|wanted| key(wanted) == *one);
        of_run.intended.retain(is_wanted);
        of_run.keep(is_wanted);
        let mut begin = Vec::new();
        for wanted in wanted {
            let key = key(&wanted);
            match of_run.under_way.get(&key) {
                Some(UnderWay { stage: Stage::Waiting(of), cancelled, .. }) if !Arc::ptr_eq(of, chain) => {
                    cancelled.cancel();
                }
                Some(_) => continue,
                None => {}
            }
            if paused {
                continue;
            }
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            let cancelled = CancellationToken::new();
            let stage = Stage::Waiting(Arc::clone(chain));
            of_run.under_way.insert(key, UnderWay { number, stage, cancelled: cancelled.clone() });
            begin.push((wanted, InFlightToken { number, cancelled }));
        }
        drop(of_run);
        self.forget_if_empty(run);
        begin
    }

    /// A run for which nothing is under way takes no room, and may be moved.
    fn forget_if_empty(&self, run: &RunId) {
        self.runs.remove_if(run, |_, of_run| of_run.is_empty());
    }

    /// This process has just recorded that it is going to do this.
    pub(crate) fn intend(&self, run: &RunId, chain: &WriteChain, key: K) {
        let mut of_run = self.runs.entry(run.clone()).or_default();
        if !chain.is_broken() {
            of_run.intended.insert(key);
        }
        drop(of_run);
        self.forget_if_empty(run);
    }

    /// Somebody else may have done what was intended here.
    pub(crate) fn forget_intentions(&self) {
        self.runs.retain(|_, of_run| {
            of_run.intended.clear();
            !of_run.is_empty()
        });
    }

    /// Whether anything is under way for a run, or about to be.
    pub(crate) fn any(&self, run: &RunId) -> bool {
        self.runs.contains_key(run)
    }

    /// It is about to be done, unless it is not wanted any more. Says whether this process had recorded that it would:
    /// from here on it may have been done, whatever becomes of it.
    pub(crate) fn begin(&self, run: &RunId, key: &K, token: &InFlightToken) -> Option<bool> {
        let mut of_run = self.runs.get_mut(run)?;
        advance(&mut of_run, key, token, Stage::Out)?;
        Some(of_run.intended.remove(key))
    }

    /// The answer is there. Says whether it is still wanted.
    pub(crate) fn answering(&self, run: &RunId, key: &K, token: &InFlightToken) -> bool {
        let of_run = self.runs.get_mut(run);
        of_run.is_some_and(|mut of_run| advance(&mut of_run, key, token, Stage::Answering).is_some())
    }

    /// It is over. What was intended and never begun may still be.
    pub(crate) fn finished(&self, run: &RunId, key: &K, token: &InFlightToken) {
        if let Some(mut of_run) = self.runs.get_mut(run)
            && of_run.under_way.get(key).is_some_and(|one| one.number == token.number)
        {
            of_run.under_way.remove(key);
        }
        self.forget_if_empty(run);
    }

    /// Gives up what fits, so that it is begun anew.
    pub(crate) fn give_up(&self, run: &RunId, fits: impl Fn(&K) -> bool) {
        if let Some(mut of_run) = self.runs.get_mut(run) {
            of_run.keep(|key| !fits(key));
        }
        self.forget_if_empty(run);
    }
}

/// Moves something on, if it is still this one that is wanted.
fn advance<K: Ord>(of_run: &mut OfRun<K>, key: &K, token: &InFlightToken, stage: Stage) -> Option<()> {
    let one = of_run.under_way.get_mut(key).filter(|one| one.number == token.number)?;
    one.stage = stage;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Arc<WriteChain> {
        Arc::new(WriteChain::of_tree(RunId::new("run_a")))
    }

    fn begin(all: &InFlight<u8>, chain: &Arc<WriteChain>, wanted: &[u8]) -> Vec<(u8, InFlightToken)> {
        all.reconcile(&RunId::new("run_a"), chain, false, wanted.to_vec(), |one| *one)
    }

    #[test]
    fn a_wish_is_begun_once_and_given_up_when_nobody_wants_it() {
        let (all, run, chain) = (InFlight::default(), RunId::new("run_a"), chain());
        let first = begin(&all, &chain, &[1, 2]);
        assert_eq!(first.iter().map(|(one, _)| *one).collect::<Vec<_>>(), [1, 2]);
        assert!(begin(&all, &chain, &[1, 2]).is_empty());
        assert!(all.answering(&run, &2, &first[1].1));
        assert!(begin(&all, &chain, &[]).is_empty());
        assert!(first[0].1.cancelled.is_cancelled(), "nobody wants the first any more");
        assert!(!first[1].1.cancelled.is_cancelled(), "the answer of the second is on its way");
        assert_eq!(all.begin(&run, &1, &first[0].1), None);
        all.finished(&run, &2, &first[1].1);
        assert!(!all.any(&run));
    }

    #[test]
    fn what_waited_for_a_lost_commit_is_begun_anew_and_a_broken_chain_is_not_heard() {
        let (all, before, after) = (InFlight::default(), chain(), chain());
        let old = begin(&all, &before, &[1]);
        before.break_off(&baton_store::CommitError::Stale);
        let new = begin(&all, &after, &[1]);
        assert!(old[0].1.cancelled.is_cancelled());
        assert_eq!(new.len(), 1);
        assert!(begin(&all, &before, &[]).is_empty());
        assert!(!new[0].1.cancelled.is_cancelled(), "what the broken chain says counts no more");
    }

    #[test]
    fn whoever_is_not_heard_leaves_nothing_behind() {
        let (all, late, broken) = (InFlight::default(), RunId::new("run_b"), chain());
        broken.break_off(&baton_store::CommitError::Stale);
        assert!(all.reconcile(&late, &broken, false, vec![1], |one: &u8| *one).is_empty());
        all.intend(&late, &broken, 1);
        assert!(!all.any(&late), "a run for which nothing is under way may be moved to another host");
        all.intend(&late, &chain(), 1);
        all.forget_intentions();
        assert!(!all.any(&late));
    }

    #[test]
    fn only_whoever_recorded_an_intention_may_be_the_first_to_do_it() {
        let (all, run, chain) = (InFlight::default(), RunId::new("run_a"), chain());
        all.intend(&run, &chain, 1);
        let begun = begin(&all, &chain, &[1, 2]);
        assert_eq!(all.begin(&run, &1, &begun[0].1), Some(true));
        assert_eq!(all.begin(&run, &1, &begun[0].1), Some(false), "it may have been done by now");
        assert_eq!(all.begin(&run, &2, &begun[1].1), Some(false));
    }

    #[test]
    fn a_paused_run_begins_nothing() {
        let all = InFlight::default();
        assert!(all.reconcile(&RunId::new("run_a"), &chain(), true, vec![1], |one: &i32| *one).is_empty());
        assert!(!all.any(&RunId::new("run_a")));
    }
}
