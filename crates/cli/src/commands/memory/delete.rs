use serde_json::json;

use super::get::missing;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the scope
    scope: String,
    /// The entry's id
    id: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let (scope, id) = (&args.scope, &args.id);
    context.client()?.memory_delete(scope, id).await.map_err(|error| missing(error, scope))?;
    if context.output.is_json() {
        context.output.json(&json!({ "scope": scope, "id": id, "deleted": true }))?;
    } else {
        context.output.line(format_args!("{id} deleted"))?;
    }
    Ok(Exit::Ok)
}
