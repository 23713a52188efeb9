//! Records as they are read: each is compared with its checksum before anybody sees it.

use baton_model::RunId;
use baton_store::codec::integer;
use baton_store::{Error, LogCheck, StoredRecord};

use crate::questions::{Question, Questions};
use crate::text::written;
use crate::{rows, runs};

/// Records of a run from a sequence on. `whole` says that a page ends early only where the log does.
pub(crate) async fn read(
    questions: &Questions,
    run: &RunId,
    from: u64,
    limit: usize,
    records: Question<'_>,
    whole: bool,
) -> Result<Vec<StoredRecord>, Error> {
    let (id, before) = (written(run.as_str()), integer(from).saturating_sub(1));
    let mut found: Vec<StoredRecord> = Vec::new();
    // The row first: a log only grows, so the records of a later moment begin with those that the row knows of. Where it
    // was dropped in between, the row is asked again.
    for again in [true, false] {
        let ends = Question { sql: runs::LOG_ENDS, values: &[&id, &before] };
        let answers = questions.ask_all(&[ends, records]).await?;
        let [ends, records] = answers.as_slice() else { return Ok(Vec::new()) };
        let Some(ends) = ends.first() else { return Ok(Vec::new()) };
        let (ends, before) = rows::log_ends(ends)?;
        found = records.iter().map(rows::stored).collect::<Result<_, _>>()?;
        // What came meanwhile is for the next look.
        found.retain(|record| record.seq < ends.next_seq);
        let before = before.filter(|_| LogCheck::needs(&ends, from).is_some());
        // There is always room for one, so a page without any is the end too.
        let ended = limit > 0 && (found.is_empty() || whole && found.len() < limit);
        match compare(LogCheck::new(run, ends, from, before), &found, ended) {
            Err(_) if again => {}
            compared => return compared.map(|()| found),
        }
    }
    Ok(found)
}

fn compare(mut check: LogCheck<'_>, records: &[StoredRecord], ended: bool) -> Result<(), Error> {
    records.iter().try_for_each(|record| check.take(record))?;
    if ended { check.end() } else { Ok(()) }
}
