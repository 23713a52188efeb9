use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// Why; kept on the log
    #[arg(long)]
    reason: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let answer = client.resume(&id, args.reason.as_deref()).await?;
    if context.output.is_json() {
        context.output.json(&answer)?;
    } else {
        context.output.line(format_args!("{} {}", answer.run_id, answer.status))?;
    }
    Ok(Exit::Ok)
}
