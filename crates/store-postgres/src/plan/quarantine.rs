//! Trees that nobody may step, and those that may step again.

use baton_store::codec::Existing;

use super::Plan;
use super::left::split;
use crate::insert;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn quarantines(&self, all: &mut Vec<Statement<'a>>) {
        let (gone, kept) = split(&self.quarantine);
        if !gone.is_empty() {
            all.push(Statement::new(END).texts(gone.iter().map(|root| root.as_str())));
            all.push(Statement::new(RELEASE).texts(gone.iter().map(|root| root.as_str())));
        }
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Replace, kept));
        }
    }
}

pub(super) const END: &str = "DELETE FROM quarantine WHERE root = ANY($1)";
/// One more death is one too many.
pub(super) const RELEASE: &str = "UPDATE suspects SET takeovers = least(takeovers, 1), deaths = least(deaths, 1), \
        marked_by = NULL
    WHERE root = ANY($1)";
