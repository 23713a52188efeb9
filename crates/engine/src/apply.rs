//! Drafts become records: numbered, dated and folded at once.

use baton_model::{Draft, Record, Timestamp, Versions};

use crate::fold::{IllegalRecord, evolve_in_place};
use crate::state::RunState;

/// Gives drafts their places on the log and folds them in place. The log's clock never runs backwards. After an error
/// the state is between two records and must be thrown away.
pub fn apply(state: &mut RunState, drafts: Vec<Draft>, at: Timestamp) -> Result<Vec<Record>, IllegalRecord> {
    let at = at.max(state.last_at);
    let mut records = Vec::with_capacity(drafts.len());
    for Draft { event, causation } in drafts {
        let record = Record { seq: state.next_seq, at, event, causation, versions: Versions::default(), part: None };
        evolve_in_place(state, &record)?;
        records.push(record);
    }
    Ok(records)
}
