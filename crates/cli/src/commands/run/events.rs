use baton_client::{RunEvent, StreamMode};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::event::EventLines;
use crate::{run_ref, terminal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// Only events after this sequence
    #[arg(long, value_name = "SEQUENCE")]
    after: Option<u64>,
    /// Keep printing until the run ends
    #[arg(long)]
    follow: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let output = &context.output;
    let mut lines = EventLines::fitting(terminal::width());
    let mut print = |event: &RunEvent| {
        if output.is_json() { output.json_line(event) } else { output.line(lines.line(event)) }
    };
    if args.follow {
        let mut stream = client.stream(&id, args.after, StreamMode::Debug);
        while let Some(event) = stream.next().await {
            print(&event?)?;
        }
        return Ok(Exit::Ok);
    }
    // Up to where the log was when we asked: a run that keeps going must not keep us.
    let end = client.run(&id).await?.at_seq;
    let mut after = args.after;
    while after.is_none_or(|seq| seq < end) {
        let page = client.events(&id, after, 1).await?;
        for event in &page.events {
            print(event)?;
        }
        match page.events.last() {
            Some(last) => after = Some(last.sequence),
            None => break,
        }
    }
    Ok(Exit::Ok)
}
