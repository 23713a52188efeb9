use std::path::PathBuf;

use baton_client::NewFile;

use super::refused::refused;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file to write
    path: String,
    /// File to read the content from (`-` = stdin)
    #[arg(value_name = "FILE", default_value = "-")]
    source: PathBuf,
    /// Content type [default: text/markdown]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Only if the file still has this etag
    #[arg(long, value_name = "ETAG")]
    if_match: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let new = NewFile { content: input::read(&args.source)?, content_type: args.content_type };
    let written = context.client()?.put_file(&args.path, &new, args.if_match.as_deref()).await;
    let file = written.map_err(|error| refused(error, &args.path))?;
    let output = &context.output;
    if file.content != new.content {
        output.note("secrets were removed before it was stored");
    }
    if output.is_json() {
        // Whoever wrote it knows what is in it.
        output.json(&file.meta)?;
    } else {
        output.line(format_args!("{} version {}", file.meta.path, file.meta.version))?;
    }
    Ok(Exit::Ok)
}
