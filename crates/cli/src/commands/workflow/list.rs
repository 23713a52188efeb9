use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let list = context.client()?.workflows().await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&list)?;
        return Ok(Exit::Ok);
    }
    if list.workflows.is_empty() {
        output.note("no workflows");
        output.hint("baton workflow register FILE");
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["WORKFLOW", "VERSION", "NAME", "REGISTERED"]);
    for workflow in &list.workflows {
        rows.add_row([
            workflow.workflow_id.as_str(),
            &workflow.version.to_string(),
            &workflow.name,
            &ago(workflow.registered_at, now),
        ]);
    }
    output.table(&rows)?;
    Ok(Exit::Ok)
}
