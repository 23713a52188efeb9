//! What is asked about the store itself.

use async_trait::async_trait;

use crate::{Error, Usage};

/// Whether the store works and how much it holds.
#[async_trait]
pub trait HealthReads: Send + Sync {
    /// How much there is, by class. Cheap and bounded, however much that is: an estimate will do.
    async fn usage(&self) -> Result<Usage, Error> {
        Ok(Usage::default())
    }
    /// What a record takes, about: as it was written, whatever lies free around it. `None` where the store cannot say.
    async fn record_bytes(&self) -> Result<Option<u64>, Error> {
        let usage = self.usage().await?;
        let records = usage.classes.iter().find(|class| class.class == "records");
        Ok(records.and_then(|records| records.bytes.checked_div(records.count)))
    }
    /// The number of the last [`crate::Write::Probe`]; on a shared store, of this session.
    async fn last_probe(&self) -> Result<Option<u64>, Error>;
    /// A cheap end-to-end check that reads work.
    async fn ping(&self) -> Result<(), Error>;
}
