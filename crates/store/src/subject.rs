//! What a write is about and how large it is, for stores that have to refuse one.

use baton_model::RunId;

use crate::{Change, Commit, CommitError, CommitPart, DeadLetterWrite, RunRow, StoredRecord, VersionedStoreId, Write};

/// The largest commit that is taken. Databases take values of about 1 GB and messages of no more, and a text may take twice
/// its size on its way there; this leaves room for both.
pub const COMMIT_BYTES: usize = 256 * 1024 * 1024;
/// How much of a name is repeated in a message.
const SHOWN: usize = 80;

impl Commit {
    /// About how much there is to write.
    pub fn bytes(&self) -> usize {
        self.writes().iter().map(Write::bytes).sum()
    }

    /// Refuses what no store would take.
    pub fn check_size(&self) -> Result<(), CommitError> {
        self.parts().try_for_each(|part| part.check_size())
    }
}

impl CommitPart<'_> {
    /// Refuses what no store would take.
    pub fn check_size(&self) -> Result<(), CommitError> {
        self.check_size_within(COMMIT_BYTES)
    }

    pub(crate) fn check_size_within(&self, most: usize) -> Result<(), CommitError> {
        let bytes: usize = self.writes.iter().map(Write::bytes).sum();
        if bytes <= most {
            return Ok(());
        }
        let largest = self.writes.iter().max_by_key(|write| write.bytes());
        let reason = format!("{bytes} bytes are more than the {most} that a commit may have");
        Err(self.refused(largest, &reason))
    }

    /// Why this part was refused because of that write; `None` where it could not be told which.
    pub fn refused(&self, write: Option<&Write>, reason: &dyn std::fmt::Display) -> CommitError {
        let about = write.map_or_else(|| "a commit".to_owned(), Write::about);
        let run = write.and_then(Write::run).or_else(|| self.run());
        CommitError::Refused { run: run.cloned(), reason: format!("{about}: {reason}") }
    }

    /// The run that this part belongs to, if it belongs to one. Where that is not sure it is nobody's: a wrong name would
    /// put somebody else in quarantine.
    pub fn run(&self) -> Option<&RunId> {
        let mut runs = self.writes.iter().filter_map(Write::run);
        let first = runs.next()?;
        runs.all(|run| run == first).then_some(first)
    }
}

