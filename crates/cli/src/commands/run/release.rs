use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it; any run of the tree will do
    run: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let released = client.release(&id).await?;
    if context.output.is_json() {
        context.output.json(&released)?;
    } else {
        context.output.line(format_args!("{} released (was held for {})", released.root_run_id, released.cause))?;
    }
    Ok(Exit::Ok)
}
