use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let found = context.client()?.memory_scopes().await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&found)?;
        return Ok(Exit::Ok);
    }
    if found.scopes.is_empty() {
        output.note("there are no memory scopes yet");
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["SCOPE", "VERSION", "UPDATED"]);
    for scope in &found.scopes {
        rows.add_row([scope.scope.as_str(), &scope.version.to_string(), &ago(scope.updated_at, now)]);
    }
    output.table(&rows)?;
    Ok(Exit::Ok)
}
