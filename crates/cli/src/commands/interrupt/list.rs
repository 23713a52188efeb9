use crate::age::{ago, now};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;
use crate::render::question::Question;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only questions of this run
    run: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let run = match &args.run {
        Some(text) => Some(run_ref::find(&client, text).await?),
        None => None,
    };
    let open = client.interrupts(run.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&open)?;
        return Ok(Exit::Ok);
    }
    if open.interrupts.is_empty() {
        output.note("there are no open questions");
        return Ok(Exit::Ok);
    }
    let now = now();
    let mut rows = table(&["RUN", "NODE", "KIND", "ASKED", "QUESTION"]);
    let mut first = None;
    for interrupt in open.interrupts {
        let asked = ago(interrupt.requested_at, now);
        let question = Question::from(interrupt);
        rows.add_row([&question.run, &question.node, &question.kind, &asked, &question.title()]);
        first.get_or_insert(question);
    }
    output.table(&rows)?;
    if let Some(question) = first {
        output.hint(question.command());
    }
    Ok(Exit::Ok)
}
