use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::versioned;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only files whose path starts with this
    prefix: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let found = context.client()?.files(args.prefix.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&found)?;
    } else if found.files.is_empty() {
        output.note("no files");
    } else {
        output.table(&versioned::files(&found.files, now()))?;
    }
    Ok(Exit::Ok)
}
