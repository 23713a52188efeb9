use baton_client::Client;

use crate::failure::Failure;
use crate::run_ref;

/// Whose memory is meant.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Scope {
    /// Name of the scope
    scope: Option<String>,
    /// Use the scope of this run: its id, or the beginning of it
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

impl Scope {
    pub(crate) async fn name(self, client: &Client) -> Result<String, Failure> {
        match (self.scope, self.run) {
            (Some(scope), _) => Ok(scope),
            (None, Some(run)) => {
                Ok(client.state_at(&run_ref::find(client, &run).await?, None).await?.around.memory_scope)
            }
            // The parser lets nobody through without either.
            (None, None) => Err(Failure::usage("name a scope, or a run with --run")),
        }
    }
}
