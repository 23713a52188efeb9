use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::versioned;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only changes of this file
    path: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    /// Only changes before this sequence; continues where the previous page ended
    #[arg(long, value_name = "CHANGE")]
    before: Option<u64>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let page = client.file_changes(args.path.as_deref(), args.before, Some(usize::from(args.limit))).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&page)?;
        return Ok(Exit::Ok);
    }
    if page.changes.is_empty() {
        output.note("no changes");
        return Ok(Exit::Ok);
    }
    output.table(&versioned::changes(&page.changes, now()))?;
    if let Some(before) = page.next_before {
        output.hint(format_args!("there are more; add --before {before} for the next page"));
    }
    Ok(Exit::Ok)
}
