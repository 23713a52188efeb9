use baton_model::{Annotation, Signal, SignalKind};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
    /// At most this many
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Continue where the previous page ended
    #[arg(long)]
    cursor: Option<String>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let page = client.annotations(&id, usize::from(args.limit), args.cursor.as_deref()).await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&page)?;
    } else if page.annotations.is_empty() {
        output.note("this run has no annotations");
    } else {
        let mut rows = table(&["WHEN", "BY", "ABOUT", "SAYS", "NOTE"]);
        for annotation in &page.annotations {
            rows.add_row(row(annotation));
        }
        output.table(&rows)?;
        if let Some(cursor) = &page.next_after {
            output.hint(format_args!("there are more; add --cursor {cursor} for the next page"));
        }
    }
    Ok(Exit::Ok)
}

fn row(annotation: &Annotation) -> [String; 5] {
    let anchor = &annotation.target.anchor;
    let about = match (&anchor.event_id, &anchor.node_id) {
        (Some(event), _) => event.clone(),
        (None, Some(node)) => node.to_string(),
        (None, None) => "the run".to_owned(),
    };
    [
        annotation.created_at.to_string(),
        annotation.actor.principal_ref.clone(),
        about,
        says(&annotation.signal),
        annotation.note.clone().unwrap_or_default(),
    ]
}

fn says(signal: &Signal) -> String {
    match signal.kind {
        SignalKind::Rating => format!("{} of 5", signal.rating.unwrap_or_default()),
        SignalKind::Label => signal.label.clone().unwrap_or_default(),
        SignalKind::Correction => format!("should be: {}", signal.correction.as_deref().unwrap_or_default()),
        SignalKind::Flag => "flagged".to_owned(),
    }
}
