//! The line between a host and its disk, and between hosts, in the hands of a simulation.

use std::fmt::Debug;

use async_trait::async_trait;

use crate::ClusterEvent;

/// How a host reaches its disk.
#[async_trait]
pub trait Line: Debug + Send + Sync {
    /// Waits before a question reaches the disk.
    async fn wait(&self);

    /// Why it does not reach the disk now, if it does not.
    fn cut(&self) -> Option<String>;
}

/// How hosts hear of each other.
pub trait Courier: Debug + Send + Sync {
    /// What arrives now that this was sent: it, nothing, it twice, or what was sent before.
    fn carry(&self, event: ClusterEvent) -> Vec<ClusterEvent>;
}
