use std::path::PathBuf;

use crate::context::Context;
use crate::definition::Source;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Workflow definitions in JSON (`-` = stdin)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let output = &context.output;
    // Read everything first: a file that does not parse should not leave half of them registered.
    let sources = args.files.iter().map(|path| Source::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut registered = Vec::new();
    for source in sources {
        let made = client
            .register_workflow(&source.definition)
            .await
            .map_err(|error| Failure::from(error).about(source.path.display()))?;
        if !output.is_json() {
            let news = if made.created { "registered" } else { "unchanged" };
            output.line(format_args!("{} version {} {news}", made.workflow.workflow_id, made.workflow.version))?;
        }
        registered.push(made);
    }
    if output.is_json() {
        output.json(&registered)?;
    } else if let Some(last) = registered.last() {
        output.hint(format_args!("baton run start {} --follow", last.workflow.workflow_id));
    }
    Ok(Exit::Ok)
}
