use baton_client::NewWebhook;

use super::print_secret::print_secret;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to send events to; must be a public https:// address
    #[arg(value_name = "URL")]
    address: String,
    /// Event type, for example run.completed; may be repeated [default: all types]
    #[arg(long = "event", value_name = "TYPE")]
    events: Vec<String>,
    /// Only events of runs with this tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let Args { address: url, mut events, tags } = args;
    if events.is_empty() {
        events.push("*".to_owned());
    }
    let made = context
        .client()?
        .register_webhook(&NewWebhook {
            url,
            events,
            tags: Some(tags).filter(|tags| !tags.is_empty()),
            tenant_id: None,
        })
        .await?;
    print_secret(&made, context)
}
