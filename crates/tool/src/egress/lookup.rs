//! The name service, as far as the guard needs one.

use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

/// Finds the addresses behind a name.
#[async_trait]
pub trait Lookup: Send + Sync {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// What this machine is configured to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}
