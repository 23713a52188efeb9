//! Model providers: the port every vendor is reached through, and a provider that lives in the process.
//!
//! A provider translates one [`ModelRequest`] into one call and its outcome into one [`ModelReply`]. It keeps nothing,
//! tries nothing twice and decides nothing: whether an answer is good, whether to ask again and what is written down is
//! the business of others.

mod mock;
mod sample;

pub use mock::MockProvider;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest};

/// One way to reach models.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Makes the call, once. Whoever loses interest drops the future; the provider then gives up what it has open.
    /// [`ModelRequest::key`] names the call for vendors that recognise a repeated one.
    async fn call(&self, request: &ModelRequest) -> Result<ModelReply, ProviderFault>;
}

/// Why there is no answer. None of this repeats the prompt or a credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFault {
    /// It could not be reached, or had a bad moment.
    #[error("the provider cannot be reached: {0}")]
    Unavailable(String),
    #[error("the provider did not answer in time")]
    TimedOut,
    /// Too many calls, or nothing left to spend.
    #[error("the provider takes no more calls for now")]
    Exhausted,
    /// The provider will never answer this request.
    #[error("the provider does not take this request: {0}")]
    Rejected(String),
}

impl ProviderFault {
    /// A word for metrics.
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::TimedOut => "timed-out",
            Self::Exhausted => "exhausted",
            Self::Rejected(_) => "rejected",
        }
    }
}
