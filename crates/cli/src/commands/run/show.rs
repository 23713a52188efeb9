use baton_client::{Client, Parent};

use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::question::Question;
use crate::render::{snapshot, state_at};
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// Show the run as it was at this sequence of its log
    #[arg(long, value_name = "SEQUENCE")]
    at: Option<u64>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let output = &context.output;
    if args.at.is_some() {
        let state = client.state_at(&id, args.at).await?;
        if output.is_json() {
            output.json(&state)?;
        } else {
            state_at::print(output, &state)?;
        }
        return Ok(Exit::Ok);
    }
    if output.is_json() {
        output.json(&client.run_json(&id).await?)?;
        return Ok(Exit::Ok);
    }
    let run = client.run(&id).await?;
    snapshot::print(output, &run, now())?;
    if run.parent_run_id.is_none() && run.forked_from.is_none() {
        parent_elsewhere(&client, output, &id).await?;
    }
    Question::print(&client, output, &run).await;
    Ok(Exit::Ok)
}

/// The parent of a run that another host asked for. A host that does not say where runs come from is not asked twice.
async fn parent_elsewhere(client: &Client, output: &Output, run: &str) -> Result<(), Failure> {
    let above = client.ancestry(run).await.ok().and_then(|found| found.parent);
    if let Some(Parent { run_id, host_id, cause, well_known_url: Some(page) }) = above {
        output.line("")?;
        output.line(format_args!("parent     {run_id} on {host_id} ({cause}; {page})"))?;
    }
    Ok(())
}
