//! Trees that nobody may step, and those that may step again.

use super::Plan;
use super::left::split;
use crate::rows;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn quarantines(&self, all: &mut Vec<Statement<'a>>) {
        let (gone, kept) = split(&self.quarantine);
        if !gone.is_empty() {
            all.push(Statement::new(END).texts(gone.iter().map(|root| root.as_str())));
            all.push(Statement::new(RELEASE).texts(gone.iter().map(|root| root.as_str())));
        }
        if !kept.is_empty() {
            all.push(
                Statement::new(PUT)
                    .texts(kept.iter().map(|row| row.root.as_str()))
                    .texts(kept.iter().map(|row| row.tenant.as_str()))
                    .texts(kept.iter().map(|row| row.run.as_str()))
                    .list(kept.iter().map(|row| rows::integer(row.seq)))
                    .texts(kept.iter().map(|row| row.cause.as_str()))
                    .texts(kept.iter().map(|row| row.detail.as_str()))
                    .list(kept.iter().map(|row| row.at.as_micros())),
            );
        }
    }
}

pub(super) const END: &str = "DELETE FROM quarantine WHERE root = ANY($1)";
/// One more death is one too many.
pub(super) const RELEASE: &str = "UPDATE suspects SET takeovers = least(takeovers, 1), deaths = least(deaths, 1), \
        marked_by = NULL
    WHERE root = ANY($1)";
const PUT: &str = "INSERT INTO quarantine (root, tenant, run, seq, cause, detail, at)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[], $5::TEXT[], $6::TEXT[], $7::BIGINT[])
    ON CONFLICT (root) DO UPDATE SET tenant = excluded.tenant, run = excluded.run, seq = excluded.seq, \
        cause = excluded.cause, detail = excluded.detail, at = excluded.at";
