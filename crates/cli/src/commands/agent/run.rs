use std::path::PathBuf;

use baton_client::StartRun;
use serde_json::{Map, Value};

use crate::commands::run::start::{self, Afterwards};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;

/// The variable that a run of a single agent leaves its answer in.
const RESULT: &str = "result";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the agent
    agent: String,
    /// Task as text; short for -i '{"task": "…"}'
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Task as a JSON object; overrides fields of --file
    #[arg(short, long, value_name = "JSON")]
    inputs: Option<String>,
    /// Read the task from a JSON file (`-` = stdin)
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Use this model: PROVIDER/MODEL
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Options of the run as a JSON object
    #[arg(long, value_name = "JSON")]
    configurable: Option<String>,
    /// Use this memory scope, shared with other runs [default: a scope of its own]
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Idempotency key: the same key starts only one run
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    afterwards: Afterwards,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let mut inputs = start::inputs(args.inputs.as_deref(), args.file.as_deref())?;
    inputs.extend(args.task.map(|task| ("task".to_owned(), Value::String(task))));
    let mut configurable =
        args.configurable.map_or_else(|| Ok(Map::new()), |text| input::object(&text, "--configurable"))?;
    if let Some(model) = &args.model {
        let Some((provider, model)) = model.split_once('/') else {
            return Err(Failure::usage("--model is PROVIDER/MODEL, such as openai/gpt-5"));
        };
        configurable.insert("ai.provider".to_owned(), provider.into());
        configurable.insert("ai.model".to_owned(), model.into());
    }
    let request =
        StartRun { agent_id: Some(args.agent), inputs, configurable, scope_id: args.scope, ..StartRun::default() };
    let client = context.client()?;
    let started = client.start_run(&request, args.idempotency_key.as_deref()).await.map_err(super::refused::refused)?;
    let exit = args.afterwards.see_through(&client, context, &started).await?;
    if args.afterwards.waits() && exit == Exit::Ok && !context.output.is_json() {
        print(context, client.run(started.run_id.as_str()).await?.variables.get(RESULT))?;
    }
    Ok(exit)
}

/// The answer is what an agent is asked for, so it is not cut short like other values of a run.
fn print(context: &Context, answer: Option<&Value>) -> Result<(), Failure> {
    let output = &context.output;
    match answer {
        None => return Ok(()),
        Some(Value::String(text)) => output.line(format_args!("\n{text}"))?,
        Some(other) => {
            output.line("")?;
            output.json(other)?;
        }
    }
    Ok(())
}
