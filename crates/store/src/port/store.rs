//! Both sides of a store.

use async_trait::async_trait;
use baton_model::TenantId;

use super::journal::Journal;
use super::reader::Reader;
use crate::{Commit, Error, Write};

/// Nobody's tenant: a probe takes its turn like anybody, and waits behind nobody's backlog.
const PROBE: &str = "*probe";

#[async_trait]
pub trait Store: Journal + Reader + 'static {
    /// Whether writes get through, all the way: a small one takes its turn, becomes durable and is read back.
    /// Should it fail, that is a failed commit like any other.
    async fn probe(&self) -> Result<(), Error> {
        let failed = |reason: String| Error::Unavailable { reason, source: None };
        let number = self.last_probe().await?.unwrap_or(0).wrapping_add(1);
        let commit = Commit::new(self.generation(), vec![Write::Probe { number }]).of_tenant(TenantId::new(PROBE));
        self.submit(commit).await.map_err(|error| failed(error.to_string()))?;
        match self.last_probe().await? {
            // Somebody may have come after us.
            Some(found) if found >= number => Ok(()),
            found => Err(failed(format!("a probe was written as {number} and read back as {found:?}"))),
        }
    }
}
impl<T: Journal + Reader + 'static> Store for T {}
