use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the webhook
    webhook: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    context.client()?.delete_webhook(&args.webhook).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({"webhookId": args.webhook, "deleted": true}))?;
    } else {
        output.line(format_args!("{} ended", args.webhook))?;
    }
    Ok(Exit::Ok)
}
