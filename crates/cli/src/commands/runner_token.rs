//! Tokens for runners on other machines.

use baton_client::{NewRunnerToken, RunnerClient};
use clap::Subcommand;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it once
    Add {
        /// What to call it
        name: String,
        /// On whose behalf its runners work [default: the subject of the API key]
        #[arg(long)]
        subject: Option<String>,
        /// When it ends, for example 2027-01-31T00:00:00Z
        #[arg(long, value_name = "INSTANT", value_parser = instant)]
        expires_at: Option<baton_model::Timestamp>,
    },
    /// List the tokens
    List,
    /// Revoke a token: its runners are disconnected at once
    Rm { id: String },
}

fn instant(text: &str) -> Result<baton_model::Timestamp, String> {
    baton_model::Timestamp::parse(text).ok_or_else(|| "write it like 2027-01-31T00:00:00Z".to_owned())
}

impl TokenCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<Exit, Failure> {
        let (client, output) = (RunnerClient::new(context.client()?), &context.output);
        match self {
            Self::Add { name, subject, expires_at } => {
                let made = client.make_runner_token(&NewRunnerToken { name, subject, expires_at }).await?;
                if output.is_json() {
                    output.json(&made)?;
                } else {
                    output.line(&made.token)?;
                    output.note(format_args!("{} for {}; the token is not shown again", made.token_id, made.subject));
                }
            }
            Self::List => {
                let list = client.runner_tokens().await?;
                if output.is_json() {
                    output.json(&list)?;
                } else {
                    let mut table = table(&["TOKEN", "NAME", "SUBJECT", "EXPIRES"]);
                    for token in list.tokens {
                        let expires = token.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
                        table.add_row([token.token_id, token.name, token.subject, expires]);
                    }
                    output.table(&table)?;
                }
            }
            Self::Rm { id } => {
                client.revoke_runner_token(&id).await?;
                output.note(format_args!("revoked {id}"));
            }
        }
        Ok(Exit::Ok)
    }
}
