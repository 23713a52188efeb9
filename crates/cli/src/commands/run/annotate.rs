use baton_client::{NewAnnotation, Target};
use baton_model::{NodeId, Signal, SignalKind};

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it; the run may have ended
    run: String,
    #[command(flatten)]
    signal: Said,
    /// Comment
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// About this node only
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// About this event only, for example run_01a1….7
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Said {
    /// Rating from 1 to 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    rating: Option<u8>,
    /// Label
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
    /// The correct result
    #[arg(long, value_name = "TEXT")]
    correction: Option<String>,
    /// Flag the run for review
    #[arg(long)]
    flag: bool,
}

impl Said {
    fn signal(self) -> Signal {
        let kind = match &self {
            Self { rating: Some(_), .. } => SignalKind::Rating,
            Self { label: Some(_), .. } => SignalKind::Label,
            Self { correction: Some(_), .. } => SignalKind::Correction,
            _ => SignalKind::Flag,
        };
        Signal { kind, rating: self.rating, label: self.label, correction: self.correction }
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let target = Target { event_id: args.event, node_id: args.node.map(NodeId::new) };
    let new = NewAnnotation { signal: args.signal.signal(), target, note: args.note };
    let annotation = client.annotate(&id, &new).await?;
    if context.output.is_json() {
        context.output.json(&annotation)?;
    } else {
        context.output.line(annotation.annotation_id)?;
    }
    Ok(Exit::Ok)
}
