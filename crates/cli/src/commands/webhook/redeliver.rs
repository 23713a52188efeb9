use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The subscription's id
    webhook: String,
    /// The letter's id, as `baton webhook show` lists it
    #[arg(required_unless_present = "all")]
    letter: Option<String>,
    /// Everything that the subscription did not take
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
        0 if args.all => output.line("nothing is left to send again")?,
        0 => output.line("it is on its way already")?,
        1 => output.line("one event is on its way again")?,
        count => output.line(format_args!("{count} events are on their way again"))?,
    }
    Ok(Exit::Ok)
}
