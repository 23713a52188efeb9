use super::refused::refused;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    path: String,
    /// Print this version [default: the newest]
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let found = context.client()?.file(&args.path, args.version).await;
    let file = found.map_err(|error| refused(error, &args.path))?;
    if context.output.is_json() {
        context.output.json(&file)?;
    } else {
        context.output.raw(&file.content)?;
    }
    Ok(Exit::Ok)
}
