use crate::age::{ago, now};
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
    let found = context.client()?.memory_get(&args.scope, &args.id).await;
    let entry = found.map_err(|error| missing(error, &args.scope))?;
    let output = &context.output;
    if output.is_json() {
        output.json(&entry)?;
        return Ok(Exit::Ok);
    }
    let mut rows = vec![("entry", entry.id.clone()), ("created", ago(entry.created_at, now()))];
    rows.extend((!entry.tags.is_empty()).then(|| ("tags", entry.tags.join(", "))));
    rows.extend(entry.expires_at.map(|at| ("expires", at.to_string())));
    for (name, value) in rows {
        output.line(format_args!("{name:<10} {value}"))?;
    }
    output.line("")?;
    output.line(&entry.content)?;
    Ok(Exit::Ok)
}

/// An entry that is not there: say where to look.
pub(super) fn missing(error: baton_client::Error, scope: &str) -> Failure {
    let failure = Failure::from(error);
    if failure.exit == Exit::NotFound {
        return failure.hint(format!("`baton memory list {scope}` shows the entries"));
    }
    failure
}
