//! Who is lost with which chain.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use baton_model::RunId;
use baton_store::WriteChain;
use dashmap::DashMap;

/// What is lost with its chains: those of its tree and of the versioned stores it has looked at.
pub(crate) trait Linked {
    fn chains(&self) -> impl Iterator<Item = &Arc<WriteChain>>;
}

/// Who is lost with a chain. What that costs follows from how many they are, and not from how many runs there are.
pub(crate) struct Dependents<T>(DashMap<usize, BTreeMap<(RunId, usize), Weak<T>>>);

impl<T> Default for Dependents<T> {
    fn default() -> Self {
        Self(DashMap::new())
    }
}

/// Nobody else has the address for as long as somebody in the index keeps it alive.
fn address<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of).addr()
}

impl<T: Linked> Dependents<T> {
    pub(crate) fn add(&self, run: &RunId, one: &Arc<T>) {
        for chain in one.chains() {
            let mut of_chain = self.0.entry(address(chain)).or_default();
            of_chain.insert((run.clone(), address(one)), Arc::downgrade(one));
        }
    }

    pub(crate) fn remove(&self, run: &RunId, one: &Arc<T>) {
        let key = (run.clone(), address(one));
        for chain in one.chains() {
            self.0.remove_if_mut(&address(chain), |_, of_chain| {
                of_chain.remove(&key);
                of_chain.is_empty()
            });
        }
    }

    /// In the order of their names: who is woken first must not depend on how a map hashes.
    pub(crate) fn of(&self, chain: &Arc<WriteChain>) -> Vec<(RunId, Arc<T>)> {
        let Some(of_chain) = self.0.get(&address(chain)) else { return Vec::new() };
        of_chain.iter().filter_map(|((run, _), one)| Some((run.clone(), one.upgrade()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Live([Arc<WriteChain>; 2]);

    impl Linked for Live {
        fn chains(&self) -> impl Iterator<Item = &Arc<WriteChain>> {
            self.0.iter()
        }
    }

    /// However many runs are in memory, whoever looks for what is lost with a tree looks at that tree's.
    #[test]
    fn what_is_lost_with_a_chain_is_found_without_looking_at_anybody_else() {
        let (dependents, shared) = (Dependents::<Live>::default(), Arc::new(WriteChain::of_store()));
        let live: Vec<_> = (0..10_000)
            .map(|number| {
                let store = if number % 1000 == 0 { Arc::clone(&shared) } else { Arc::new(WriteChain::of_store()) };
                let one = Arc::new(Live([Arc::new(WriteChain::of_tree(RunId::new(format!("r{number:05}")))), store]));
                let run = RunId::new(format!("r{number:05}"));
                dependents.add(&run, &one);
                (run, one)
            })
            .collect();
        for (run, one) in live.iter().take(50) {
            let found = dependents.of(&one.0[0]);
            assert_eq!(found.iter().map(|(run, _)| run).collect::<Vec<_>>(), [run], "one handle is looked at");
        }
        let sharing: Vec<RunId> = dependents.of(&shared).into_iter().map(|(run, _)| run).collect();
        assert_eq!(sharing.len(), 10);
        assert!(sharing.is_sorted(), "in the order of their names");
        for (run, one) in &live {
            dependents.remove(run, one);
        }
        assert!(dependents.0.is_empty(), "nothing is left behind");
    }

    /// A handle that goes while another takes its name does not take the other one along.
    #[test]
    fn a_handle_that_goes_leaves_the_next_one_of_its_name() {
        let (dependents, run) = (Dependents::<Live>::default(), RunId::new("r"));
        let chains = [Arc::new(WriteChain::of_tree(run.clone())), Arc::new(WriteChain::of_store())];
        let (old, new) = (Arc::new(Live(chains.clone())), Arc::new(Live(chains.clone())));
        dependents.add(&run, &old);
        dependents.add(&run, &new);
        dependents.remove(&run, &old);
        let found = dependents.of(&chains[0]);
        assert!(found.len() == 1 && Arc::ptr_eq(&found[0].1, &new));
    }
}
