use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the workflow
    workflow: String,
}

/// A definition is JSON to begin with, so there is one way to print it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    context.output.json(&context.client()?.workflow(&args.workflow).await?)?;
    Ok(Exit::Ok)
}
