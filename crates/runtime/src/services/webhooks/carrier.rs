//! The port to subscribers. Without one, deliveries go out over HTTP; the simulation has one of its own.

use async_trait::async_trait;

/// Takes signed deliveries to where they are addressed.
#[async_trait]
pub trait WebhookCarrier: std::fmt::Debug + Send + Sync {
    /// The status of the answer. None: there was no answer, and nobody knows whether the delivery arrived.
    async fn post(&self, delivery: &SignedDelivery) -> Option<u16>;
}

/// One delivery as it leaves the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedDelivery {
    pub url: String,
    pub webhook: String,
    pub body: String,
    /// In seconds since 1970.
    pub timestamp: String,
    pub signature: String,
}
