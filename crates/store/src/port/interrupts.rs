//! What is asked about open questions and replies.

use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, TenantId};

use crate::{Error, InterruptFilter, InterruptRow, Reply};

/// Open questions and stored replies. A question is open on disk from the record that asked it to the one that closed it;
/// a reply is there before whoever asked hears of it.
#[async_trait]
pub trait InterruptReads: Send + Sync {
    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error>;
    /// How many questions of this tenant are open.
    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let filter = InterruptFilter { tenant: Some(tenant.clone()), limit: usize::MAX, ..InterruptFilter::default() };
        Ok(self.interrupts(&filter).await?.len() as u64)
    }
    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error>;
    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error>;
}
