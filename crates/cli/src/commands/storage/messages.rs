//! What hosts had written to each other when they were stopped. Only a database has a place for it; a folder has one
//! owner, who would look for none of it.

use baton_model::RunId;
use baton_runtime::{forwarded_matters, key_of_forwarded};
use serde::Serialize;

use super::location::Open;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;
use crate::output::Output;

const PAGE: usize = 500;

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Messages {
    pub(super) copied: u64,
    /// Runs of which something was asked that nobody has done.
    pub(super) undone: Vec<RunId>,
    /// Runs of which something was asked with a key and done, and the answer lies nowhere else.
    pub(super) unkept: Vec<RunId>,
}

/// Copies the letters that still matter, or says which could not be.
pub(super) async fn copy(source: &Open, target: &Open, output: &Output) -> Result<Messages, Failure> {
    let failed = |error: baton_store::Error| database_failure(&error).about("letters between hosts");
    let mut messages = Messages::default();
    let Some(from) = source.database() else { return Ok(messages) };
    let mut after = String::new();
    loop {
        let page = from.posted(&after, PAGE).await.map_err(failed)?;
        let Some(last) = page.last() else { break };
        after = last.id.clone();
        for message in &page {
            let answer = message.answer.as_ref().map(|(text, _)| text.as_str());
            if !forwarded_matters(&message.id, answer) {
                continue;
            }
            // Once it is a reply, it was copied as one.
            if let Some(key) = key_of_forwarded(&message.id)
                && source.whole.reply(&key).await.map_err(failed)?.is_some()
            {
                continue;
            }
            match (target.database(), answer) {
                (Some(to), _) => {
                    to.post(message).await.map_err(failed)?;
                    messages.copied += 1;
                }
                (None, None) => messages.undone.push(message.run.clone()),
                (None, Some(_)) => messages.unkept.push(message.run.clone()),
            }
        }
    }
    for run in &messages.undone {
        output.note(format_args!("not copied: a request to {run} that was not done; repeat it if you still need it"));
    }
    for run in &messages.unkept {
        output.note(format_args!(
            "not copied: the result of a request to {run} that was done; check the run before you repeat the request"
        ));
    }
    Ok(messages)
}