impl Write {
    /// The run that this is about.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::CreateRun(row) | Self::Append { row, .. } => Some(&row.id),
            Self::OpenInterrupt(row) => Some(&row.run),
            Self::CloseInterrupt { run, .. } | Self::Prune { run, .. } | Self::DeleteDelivery { run, .. } => Some(run),
            Self::PutDelivery(row) => Some(&row.run),
            Self::DeadLetters(DeadLetterWrite::Put(row)) => Some(&row.run),
            Self::Change { change, .. } => change.run.as_ref(),
            Self::PutSpending(row) => Some(&row.run),
            Self::Quarantine(row) => Some(&row.run),
            Self::EndQuarantine { root } | Self::HandOver { root, .. } => Some(root),
            Self::PutBlob { .. }
            | Self::ForkVersionedStore { .. }
            | Self::ForgetHistory { .. }
            | Self::DropVersionedStore(_)
            | Self::PutWorkflow(_)
            | Self::PutReply(_)
            | Self::PruneReplies { .. }
            | Self::PutWebhook(_)
            | Self::NoteAttempt { .. }
            | Self::ChangeWebhook { .. }
            | Self::DeleteWebhook(_)
            | Self::DeadLetters(_)
            | Self::ReleaseClaim { .. }
            | Self::AnswerForwarded { .. }
            // What is said about a run is none of its doing, and neither is what a runner does with a step of it.
            | Self::Annotate(_)
            | Self::Checkpoint(_)
            | Self::Runners(_)
            | Self::Probe { .. } => None,
        }
    }

    /// The same for people, whatever it is about.
    pub fn about(&self) -> String {
        let ledger = |ledger: &VersionedStoreId| {
            let (kind, scope, tenant) = (ledger.kind.as_str(), shown(&ledger.scope), shown(ledger.tenant.as_str()));
            format!("{kind} {scope} of {tenant}")
        };
        match self {
            Self::CreateRun(row) => format!("the row of {}", shown(row.id.as_str())),
            Self::Append { row, .. } => format!("the log of {}", shown(row.id.as_str())),
            Self::OpenInterrupt(row) => {
                format!("the interrupt of {} at {}", shown(row.run.as_str()), shown(row.node.as_str()))
            }
            Self::CloseInterrupt { run, node } => {
                format!("the interrupt of {} at {}", shown(run.as_str()), shown(node.as_str()))
            }
            Self::PutBlob { digest, .. } => format!("the blob {digest}"),
            Self::Change { ledger: id, .. }
            | Self::ForkVersionedStore { ledger: id, .. }
            | Self::ForgetHistory { ledger: id, .. }
            | Self::DropVersionedStore(id) => ledger(id),
            Self::Prune { run, .. } => format!("the pruning of {}", shown(run.as_str())),
            Self::Quarantine(row) => format!("the quarantine of {}", shown(row.root.as_str())),
            Self::EndQuarantine { root } => format!("the quarantine of {}", shown(root.as_str())),
            Self::PutWorkflow(row) => {
                format!("the workflow {} of {}", shown(row.id.as_str()), shown(row.tenant.as_str()))
            }
            Self::Annotate(row) => format!("an annotation of {}", shown(row.run.as_str())),
            Self::Checkpoint(write) => format!("a checkpoint of {}", shown(write.run().as_str())),
            Self::PutSpending(row) => format!("what {} has spent", shown(row.run.as_str())),
            Self::PutReply(_) | Self::PruneReplies { .. } => "a reply".to_owned(),
            Self::PutWebhook(row) => {
                format!("the webhook {} of {}", shown(row.id.as_str()), shown(row.tenant.as_str()))
            }
            Self::NoteAttempt { webhook, .. } | Self::ChangeWebhook { webhook, .. } | Self::DeleteWebhook(webhook) => {
                format!("the webhook {}", shown(webhook.as_str()))
            }
            Self::PutDelivery(row) => format!("a delivery of {}", shown(row.run.as_str())),
            Self::DeleteDelivery { run, .. } => format!("a delivery of {}", shown(run.as_str())),
            Self::DeadLetters(write) => match write.webhook() {
                Some(webhook) => format!("the dead letters of {}", shown(webhook.as_str())),
                None => "dead letters".to_owned(),
            },
            Self::Runners(write) => write.about().to_owned(),
            Self::HandOver { root, .. } => format!("the hand-over of {}", shown(root.as_str())),
            Self::ReleaseClaim { name } => format!("the claim {}", shown(name)),
            Self::AnswerForwarded { id, .. } => format!("the letter {}", shown(id)),
            Self::Probe { .. } => "a probe".to_owned(),
        }
    }

    /// About how much there is to write: what may be long, without what is always short.
    pub fn bytes(&self) -> usize {
        match self {
            Self::CreateRun(row) => row_bytes(row),
            Self::Append { row, records, .. } => {
                row_bytes(row) + records.iter().map(StoredRecord::bytes).sum::<usize>()
            }
            Self::OpenInterrupt(row) => {
                row.node.as_str().len() + row.key.len() + row.kind.len() + json_bytes(&row.data)
            }
            Self::CloseInterrupt { node, .. } => node.as_str().len(),
            Self::PutBlob { bytes, .. } => bytes.len(),
            Self::Change { ledger, change } => ledger.scope.len() + change_bytes(change),
            Self::ForkVersionedStore { ledger, base, .. } => ledger.scope.len() + base.scope.len(),
            Self::ForgetHistory { ledger, .. } | Self::DropVersionedStore(ledger) => ledger.scope.len(),
            Self::PutWorkflow(row) => row.id.as_str().len() + row.name.len(),
            Self::PutReply(reply) => reply.body.len(),
            Self::PutWebhook(row) => row.url.len() + texts(&row.events) + texts(&row.tags) + row.secret.len(),
            Self::Quarantine(row) => row.cause.len() + row.detail.len(),
            Self::Annotate(row) => row.id.len() + row.body.len(),
            Self::Checkpoint(write) => write.bytes(),
            Self::PutSpending(row) => row.body.len(),
            Self::Runners(write) => write.bytes(),
            Self::ReleaseClaim { name } => name.len(),
            Self::AnswerForwarded { id, body } => id.len() + body.len(),
            Self::Prune { .. }
            | Self::EndQuarantine { .. }
            | Self::PruneReplies { .. }
            | Self::NoteAttempt { .. }
            | Self::ChangeWebhook { .. }
            | Self::DeleteWebhook(_)
            | Self::DeadLetters(_)
            | Self::PutDelivery(_)
            | Self::DeleteDelivery { .. }
            | Self::HandOver { .. }
            | Self::Probe { .. } => 0,
        }
    }
}

