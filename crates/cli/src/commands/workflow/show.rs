use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the workflow
    workflow: String,
    /// Version to print [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    version: Option<u32>,
}

/// A definition is JSON to begin with, so there is one way to print it.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let definition = match args.version {
        None => client.workflow(&args.workflow).await?,
        Some(version) => client.workflow_version(&args.workflow, version).await?,
    };
    context.output.json(&definition)?;
    Ok(Exit::Ok)
}
