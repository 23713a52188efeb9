//! Remarks about runs.

use baton_store::codec::Existing;

use super::Plan;
use crate::insert;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn annotations(&self, all: &mut Vec<Statement<'a>>) {
        if !self.dropped_logs.is_empty() {
            all.push(Statement::new(DROP).texts(self.dropped_logs.iter().map(|run| run.as_str())));
        }
        if !self.annotations.is_empty() {
            all.push(insert::rows(Existing::Replace, self.annotations.values().copied()));
        }
    }
}

pub(super) const DROP: &str = "DELETE FROM annotations WHERE run = ANY($1)";
