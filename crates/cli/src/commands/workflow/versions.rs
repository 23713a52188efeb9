use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the workflow
    workflow: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let known = context.client()?.workflow_versions(&args.workflow).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&known)?;
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["VERSION", "DIGEST", "REGISTERED", "NAME"]);
    for one in &known.versions {
        let registered = ago(one.registered_at, now);
        let digest: String = one.digest.as_str().chars().take(12).collect();
        rows.add_row([one.version.to_string(), digest, registered, one.name.clone()]);
    }
    output.table(&rows)?;
    Ok(Exit::Ok)
}
