use baton_client::NewWebhook;

use super::print_secret::print_secret;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where events are sent: a public https:// address
    #[arg(value_name = "URL")]
    address: String,
    /// An event type, such as run.completed; may be given more than once. All of them if left out
    #[arg(long = "event", value_name = "TYPE")]
    events: Vec<String>,
    /// Only events of runs with this tag; may be given more than once
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
