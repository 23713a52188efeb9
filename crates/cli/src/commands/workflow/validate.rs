use std::path::PathBuf;

use baton_engine::Problem;
use baton_model::{Position, locate};
use serde_json::{Value, json};

use crate::context::Context;
use crate::definition::{self, Source};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workflow definitions in JSON (`-` = stdin)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Allow node types that exist only for conformance tests
    #[arg(long)]
    conformance: bool,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let mut report = Vec::new();
    let mut sound = true;
    for path in &args.files {
        let text = input::read(path)?;
        let source = Source { path: path.clone(), definition: input::parse(&text, &path.display().to_string())? };
        let problems = definition::problems(&source.definition, args.conformance);
        sound &= problems.is_empty();
        if output.is_json() {
            report.push(json!({
                "file": path.display().to_string(),
                "id": source.id(),
                "valid": problems.is_empty(),
                "problems": problems.iter().map(|problem| placed(&text, problem)).collect::<Vec<_>>(),
            }));
        } else if problems.is_empty() {
            output.line(format_args!("{}: ok ({})", path.display(), source.id().unwrap_or("?")))?;
        } else {
            for Problem { pointer, message, .. } in &problems {
                let place = if pointer.is_empty() { "/" } else { pointer };
                let Position { line, column } = locate(&text, pointer);
                output.line(format_args!("{}:{line}:{column}: {place}: {message}", path.display()))?;
            }
        }
    }
    if output.is_json() {
        output.json(&report)?;
    }
    Ok(if sound { Exit::Ok } else { Exit::Usage })
}

/// A problem with its place in the text.
fn placed(text: &str, Problem { pointer, message, .. }: &Problem) -> Value {
    let Position { line, column } = locate(text, pointer);
    json!({"pointer": pointer, "message": message, "line": line, "column": column})
}
