//! Letters to runs, for a copy of the database: what was asked for and not done yet, and answers that nobody has fetched.
//! They are no table of the archive, for only hosts that share a store write to each other.

use baton_model::{RunId, Timestamp};
use baton_store::Error;

use crate::questions::bound;
use crate::text::written;
use crate::{PostgresStore, rows};

/// A letter to a run as it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    pub id: String,
    pub run: RunId,
    pub body: String,
    /// What was answered, and when.
    pub answer: Option<(String, Timestamp)>,
}

const PAGE: &str = "SELECT id, run, body, answer, (extract(epoch FROM answered_at) * 1000000)::BIGINT FROM inbox
    WHERE run IS NOT NULL AND id > $1 ORDER BY id LIMIT $2";
const POST: &str = "INSERT INTO inbox (id, run, body, answer, answered_at)
    VALUES ($1, $2, $3, $4, to_timestamp($5::BIGINT / 1000000.0)) ON CONFLICT (id) DO NOTHING";

impl PostgresStore {
    /// At most `limit` letters to runs whose ids come after this one, in that order.
    pub async fn posted(&self, after: &str, limit: usize) -> Result<Vec<Posted>, Error> {
        let read = |row: &tokio_postgres::Row| {
            rows::fields(row, |row| {
                let (id, run, body) = (row.text("id")?, RunId::new(row.text("run")?), row.text("body")?);
                let (answer, at) = (row.maybe_text("answer")?, row.maybe_time("answered_at")?);
                Ok(Posted { id, run, body, answer: at.map(|at| (answer.unwrap_or_default(), at)) })
            })
        };
        self.questions.list(PAGE, &[&written(after), &bound(limit)], read).await
    }

    /// Writes a letter down as it was. One that is there already stays.
    pub async fn post(&self, letter: &Posted) -> Result<(), Error> {
        let answer = letter.answer.as_ref().map(|(text, _)| written(text));
        let answered_at = letter.answer.as_ref().map(|(_, at)| at.as_micros());
        let (id, run, body) = (written(&letter.id), written(letter.run.as_str()), written(&letter.body));
        self.questions.ask(POST, &[&id, &run, &body, &answer, &answered_at]).await?;
        Ok(())
    }
}
