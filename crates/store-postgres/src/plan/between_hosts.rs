//! What a session gives away: trees of runs, claims, answers to letters.

use baton_store::codec::integer;

use super::Plan;
use crate::statement::Statement;
use crate::text::written;

impl<'a> Plan<'a> {
    pub(super) fn between_hosts(&self, all: &mut Vec<Statement<'a>>) {
        let me = integer(self.me);
        for (root, to) in &self.given {
            let to = integer(*to);
            all.push(Statement::new(GIVE_ROOT).value(written(root.as_str())).value(me).value(to).touching(1));
            all.push(Statement::new(GIVE_TREE).value(written(root.as_str())).value(me).value(to));
        }
        if let Some(number) = self.probe {
            // Any 64 bits may be a number.
            all.push(Statement::new(PROBE).value(me).value(number.cast_signed()));
        }
        if !self.released.is_empty() {
            all.push(Statement::new(RELEASE).keys(self.released.iter().copied()).value(me));
        }
        if !self.answers.is_empty() {
            let ids = self.answers.keys().copied();
            let answers = Statement::new(ANSWER).texts(ids).texts(self.answers.values().copied());
            all.push(answers.touching(self.answers.len()));
        }
    }
}

pub(super) const GIVE_ROOT: &str = "UPDATE runs SET owner = $3 WHERE id = $1 AND owner = $2 RETURNING 1";
pub(super) const GIVE_TREE: &str = "UPDATE runs SET owner = $3 WHERE root = $1 AND root IS NOT NULL AND owner = $2";
pub(super) const PROBE: &str = "INSERT INTO canary (epoch, number) VALUES ($1, $2)
    ON CONFLICT (epoch) DO UPDATE SET number = excluded.number";
pub(super) const RELEASE: &str = "DELETE FROM claims WHERE name = ANY($1) AND epoch = $2";
pub(super) const ANSWER: &str = "UPDATE inbox SET answer = new.answer, answered_at = now()
    FROM unnest($1::TEXT[], $2::TEXT[]) AS new (id, answer) WHERE inbox.id = new.id AND inbox.answered_at IS NULL RETURNING 1";
