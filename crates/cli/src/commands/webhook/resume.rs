use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the webhook
    webhook: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let webhook = context.client()?.resume_webhook(&args.webhook).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&webhook)?;
        return Ok(Exit::Ok);
    }
    output.line(format_args!("{} is {}", webhook.webhook_id, webhook.state))?;
    if webhook.dead_letters > 0 {
        let (id, letters) = (&webhook.webhook_id, webhook.dead_letters);
        output.hint(format_args!("{letters} events are undelivered; `baton webhook redeliver {id} --all` sends them"));
    }
    Ok(Exit::Ok)
}
