//! What is asked about runners.

use async_trait::async_trait;

use baton_model::Timestamp;

use crate::{Error, RunnerRow, StepRow, StepState, TokenRow};

/// Tokens, runners and their steps. A runner is shown a step only once its row is on disk.
#[async_trait]
pub trait RunnerReads: Send + Sync {
    /// Tokens by id, at most `limit`.
    async fn tokens(&self, limit: usize) -> Result<Vec<TokenRow>, Error>;
    /// The token with this hash, if there is one.
    async fn token(&self, hash: &str) -> Result<Option<TokenRow>, Error>;
    /// Runners by key, at most `limit`.
    async fn runners(&self, limit: usize) -> Result<Vec<RunnerRow>, Error>;
    /// A step by its key.
    async fn step(&self, key: &str) -> Result<Option<StepRow>, Error>;
    /// The steps of an owner in this state, oldest first, at most `limit`. `after`: only those behind this one, by when it
    /// changed and its key.
    async fn steps_of(
        &self,
        owner: &str,
        state: StepState,
        after: Option<(Timestamp, &str)>,
        limit: usize,
    ) -> Result<Vec<StepRow>, Error>;
}
