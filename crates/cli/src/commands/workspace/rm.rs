use serde_json::json;

use super::refused::refused;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to delete
    path: String,
    /// Only if the file still has this etag
    #[arg(long, value_name = "ETAG")]
    if_match: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let path = &args.path;
    let deleted = context.client()?.delete_file(path, args.if_match.as_deref()).await;
    deleted.map_err(|error| refused(error, path))?;
    if context.output.is_json() {
        context.output.json(&json!({ "path": path, "deleted": true }))?;
    } else {
        context.output.line(format_args!("{path} deleted"))?;
    }
    Ok(Exit::Ok)
}
