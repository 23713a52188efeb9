//! Under which key a checkpoint is found. Whatever a state depends on beside its records is in it, so that one of anything
//! else is not even read.

use baton_engine::{CHECKPOINT_FORMAT, ENGINE_RULE};
use baton_model::{Digest, RunId};
use serde_json::json;

use crate::history::segments::BranchPoint;

/// What folded the records. A fold that was wrong and was mended must not live on in what it left behind, so each release
/// has its own.
pub(super) fn made_by() -> String {
    format!("{CHECKPOINT_FORMAT}/{ENGINE_RULE}/{}/", env!("CARGO_PKG_VERSION"))
}

/// `name` is the run that the log began as, `crossed` where it became others' since.
pub(super) fn key<'a>(plan: &Digest, name: &RunId, crossed: impl IntoIterator<Item = &'a BranchPoint>) -> String {
    let crossed: Vec<_> =
        crossed.into_iter().map(|point| json!({"at": point.at, "run": point.run, "origin": point.origin})).collect();
    let of = Digest::of_json(&json!({"plan": plan.as_str(), "run": name, "crossed": crossed}));
    format!("{}{of}", made_by())
}
