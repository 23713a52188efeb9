use baton_client::PauseRun;
use baton_model::event::DrainPolicy;

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
    /// Stop between events; the interrupted node starts afresh on resume
    #[arg(long)]
    immediate: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let drain_policy = if args.immediate { DrainPolicy::Immediate } else { DrainPolicy::DrainCurrentNode };
    let answer = client.pause(&id, &PauseRun { reason: args.reason, drain_policy }).await?;
    if context.output.is_json() {
        context.output.json(&answer)?;
    } else {
        context.output.line(format_args!("{} {}", answer.run_id, answer.status))?;
        context.output.hint(format_args!("baton run resume {}", answer.run_id));
    }
    Ok(Exit::Ok)
}