fn texts(list: &[String]) -> usize {
    list.iter().map(String::len).sum()
}

fn row_bytes(row: &RunRow) -> usize {
    let summary = row.summary.as_ref().map_or(0, |summary| summary.len());
    let node = row.current_node.as_ref().map_or(0, |node| node.as_str().len());
    let scopes = row.scope.as_ref().map_or(0, String::len) + row.memory_scope.len() + row.workspace_scope.len();
    row.workflow.as_str().len() + texts(&row.tags) + summary + node + scopes
}

impl StoredRecord {
    /// About how much there is to write.
    pub fn bytes(&self) -> usize {
        self.kind.len() + self.body.len() + self.private.as_ref().map_or(0, String::len)
    }
}

fn change_bytes(change: &Change) -> usize {
    let item = change.item.as_ref().map_or(0, |item| item.content.len() + texts(&item.meta.tags));
    change.key.len() + item
}

fn json_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(json_bytes).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + json_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// As much of a name as a message needs.
fn shown(name: &str) -> String {
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", name[..end].escape_debug()),
        None => name.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use baton_model::Digest;

    use super::*;
    use crate::Chains;

    fn blob(bytes: usize) -> Write {
        Write::PutBlob { digest: Digest::of_bytes([0]), bytes: vec![0; bytes] }
    }

    fn of(run: &str) -> Write {
        Write::EndQuarantine { root: RunId::new(run) }
    }

    fn commit(parts: impl IntoIterator<Item = Vec<Write>>) -> Commit {
        Commit::of_parts(1, parts.into_iter().map(|part| (part, Chains::default())))
    }

    fn named(part: CommitPart<'_>, write: Option<usize>) -> Option<String> {
        match part.refused(write.map(|at| &part.writes[at]), &"no") {
            CommitError::Refused { run, .. } => run.map(|run| run.to_string()),
            other => unreachable!("{other}"),
        }
    }

    #[test]
    fn a_write_is_its_own_runs_or_that_of_what_it_was_made_with_or_nobodys() {
        let commit = commit([vec![of("a"), blob(1)], vec![blob(2)], vec![of("b"), of("c"), blob(3)]]);
        let parts: Vec<_> = commit.parts().collect();
        assert_eq!(parts.len(), 3);
        assert_eq!(named(parts[0], Some(0)).as_deref(), Some("a"));
        assert_eq!(named(parts[0], Some(1)).as_deref(), Some("a"), "made with it");
        assert_eq!(named(parts[0], None).as_deref(), Some("a"), "whichever write it was");
        assert_eq!(named(parts[1], Some(0)), None, "made with nobody's");
        assert_eq!(named(parts[2], Some(1)).as_deref(), Some("c"));
        assert_eq!(named(parts[2], Some(2)), None, "it may be either's");
    }

    #[test]
    fn a_part_is_too_large_by_itself_and_not_by_what_it_is_sent_with() {
        let commit = commit([vec![of("a"), blob(60)], vec![of("b"), blob(200)], vec![of("c"), blob(60)]]);
        let refused = |part: CommitPart<'_>| match part.check_size_within(100) {
            Err(CommitError::Refused { run, .. }) => run.map(|run| run.to_string()),
            _ => None,
        };
        assert_eq!(commit.parts().map(refused).collect::<Vec<_>>(), [None, Some("b".to_owned()), None]);
    }
}
