//! What is written beside the logs: open questions, definitions, replies.

use baton_store::codec::Existing;

use super::Plan;
use super::left::split;
use crate::insert;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn parts(&mut self, all: &mut Vec<Statement<'a>>) {
        let (gone, open) = split(&self.interrupts);
        if !gone.is_empty() {
            let runs = gone.iter().map(|(run, _)| run.as_str());
            all.push(Statement::new(CLOSE).texts(runs).keys(gone.iter().map(|(_, node)| node.as_str())));
        }
        if !open.is_empty() {
            all.push(insert::rows(Existing::Replace, open));
        }
        if !self.blobs.is_empty() {
            all.push(insert::blobs(self.blobs.iter().map(|(digest, bytes)| (digest.as_str(), *bytes))));
        }
        if !self.workflows.is_empty() {
            all.push(insert::rows(Existing::Replace, self.workflows.values().copied()));
        }
        if let Some(before) = self.replies_before {
            all.push(Statement::new(PRUNE_REPLIES).value(before.as_micros()));
        }
        let (gone, kept) = split(&self.replies);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_REPLIES).texts(gone.iter().map(|key| key.as_str())));
        }
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Replace, kept));
        }
    }
}

pub(super) const CLOSE: &str = "DELETE FROM interrupts USING unnest($1::TEXT[], $2::TEXT[]) AS gone (run, node)
    WHERE interrupts.run = gone.run AND interrupts.node = gone.node";
pub(super) const PRUNE_REPLIES: &str = "DELETE FROM replies WHERE expires_at < $1";
pub(super) const DELETE_REPLIES: &str = "DELETE FROM replies WHERE key = ANY($1)";
