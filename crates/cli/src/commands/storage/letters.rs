//! What hosts had written to each other when they were stopped. Only a database has a place for it; a folder has one
//! owner, who would look for none of it.

use baton_model::RunId;
use baton_runtime::{key_of_letter, letter_matters};
use serde::Serialize;

use super::place::Open;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;
use crate::output::Output;

const PAGE: usize = 500;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Letters {
    pub(super) copied: u64,
    /// Runs of which something was asked that nobody has done.
    pub(super) undone: Vec<RunId>,
    /// Runs of which something was asked with a key and done, and the answer lies nowhere else.
    pub(super) unkept: Vec<RunId>,
}

/// Copies the letters that still matter, or says which could not be.
pub(super) async fn copy(source: &Open, target: &Open, output: &Output) -> Result<Letters, Failure> {
    let failed = |error: baton_store::Error| database_failure(&error).about("letters between hosts");
    let mut letters = Letters::default();
    let Some(from) = source.database() else { return Ok(letters) };
    let mut after = String::new();
    loop {
        let page = from.posted(&after, PAGE).await.map_err(failed)?;
        let Some(last) = page.last() else { break };
        after = last.id.clone();
        for letter in &page {
            let answer = letter.answer.as_ref().map(|(text, _)| text.as_str());
            if !letter_matters(&letter.id, answer) {
                continue;
            }
            // Once it is a reply, it was copied as one.
            if let Some(key) = key_of_letter(&letter.id)
                && source.whole.reply(&key).await.map_err(failed)?.is_some()
            {
                continue;
            }
            match (target.database(), answer) {
                (Some(to), _) => {
                    to.post(letter).await.map_err(failed)?;
                    letters.copied += 1;
                }
                (None, None) => letters.undone.push(letter.run.clone()),
                (None, Some(_)) => letters.unkept.push(letter.run.clone()),
            }
        }
    }
    for run in &letters.undone {
        output.note(format_args!(
            "not copied: what was asked of {run} and has not been done; ask again if it still matters"
        ));
    }
    for run in &letters.unkept {
        output.note(format_args!(
            "not copied: the answer to a keyed request to {run}, which was done; look before asking again"
        ));
    }
    Ok(letters)
}
