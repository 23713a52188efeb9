//! Cancel, pause and resume: they take the same words and print the same line.

use baton_client::{Client, PauseRun};
use baton_model::event::DrainPolicy;
use baton_model::{RunId, RunStatus};
use serde::Serialize;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_ref;

/// Which run, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// Reason, written to the log
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    which: Args,
    /// Pause at once; the interrupted node starts again on resume
    #[arg(long)]
    immediate: bool,
}

pub(crate) async fn cancel(args: Args, context: &Context) -> Result<Exit, Failure> {
    let (client, run) = args.find(context).await?;
    let answer = client.cancel(&run, args.reason.as_deref()).await?;
    print(context, &answer, &answer.run_id, answer.status)
}

pub(crate) async fn resume(args: Args, context: &Context) -> Result<Exit, Failure> {
    let (client, run) = args.find(context).await?;
    let answer = client.resume(&run, args.reason.as_deref()).await?;
    print(context, &answer, &answer.run_id, answer.status)
}

pub(crate) async fn pause(args: PauseArgs, context: &Context) -> Result<Exit, Failure> {
    let (client, run) = args.which.find(context).await?;
    let drain_policy = if args.immediate { DrainPolicy::Immediate } else { DrainPolicy::DrainCurrentNode };
    let answer = client.pause(&run, &PauseRun { reason: args.which.reason, drain_policy }).await?;
    let exit = print(context, &answer, &answer.run_id, answer.status)?;
    if !context.output.is_json() {
        context.output.hint(format_args!("baton run resume {}", answer.run_id));
    }
    Ok(exit)
}

impl Args {
    async fn find(&self, context: &Context) -> Result<(Client, String), Failure> {
        let client = context.client()?;
        let run = run_ref::find(&client, &self.run).await?;
        Ok((client, run))
    }
}

/// Prints what the host answered.
fn print(context: &Context, answer: &impl Serialize, run: &RunId, status: RunStatus) -> Result<Exit, Failure> {
    if context.output.is_json() {
        context.output.json(answer)?;
    } else {
        context.output.line(format_args!("{run} {status}"))?;
    }
    Ok(Exit::Ok)
}
