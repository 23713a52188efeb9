//! How a runner speaks with its host. A token that was made because none was given is made anew long before it ends.

use std::sync::Arc;
use std::time::Duration;

use baton_client::{Client, NewRunnerToken, RunnerClient};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Output;

/// When a host could not make a token.
const AGAIN: Duration = Duration::from_secs(60);

/// A clone is the same link.
#[derive(Clone)]
pub(super) struct Link(Arc<watch::Sender<RunnerClient>>);

impl Link {
    pub(super) fn new(client: RunnerClient) -> Self {
        Self(Arc::new(watch::Sender::new(client)))
    }

    pub(super) fn client(&self) -> RunnerClient {
        self.0.borrow().clone()
    }
}

/// Tokens of this process' own.
pub(super) struct OwnTokens {
    /// Shows the key that they are made with.
    keyed: RunnerClient,
    url: String,
    name: String,
    life: Duration,
    /// Oldest first. The last one is shown, and the one before may be on its way still.
    made: Vec<String>,
    renew_at: Instant,
}

impl OwnTokens {
    /// The first one, and a link that shows it.
    pub(super) async fn make(
        context: &Context,
        url: &str,
        name: &str,
        life: Duration,
    ) -> Result<(Self, Link), Failure> {
        let (keyed, url, name) = (RunnerClient::new(context.client()?), url.to_owned(), name.to_owned());
        let mut own = Self { keyed, url, name, life, made: Vec::new(), renew_at: Instant::now() };
        let client = own.next().await.map_err(|failure| {
            failure.hint("give a token with --token-file; `baton runner-token add NAME` makes one")
        })?;
        Ok((own, Link::new(client)))
    }

    async fn next(&mut self) -> Result<RunnerClient, Failure> {
        let millis = i64::try_from(self.life.as_millis()).unwrap_or(i64::MAX);
        let expires_at = jiff::Timestamp::now().checked_add(jiff::SignedDuration::from_millis(millis)).ok();
        let expires_at = expires_at.and_then(|at| baton_model::Timestamp::parse(&at.to_string()));
        let new = NewRunnerToken { name: format!("baton runner {}", self.name), subject: None, expires_at };
        let made = self.keyed.make_runner_token(&new).await?;
        let client = RunnerClient::new(Client::new(&self.url, Some(&made.token))?);
        self.made.push(made.token_id);
        self.renew_at = Instant::now() + self.life / 2;
        Ok(client)
    }

    /// Resolves when the link shows another token. What is open with the last one stays open until the next time.
    pub(super) async fn renewed(&mut self, link: &Link, output: Output) {
        loop {
            tokio::time::sleep_until(self.renew_at).await;
            match self.next().await {
                Ok(client) => {
                    link.0.send_replace(client);
                    while self.made.len() > 2 {
                        let oldest = self.made.remove(0);
                        // It ends by itself soon enough.
                        let _ = self.keyed.revoke_runner_token(&oldest).await;
                    }
                    return;
                }
                Err(failure) => {
                    output
                        .note(format_args!("a new token could not be made: {}", failure.message().unwrap_or_default()));
                    self.renew_at = Instant::now() + AGAIN.min(self.life / 8);
                }
            }
        }
    }

    pub(super) async fn revoke(&self, output: Output) {
        for id in &self.made {
            if let Err(error) = self.keyed.revoke_runner_token(id).await {
                output.note(format_args!("the token {id} could not be revoked: {error}"));
            }
        }
    }
}

/// The same for a runner that was given its token: never.
pub(super) async fn renewed(own: &mut Option<OwnTokens>, link: &Link, output: Output) {
    match own {
        Some(own) => own.renewed(link, output).await,
        None => std::future::pending().await,
    }
}
