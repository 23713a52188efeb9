//! The conformance suite's memory checks. Each is a few ordinary writes and reads in one step.

use baton_engine::{Answer, Found, NewEntry, NodeRequest, Probe};
use baton_model::{NodeId, Timestamp};
use baton_store::{Change, LedgerId, Lens};
use serde_json::{Map, Value, json};

use super::read::latest;
use super::requests::{LIST_LIMIT, Prepared, Ready, Step, entries, entry_written, failed};
use super::store::VersionedStore;
use crate::Error;
use crate::inner::Inner;

pub(super) const SECRET_ID: &str = "conformance-test-secret";
pub(super) const SECRET_VALUE: &str = "conformance-secret-value-0123456789";

impl Inner {
    /// What a handle shows that was not minted for this run: a scope of the run's own tenant at most.
    pub(super) async fn foreign(
        &self,
        own: &VersionedStore,
        handle: &str,
        at: Timestamp,
    ) -> Result<Vec<Change>, Error> {
        let Some(scope) = handle.strip_prefix("memory:") else { return Ok(Vec::new()) };
        let ledger = LedgerId::memory(&own.id.tenant, scope);
        self.items(&ledger, &Lens { limit: Some(LIST_LIMIT), ..latest(at) }).await
    }
}

impl Step<'_> {
    pub(super) fn probe(
        &mut self,
        consult: &NodeRequest,
        probe: &Probe,
        prepared: Option<Prepared>,
        memory: &VersionedStore,
    ) -> Result<Ready, Error> {
        let Some(prepared) = prepared else { return Ok(Ready::NotYet) };
        if let Probe::Redaction { secret } = probe
            && secret != SECRET_ID
        {
            return self.say(consult, failed("The host knows no secret of that name."));
        }
        let at = self.at;
        let (run, mut ledger) = (self.run(), memory.lock());
        if !memory.is_ours() {
            return Ok(Ready::NotYet);
        }
        let first_version = ledger.version;
        let mut changes: Vec<Change> = Vec::new();
        let wanted = match probe {
            Probe::WriteThenRead => vec![("A note to be read back.".to_owned(), None)],
            Probe::CrossTenant { .. } => vec![("The owner's own note.".to_owned(), None)],
            Probe::Redaction { .. } => vec![(format!("The key is {SECRET_VALUE}, keep it safe."), None)],
            Probe::Ttl => vec![
                ("Has expired.".to_owned(), Some(Timestamp::from_micros(at.as_micros() - 1_000_000))),
                ("Has not.".to_owned(), Some(at.plus_millis(3_600_000))),
            ],
        };
        for (n, (content, expires_at)) in (0..).zip(wanted) {
            let id = baton_model::id::memory_id(&run, &NodeId::new(consult.node.as_str()), consult.visit, n);
            let entry = NewEntry { id, content, tags: vec!["conformance".to_owned()], ttl_ms: None };
            match self.inner.remember_until(&ledger, entry, Some(&run), at, expires_at) {
                Ok(change) => {
                    ledger.version = change.version;
                    changes.push(change);
                }
                Err(error) => {
                    ledger.version = first_version;
                    drop(ledger);
                    return self.say(consult, Answer::failed(error.fault()));
                }
            }
        }
        // Taken in one by one below, each after the one before.
        ledger.version = first_version;
        let lens = Lens { own: Some((run, u64::MAX)), ..Lens::at(0, at) };
        let shown = entries(&lens.view(&changes));
        let variables = readback(probe, &shown, &changes, prepared);
        let written = changes.iter().map(|change| entry_written(memory, change)).collect();
        let answer = Answer { written, found: Ok(Found::Variables(variables)) };
        self.write(consult, answer, memory, ledger, changes)
    }
}

fn readback(
    probe: &Probe,
    shown: &[baton_model::MemoryEntry],
    changes: &[Change],
    prepared: Prepared,
) -> Map<String, Value> {
    let id = |n: usize| changes.get(n).map(|change| change.key.clone());
    let value = match (probe, prepared) {
        (Probe::WriteThenRead | Probe::Redaction { .. }, _) => json!({"memoryReadback": shown.first()}),
        (Probe::Ttl, _) => json!({"memoryList": shown, "expiredId": id(0), "freshId": id(1)}),
        (Probe::CrossTenant { .. }, Prepared::Foreign(foreign)) => {
            json!({"crossTenantProbe": entries(&foreign), "ownerProbe": shown, "ownerEntryId": id(0)})
        }
        (Probe::CrossTenant { .. }, _) => json!({"crossTenantProbe": [], "ownerProbe": shown, "ownerEntryId": id(0)}),
    };
    value.as_object().cloned().unwrap_or_default()
}
