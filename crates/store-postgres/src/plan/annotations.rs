//! Remarks about runs.

use super::Plan;
use crate::statement::Statement;

impl<'a> Plan<'a> {
    pub(super) fn annotations(&self, all: &mut Vec<Statement<'a>>) {
        if !self.dropped_logs.is_empty() {
            all.push(Statement::new(DROP).texts(self.dropped_logs.iter().map(|run| run.as_str())));
        }
        if !self.annotations.is_empty() {
            let rows = || self.annotations.values();
            all.push(
                Statement::new(PUT)
                    .texts(rows().map(|row| row.run.as_str()))
                    .texts(rows().map(|row| row.id.as_str()))
                    .list(rows().map(|row| row.at.as_micros()))
                    .texts(rows().map(|row| row.body.as_str())),
            );
        }
    }
}

pub(super) const DROP: &str = "DELETE FROM annotations WHERE run = ANY($1)";
const PUT: &str = "INSERT INTO annotations (run, id, at, body)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::BIGINT[], $4::TEXT[])
    ON CONFLICT (run, id) DO UPDATE SET at = excluded.at, body = excluded.body";
