use baton_model::{Annotation, Signal, SignalKind};
use serde_json::json;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it
    run: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = client.annotations(&id, after.as_deref()).await?;
        all.extend(page.annotations);
        after = page.next_after;
        if after.is_none() {
            break;
        }
    }
    let output = &context.output;
    if output.is_json() {
        output.json(&json!({ "annotations": all }))?;
    } else if all.is_empty() {
        output.note("nobody has said anything about this run");
    } else {
        let mut rows = table(&["WHEN", "BY", "ABOUT", "SAYS", "NOTE"]);
        for annotation in &all {
            rows.add_row(row(annotation));
        }
        output.table(&rows)?;
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
