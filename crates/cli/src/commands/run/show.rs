use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::question::Question;
use crate::render::snapshot;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&client.run_json(&id).await?)?;
        return Ok(Exit::Ok);
    }
    let run = client.run(&id).await?;
    snapshot::print(output, &run, now())?;
    Question::tell(&client, output, &run).await;
    Ok(Exit::Ok)
}
