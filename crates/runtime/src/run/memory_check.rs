//! Memory checks of a test mode: a few ordinary writes and reads in one step. What is written, and what is made of what
//! was seen, is the mode's own; see [`TestHooks`](crate::TestHooks).

use baton_engine::{Answer, Found, NewEntry, NodeRequest, Probe};
use baton_model::{NodeId, Timestamp};
use baton_store::{Change, ReadView, VersionedStoreId};

use crate::Error;
use crate::run::requests::Step;
use crate::services::versioned::prepared::{LIST_LIMIT, Prepared, Ready, entries, entry_written, failed};
use crate::services::versioned::read::latest;
use crate::services::versioned::service::VersionedStores;
use crate::services::versioned::store::VersionedStore;
use crate::test_hooks::Readback;

impl VersionedStores {
    /// What a handle shows that was not minted for this run: a scope of the run's own tenant at most.
    pub(crate) async fn foreign(
        &self,
        own: &VersionedStore,
        handle: &str,
        at: Timestamp,
    ) -> Result<Vec<Change>, Error> {
        let Some(scope) = handle.strip_prefix("memory:") else { return Ok(Vec::new()) };
        let ledger = VersionedStoreId::memory(&own.id.tenant, scope);
        self.items(&ledger, &ReadView { limit: Some(LIST_LIMIT), ..latest(at) }).await
    }
}

impl Step<'_> {
    pub(crate) fn probe(
        &mut self,
        node_request: &NodeRequest,
        probe: &Probe,
        prepared: Option<Prepared>,
        memory: &VersionedStore,
    ) -> Result<Ready, Error> {
        let Some(prepared) = prepared else { return Ok(Ready::NotYet) };
        let Some(hooks) = self.room.options.test_hooks.clone() else {
            return self.say(node_request, failed("Memory is checked in conformance mode only."));
        };
        let at = self.at;
        let notes = match hooks.memory_notes(probe, at) {
            Ok(notes) => notes,
            Err(why) => return self.say(node_request, failed(&why)),
        };
        let (run, mut ledger) = (self.run(), memory.lock());
        if !memory.is_ours() {
            return Ok(Ready::NotYet);
        }
        let first_version = ledger.version;
        let mut changes: Vec<Change> = Vec::new();
        for (n, note) in (0..).zip(notes) {
            let id = baton_model::id::memory_id(&run, &NodeId::new(node_request.node.as_str()), node_request.visit, n);
            let entry = NewEntry { id, content: note.content, tags: note.tags, ttl_ms: None };
            match self.room.versioned.remember_until(&ledger, entry, Some(&run), at, note.expires_at) {
                Ok(change) => {
                    ledger.version = change.version;
                    changes.push(change);
                }
                Err(error) => {
                    ledger.version = first_version;
                    drop(ledger);
                    return self.say(node_request, Answer::failed(error.fault()));
                }
            }
        }
        // Taken in one by one below, each after the one before.
        ledger.version = first_version;
        let lens = ReadView { own: Some((run, u64::MAX)), ..ReadView::at(0, at) };
        let foreign = if let Prepared::Foreign(foreign) = prepared { entries(&foreign) } else { Vec::new() };
        let ids: Vec<String> = changes.iter().map(|change| change.key.clone()).collect();
        let seen = Readback { shown: &entries(&lens.view(&changes)), ids: &ids, foreign: &foreign };
        let variables = hooks.memory_readback(probe, &seen);
        let written = changes.iter().map(|change| entry_written(memory, change)).collect();
        let answer = Answer { written, found: Ok(Found::Variables(variables)) };
        self.write(node_request, answer, memory, ledger, changes)
    }
}
