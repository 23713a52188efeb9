use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the webhook
    webhook: String,
    /// Id of the undelivered event, as `baton webhook show` lists it
    #[arg(value_name = "EVENT", required_unless_present = "all")]
    letter: Option<String>,
    /// Send all undelivered events
    #[arg(long, conflicts_with = "letter")]
    all: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let again = context.client()?.redeliver(&args.webhook, args.letter.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&again)?;
        return Ok(Exit::Ok);
    }
    match again.queued {
        0 if args.all => output.line("there are no undelivered events")?,
        0 => output.line("it is already being sent")?,
        1 => output.line("one event is being sent again")?,
        count => output.line(format_args!("{count} events are being sent again"))?,
    }
    Ok(Exit::Ok)
}
