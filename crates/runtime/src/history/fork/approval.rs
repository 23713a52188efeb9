//! Who may make a branch for real, where people have answered something before the point it begins at.

use std::collections::BTreeSet;

use baton_model::event::{ForkApproved, ForkChanges, RestsOn};
use baton_model::{Event, Origin, Overlay, Part, Principal, Record, RunId, Scope, SideEffects, code};
use baton_store::{RunRow, StoredRecord};
use serde_json::{Map, Value};

use crate::history::fork::service::Forks;
use crate::{Error, ErrorKind, ForkRun};

impl Forks {
    /// Whether the caller may make this branch, and what is recorded of it if that counts as answering anew. `last` is
    /// the last record that the branch keeps.
    pub(super) async fn approved(
        &self,
        who: &Principal,
        source: &RunRow,
        request: &ForkRun,
        overlay: &Overlay,
        last: &StoredRecord,
    ) -> Result<Option<ForkApproved>, Error> {
        let ended = request.from_seq > 0 && last.decode(&source.id)?.event.is_terminal();
        if request.side_effects == SideEffects::Simulated || ended {
            return Ok(None);
        }
        let until = request.from_seq;
        // What earlier branches changed, simulated ones too, is still different here.
        let mut overlays = self.log.overlays(source, until).await?;
        overlays.push((until, overlay.clone()));
        overlays.retain(|(_, overlay)| changes_data(overlay));
        let changed_at = overlays.iter().map(|(at, _)| *at).max();
        let names = |of: fn(&Overlay) -> &Map<String, Value>| {
            let all: BTreeSet<&String> = overlays.iter().flat_map(|(_, overlay)| of(overlay).keys()).collect();
            all.into_iter().cloned().collect()
        };
        let changed = ForkChanges {
            inputs: names(|overlay| &overlay.inputs),
            variables: names(|overlay| &overlay.variables),
            configurable: names(|overlay| &overlay.configurable),
        };
        let Some(rests_on) = self.rests_on(source, until, changed_at).await? else {
            return Ok(None);
        };
        if !who.scopes.allow(Scope::ApprovalsRespond) {
            return Err(refused(&rests_on));
        }
        Ok(Some(ForkApproved {
            source_run_id: source.id.clone(),
            from_seq: request.from_seq,
            approved_by: who.subject.clone(),
            rests_on,
            changed,
        }))
    }
}

/// Whether a branch goes on with other data than its source. Bounds that the host sets are no data.
fn changes_data(overlay: &Overlay) -> bool {
    [&overlay.inputs, &overlay.variables, &overlay.configurable].into_iter().any(|map| !map.is_empty())
}

/// The record that a branch has beyond what it keeps: somebody said so, so a replay takes it as it stands.
pub(super) fn recorded(run: &RunId, seq: u64, origin: &Origin, event: ForkApproved) -> StoredRecord {
    let part = Some(Part { outside: true, first: true });
    let record =
        Record { seq, at: origin.at, event: Event::from(event), causation: None, versions: origin.versions, part };
    StoredRecord::encode(run, &record)
}

fn refused(rests_on: &RestsOn) -> Error {
    let (why, run, interrupt) = match rests_on {
        RestsOn::Answer { run_id, interrupt_id, .. } => {
            ("people answered a question before this point", Some(run_id), interrupt_id.as_ref())
        }
        RestsOn::OpenQuestion { run_id, interrupt_id, .. } => {
            ("a question is open at this point and shows other data", Some(run_id), Some(interrupt_id))
        }
        RestsOn::OtherHost { run_id } => {
            ("some of what came before happened on another host, where people may have answered", Some(run_id), None)
        }
        RestsOn::Imported { run_id } => {
            ("it comes from an imported run, whose answers nobody here saw", Some(run_id), None)
        }
        RestsOn::Unknown => ("it cannot be told what people answered before this point", None, None),
    };
    let message = format!(
        "A branch with real side effects is approved anew, because {why}. Use a key with the scope {}, or leave \
         `sideEffects` at \"simulated\".",
        Scope::ApprovalsRespond
    );
    let mut error = Error::new(ErrorKind::Forbidden, code::FORBIDDEN, message)
        .with("scopeRequired", Scope::ApprovalsRespond.as_str())
        .with("sideEffects", "real");
    if let Some(run) = run {
        error = error.with("runId", run.as_str());
    }
    if let Some(interrupt) = interrupt {
        error = error.with("interruptId", interrupt.as_str());
    }
    error
}
