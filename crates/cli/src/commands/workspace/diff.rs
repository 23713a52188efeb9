use baton_client::Client;
use baton_model::WorkspaceFile;
use serde_json::json;

use super::refused::refused;
use crate::context::Context;
use crate::diff::hunks;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::hunk;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file
    path: String,
    /// The older version [default: the one before the newer]
    #[arg(value_name = "V1")]
    from: Option<u64>,
    /// The newer version [default: the current one]
    #[arg(value_name = "V2")]
    to: Option<u64>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let new = version(&client, &args.path, args.to).await?;
    let from = args.from.unwrap_or_else(|| new.meta.version.saturating_sub(1));
    // Before its first version a file is empty.
    let old = match from {
        0 => String::new(),
        from => version(&client, &args.path, Some(from)).await?.content,
    };
    let hunks = hunks(&old, &new.content);
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({ "path": args.path, "from": from, "to": new.meta.version, "hunks": hunks }))?;
        return Ok(Exit::Ok);
    }
    if hunks.is_empty() {
        output.note(format_args!("versions {from} and {} are the same", new.meta.version));
        return Ok(Exit::Ok);
    }
    output.line(format_args!("--- {} version {from}", args.path))?;
    output.line(format_args!("+++ {} version {}", args.path, new.meta.version))?;
    for line in hunks.iter().flat_map(hunk::lines) {
        output.line(line)?;
    }
    Ok(Exit::Ok)
}

async fn version(client: &Client, path: &str, version: Option<u64>) -> Result<WorkspaceFile, Failure> {
    client.file(path, version).await.map_err(|error| refused(error, path))
}
