//! What moves a whole store.

use async_trait::async_trait;

use super::entry::Entry;
use super::table::Table;
use crate::Error;

/// The whole of a store that nobody else is using.
#[async_trait]
pub trait Archive: Send + Sync {
    /// How many rows a table has.
    async fn count(&self, table: Table) -> Result<u64, Error>;

    /// At most `limit` rows after this one, in an order of the store's own; from the start if there is none.
    async fn page(&self, table: Table, after: Option<&Entry>, limit: usize) -> Result<Vec<Entry>, Error>;

    /// The one row after `skipped` others behind this one, for whoever copies what is whole and goes past what is damaged.
    /// Nothing at the end of the table.
    async fn row_past(&self, table: Table, after: Option<&Entry>, skipped: u64) -> Result<Option<Entry>, Error>;

    /// Writes rows down as they are, all or none. What is there already stays as it is.
    async fn restore(&self, entries: Vec<Entry>) -> Result<(), Error>;
}
