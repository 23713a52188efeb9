use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;
use crate::terminal::cut;

/// Enough to choose by; the whole text is in `--json`.
const LONGEST_ABOUT: usize = 72;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only tools of this source: mcp, host-extension, node-pack, workflow or connector
    #[arg(long)]
    source: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let tools = context.client()?.tools(args.source.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&tools)?;
        return Ok(Exit::Ok);
    }
    if tools.is_empty() {
        output.note("there are no tools");
        return Ok(Exit::Ok);
    }
    let mut rows = table(&["TOOL", "FROM", "MAY", "WHAT IT DOES"]);
    for tool in tools {
        let about = tool.description.or(tool.title).unwrap_or_default();
        let first = about.split_terminator(['.', '\n']).next().unwrap_or_default();
        rows.add_row([tool.tool_id, tool.source, tool.safety_tier, cut(first, Some(LONGEST_ABOUT))]);
    }
    output.table(&rows)?;
    Ok(Exit::Ok)
}
