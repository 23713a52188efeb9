use std::path::Path;

use baton_model::workflow::Definition;
use clap::ValueEnum;
use serde_json::json;

use crate::context::Context;
use crate::definition::Source;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::graph::{mermaid, text};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of a registered workflow, or a file
    #[arg(value_name = "ID|FILE")]
    workflow: String,
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Mermaid,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let path = Path::new(&args.workflow);
    let definition = if args.workflow == "-" || path.is_file() {
        Source::read(path)?.definition
    } else {
        context.client()?.workflow(&args.workflow).await?
    };
    let workflow: Definition = serde_path_to_error::deserialize(definition)
        .map_err(|error| Failure::usage(format!("{} is not a workflow definition: {error}", args.workflow)))?;
    let drawing = match args.format {
        Format::Text => text::draw(&workflow),
        Format::Mermaid => mermaid::draw(&workflow),
    };
    if context.output.is_json() {
        context.output.json(&json!({ "id": workflow.id, "graph": drawing }))?;
    } else {
        context.output.line(drawing)?;
    }
    Ok(Exit::Ok)
}
