//! Copying what is whole of a table that is damaged: page by page, and row by row where a page does not read back.

use baton_store::Error;
use baton_store::archive::{Entry, Table};

use super::location::Open;
use super::verification::page_of;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;
use crate::output::Output;

/// How many rows of a table may be damaged before the rest of it is given up: each is gone past one by one.
const MOST: u64 = 10_000;

/// What was left out of a copy.
#[derive(Debug, Default)]
pub(super) struct LeftOut(pub(super) Vec<String>);

/// The next rows of a table that can be read.
pub(super) async fn page(
    source: &Open,
    table: Table,
    after: Option<&Entry>,
    left_out: &mut LeftOut,
    output: &Output,
) -> Result<Vec<Entry>, Failure> {
    let failed = |error: &Error| database_failure(error).about(table.as_str());
    match source.whole.page(table, after, page_of(table)).await {
        Ok(page) => return Ok(page),
        Err(error) if error.is_damage() => {}
        Err(error) => return Err(failed(&error)),
    }
    let count = source.count(table).await?.min(MOST);
    for skipped in 0..=count {
        match source.whole.row_past(table, after, skipped).await {
            Ok(found) => return Ok(found.into_iter().collect()),
            Err(error) if error.is_damage() => {
                let what = format!("{}: {error}", table.as_str());
                output.note(format_args!("left out: {what}"));
                left_out.0.push(what);
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    let what = format!("{}: whatever follows", table.as_str());
    output.note(format_args!("left out: {what}"));
    left_out.0.push(what);
    Ok(Vec::new())
}
