use std::path::Path;

use clap::Subcommand;
use serde_json::{Map, json};

use super::serve;
use crate::config::{Layered, Value};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::host_id;
use crate::output::table;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print every setting and its value
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Show where each value came from
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    serve: serve::Args,
}

pub(crate) fn run(command: Command, context: &Context) -> Result<Exit, Failure> {
    let Command::Show(args) = command;
    let mut layered = args.serve.layered().map_err(|error| Failure::usage(error.to_string()))?;
    settle_host_id(&mut layered);
    let output = &context.output;
    if output.is_json() {
        let mut all = Map::new();
        for (setting, value, origin) in layered.rows() {
            let value = value.map(|value| match value {
                Value::Text(text) => json!(text),
                Value::Bool(value) => json!(value),
                Value::Count(count) => json!(count),
                Value::List(items) => json!(items),
            });
            let mut row = json!({ "value": value, "env": setting.env });
            if args.origin {
                row["origin"] = json!(origin.map(ToString::to_string));
            }
            all.insert(setting.key.to_owned(), row);
        }
        output.json(&all)?;
        return Ok(Exit::Ok);
    }
    let last = if args.origin { "ORIGIN" } else { "MEANING" };
    let mut rows = table(&["SETTING", "VALUE", "VARIABLE", last]);
    for (setting, value, origin) in layered.rows() {
        let value = value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        let origin = origin.map_or_else(|| "unset".to_owned(), ToString::to_string);
        let last = if args.origin { origin.as_str() } else { setting.help };
        rows.add_row([setting.key, &value, setting.env, last]);
    }
    output.table(&rows)?;
    Ok(Exit::Ok)
}

/// A host that was given no id has one all the same. Where it cannot be read, `doctor` says why.
fn settle_host_id(layered: &mut Layered) {
    let given = layered.text("host_id");
    let (public_url, data) = (layered.text("public_url"), layered.text("data").unwrap_or_default());
    if let Ok(Some((id, Some(origin)))) = host_id::find(given.as_deref(), public_url.as_deref(), Path::new(&data)) {
        layered.found("host_id", id, origin);
    }
}
