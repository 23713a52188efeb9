//! Read-only connections, opened when first needed and shared by turns.

use std::sync::Arc;

use baton_store::Error;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::error::{closed, read_error};
use crate::lock::Place;
use crate::open::{self, Database};

#[derive(Debug)]
pub(crate) struct Pool {
    database: Database,
    place: Place,
    readers: u32,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl Pool {
    pub(crate) fn new(database: Database, place: Place, readers: u32) -> Self {
        let readers = readers.max(1);
        Self { database, place, readers, permits: Arc::new(Semaphore::new(readers as usize)), idle: Arc::default() }
    }

    /// Runs a query on a blocking thread. The query goes on if the caller stops waiting, so the connection comes back
    /// to the pool in any case; after an error it is closed instead, and the next reader gets a new one.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let (idle, database, place) = (Arc::clone(&self.idle), self.database.clone(), self.place.clone());
        let work = tokio::task::spawn_blocking(move || {
            // Not under the lock: opening takes a while.
            let connection = idle.lock().pop();
            let connection = match connection {
                Some(connection) => connection,
                None => place.check().and_then(|()| open::reader(&database))?,
            };
            let found = query(&connection).map_err(read_error)?;
            idle.lock().push(connection);
            drop(permit);
            Ok(found)
        });
        work.await.unwrap_or_else(|error| {
            Err(Error::Unavailable { reason: "a read was cut short".to_owned(), source: Some(Box::new(error)) })
        })
    }

    /// Waits for reads under way and closes all connections; later reads are refused.
    pub(crate) async fn close(&self) {
        // Fails only when it is closed already.
        if let Ok(_all) = self.permits.acquire_many(self.readers).await {
            self.permits.close();
            self.idle.lock().clear();
        }
    }
}
