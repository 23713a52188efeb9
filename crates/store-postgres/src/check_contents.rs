//! Everything in the database against its checksums, row by row.

use baton_store::archive::{Entry, Table};
use baton_store::codec::{Stored as _, Sum};
use baton_store::{Error, LogCheck, LogEnds, RunRow, SpendingRow};
use tokio_postgres::Client;

use crate::archive::columns;
use crate::error::read_error;
use crate::rows;
use crate::runs::RECORDS;
use crate::text::written;

/// How many findings are told of each table.
const FINDINGS: usize = 100;
/// Rows that are fetched at a time, in the order in which they lie.
const PAGE: usize = 200;
/// Records that are fetched at a time.
const RECORDS_PAGE: i64 = 500;

/// Adds what is wrong, in words. A database from before there were checksums has none to compare.
pub(crate) async fn all(client: &Client, problems: &mut Vec<String>) -> Result<(), Error> {
    let column = "SELECT 1 FROM information_schema.columns WHERE table_name = 'events' AND column_name = 'sum'
        AND table_schema = ANY (current_schemas(false))";
    if client.query_opt(column, &[]).await.map_err(read_error)?.is_none() {
        return Ok(());
    }
    for table in Table::ALL {
        if table == Table::Blobs || has_sums(client, table.name(), table.sums()).await? {
            each(client, table, problems).await?;
        }
    }
    if has_sums(client, SpendingRow::TABLE, SpendingRow::SUMS).await? {
        spending(client, problems).await?;
    }
    Ok(())
}

/// Whether there is anything to compare: a database of an older version does not have all checksums.
async fn has_sums(client: &Client, table: &str, sums: &[Sum]) -> Result<bool, Error> {
    let column = "SELECT 1 FROM information_schema.columns WHERE table_name = $1 AND column_name = $2
        AND table_schema = ANY (current_schemas(false))";
    for sum in sums {
        if client.query_opt(column, &[&table, &sum.column]).await.map_err(read_error)?.is_none() {
            return Ok(false);
        }
    }
    Ok(!sums.is_empty())
}

/// What is noted of what runs have spent.
async fn spending(client: &Client, problems: &mut Vec<String>) -> Result<(), Error> {
    let sql = format!("DECLARE noted NO SCROLL CURSOR FOR SELECT {} FROM spending", rows::columns::<SpendingRow>());
    client.batch_execute(&sql).await.map_err(read_error)?;
    let found = problems.len();
    loop {
        let page = client.query(&format!("FETCH {PAGE} FROM noted"), &[]).await.map_err(read_error)?;
        let wrong = page.iter().filter_map(|row| rows::stored::<SpendingRow>(row).err());
        problems.extend(wrong.map(|error| format!("spending: {error}")));
        if page.len() < PAGE || problems.len() - found >= FINDINGS {
            return client.batch_execute("CLOSE noted").await.map_err(read_error);
        }
    }
}

async fn each(client: &Client, table: Table, problems: &mut Vec<String>) -> Result<(), Error> {
    let sums: String = table.sums().iter().map(|sum| format!(", {}", sum.column)).collect();
    let sql = format!("DECLARE checked NO SCROLL CURSOR FOR SELECT {}{sums} FROM {}", columns(table), table.name());
    client.batch_execute(&sql).await.map_err(read_error)?;
    let found = problems.len();
    let fetch = format!("FETCH {PAGE} FROM checked");
    loop {
        let page = client.query(&fetch, &[]).await.map_err(read_error)?;
        for row in &page {
            match rows::entry(table, row) {
                Ok(Entry::Run(run)) => {
                    for checked in [log(client, &run).await, beginning(client, &run).await] {
                        problems.extend(checked.err().map(|error| error.to_string()));
                    }
                }
                Ok(Entry::Blob { digest, bytes }) if !baton_store::is_blob_of(&bytes, &digest) => {
                    problems.push(format!("the blob {digest} does not hold what it is named after"));
                }
                Ok(_) => {}
                Err(error) => problems.push(format!("{}: {error}", table.as_str())),
            }
        }
        if page.len() < PAGE || problems.len() - found >= FINDINGS {
            return client.batch_execute("CLOSE checked").await.map_err(read_error);
        }
    }
}

/// A run's log against its chain.
async fn log(client: &Client, run: &RunRow) -> Result<(), Error> {
    let ends = LogEnds::of(run);
    let mut from = ends.begins.cast_signed();
    let mut check = LogCheck::new(&run.id, ends.clone(), ends.begins, None);
    let id = written(run.id.as_str());
    loop {
        let page = client.query(RECORDS.as_str(), &[&id, &from, &RECORDS_PAGE]).await.map_err(read_error)?;
        for row in &page {
            let record: baton_store::StoredRecord = rows::stored(row)?;
            check.take(&record)?;
            from = record.seq.cast_signed() + 1;
        }
        if page.is_empty() {
            return check.end();
        }
    }
}

/// A fork's beginning against the record that it follows, which may be its source's source's.
async fn beginning(client: &Client, run: &RunRow) -> Result<(), Error> {
    const SUM: &str = "SELECT sum FROM events WHERE run = $1 AND seq = $2";
    let (Some(base), Some(origin)) = (run.chain.base, &run.origin) else { return Ok(()) };
    let Some(before) = origin.seq.checked_sub(1) else { return Ok(()) };
    let by_id = format!("SELECT {} FROM runs WHERE id = $1", rows::columns::<RunRow>());
    let mut source = origin.source.clone();
    loop {
        let id = written(source.as_str());
        let Some(found) = client.query_opt(&by_id, &[&id]).await.map_err(read_error)? else { return Ok(()) };
        // One that is damaged itself is told of by itself.
        let Ok(found) = rows::stored::<RunRow>(&found) else { return Ok(()) };
        if let Some(further) = found.origin.filter(|further| further.seq > before) {
            source = further.source;
            continue;
        }
        let sum = client.query_opt(SUM, &[&id, &before.cast_signed()]).await.map_err(read_error)?;
        let sum = sum.map(|row| rows::checksum(&row)).transpose()?.flatten();
        if sum.is_some_and(|sum| sum != base) {
            let what = format!("it does not follow the record {before} of {}", found.id);
            return Err(Error::damaged(&run.id, origin.seq, what));
        }
        return Ok(());
    }
}
