use std::path::PathBuf;

use baton_client::{Client, StartRun, StartedRun};
use baton_model::RunSnapshot;
use serde_json::{Map, Value};

use crate::age::now;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::event::EventLines;
use crate::render::question::Question;
use crate::render::snapshot;
use crate::{follow, input, terminal};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the workflow
    workflow: String,
    /// Inputs as a JSON object; overrides fields of --file
    #[arg(short, long, value_name = "JSON")]
    inputs: Option<String>,
    /// Read inputs from a JSON file (`-` = stdin)
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Options as a JSON object, for example recursionLimit or runTimeoutMs
    #[arg(long, value_name = "JSON")]
    configurable: Option<String>,
    /// Use this memory scope, shared with other runs [default: a scope of its own]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Tag to find the run by; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Idempotency key: the same key starts only one run
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    afterwards: Afterwards,
}

/// What happens once a run has been started.
#[derive(Debug, clap::Args)]
pub(crate) struct Afterwards {
    /// Wait until the run ends or needs an answer, then print it
    #[arg(long)]
    wait: bool,
    /// Print the run's events while waiting
    #[arg(long)]
    follow: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let request = StartRun {
        workflow_id: Some(args.workflow),
        inputs: inputs(args.inputs.as_deref(), args.file.as_deref())?,
        configurable: args
            .configurable
            .map_or_else(|| Ok(Map::new()), |text| input::object(&text, "--configurable"))?,
        tags: args.tags,
        scope_id: args.scope,
        ..StartRun::default()
    };
    let client = context.client()?;
    let started = client.start_run(&request, args.idempotency_key.as_deref()).await?;
    args.afterwards.see_through(&client, context, &started).await
}

impl Afterwards {
    /// Whether the caller is still there when the run settles.
    pub(crate) const fn waits(&self) -> bool {
        self.wait || self.follow
    }

    pub(crate) async fn see_through(
        &self,
        client: &Client,
        context: &Context,
        started: &StartedRun,
    ) -> Result<Exit, Failure> {
        let output = &context.output;
        if self.follow {
            output.note(format_args!("started {}", started.run_id));
            let mut lines = EventLines::fitting(terminal::width());
            let settled = follow::until_settled(client, started.run_id.as_str(), |event| {
                if output.is_json() { output.json_line(event) } else { output.line(lines.line(event)) }
            })
            .await?;
            output.note(format_args!("{} is {}", settled.run_id, settled.status));
            return conclude(client, context, &settled).await;
        }
        if self.wait {
            output.note(format_args!("started {}", started.run_id));
            let settled = follow::until_settled(client, started.run_id.as_str(), |_| Ok(())).await?;
            if output.is_json() {
                output.json(&settled)?;
            } else {
                snapshot::print(output, &settled, now())?;
            }
            return conclude(client, context, &settled).await;
        }
        if output.is_json() {
            output.json(started)?;
        } else {
            output.line(&started.run_id)?;
            output.hint(format_args!("baton run watch {}", started.run_id));
        }
        Ok(Exit::Ok)
    }
}

/// What a settled run means: the exit code, and the next command when somebody has to answer.
pub(crate) async fn conclude(client: &Client, context: &Context, run: &RunSnapshot) -> Result<Exit, Failure> {
    Question::print(client, &context.output, run).await;
    Ok(Exit::of_run(run.status, run.error.as_ref().map(|error| error.code.as_str())))
}

pub(crate) fn inputs(text: Option<&str>, file: Option<&std::path::Path>) -> Result<Map<String, Value>, Failure> {
    let mut all = match file {
        Some(path) => input::object(&input::read(path)?, &path.display().to_string())?,
        None => Map::new(),
    };
    if let Some(text) = text {
        all.extend(input::object(text, "--inputs")?);
    }
    Ok(all)
}
