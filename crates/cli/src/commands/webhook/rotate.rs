use super::print_secret::print_secret;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the webhook
    webhook: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let made = context.client()?.rotate_webhook_secret(&args.webhook).await?;
    print_secret(&made, context)
}
