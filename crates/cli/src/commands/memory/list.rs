use super::scope::Scope;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::versioned;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scope: Scope,
    /// Only entries with this tag
    #[arg(long)]
    tag: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let scope = args.scope.name(&client).await?;
    let limit = usize::from(args.limit);
    let found = client.memory_list(&scope, args.tag.as_deref(), Some(limit)).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&found)?;
        return Ok(Exit::Ok);
    }
    if found.entries.is_empty() {
        output.note(format_args!("{scope} has no entries"));
        return Ok(Exit::Ok);
    }
    output.table(&versioned::entries(&found.entries, crate::age::now()))?;
    if found.entries.len() == limit {
        output.note(format_args!("these are the newest {limit}; there may be more"));
        output.hint(format_args!("baton memory export {scope}"));
    } else if let Some(newest) = found.entries.first() {
        output.hint(format_args!("baton memory get {scope} {}", newest.id));
    }
    Ok(Exit::Ok)
}
