//! Sessions: who is alive. See [`baton_store::Shared`].
//!
//! Whoever writes for a session locks its row `FOR KEY SHARE`, which neither other writers nor a renewal of the lease
//! disturb. Ending it takes the row `FOR UPDATE`, so it comes before or after every such transaction.

use std::time::Duration;

use baton_store::Error;
use baton_store::codec::integer;
use tokio_postgres::Client;

use crate::error::read_error;
use crate::{rows, text};

/// Shared with whoever else writes for this session; ending it must wait.
pub(crate) const SESSION: &str = "SELECT 1 FROM sessions WHERE epoch = $1 AND NOT ended FOR KEY SHARE";
const END: &str = "UPDATE sessions SET ended = true, ended_at = now() WHERE epoch IN (
    SELECT epoch FROM sessions WHERE epoch = $1 AND NOT ended FOR UPDATE)";

pub(crate) fn millis(lease: Duration) -> i64 {
    i64::try_from(lease.as_millis()).unwrap_or(i64::MAX / 2)
}

pub(crate) async fn open(client: &Client, host: &str, lease: Duration) -> Result<u64, Error> {
    let sql = "INSERT INTO sessions (host, lease_until) VALUES ($1, now() + $2::BIGINT * INTERVAL '1 millisecond') \
               RETURNING epoch";
    let row = client.query_one(sql, &[&text::written(host), &millis(lease)]).await.map_err(read_error)?;
    rows::count(&row)
}

/// One that has ended already stays so.
pub(crate) async fn end(client: &Client, epoch: u64) -> Result<(), Error> {
    client.execute(END, &[&integer(epoch)]).await.map_err(read_error)?;
    Ok(())
}
