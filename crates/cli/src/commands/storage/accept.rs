use baton_store_sqlite::{Accepted, SqliteStore};
use serde_json::json;

use super::location::Location;
use crate::confirm;
use crate::context::Context;
use crate::dev_file::DEV_DATA;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Data folder of a host that is stopped
    #[arg(value_name = "DIR", default_value = DEV_DATA)]
    location: String,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let path = match Location::parse(&args.location) {
        Location::Folder(path) => path,
        Location::Database(_) => {
            let why = "PostgreSQL looks after its own pages and write-ahead log; there is nothing to accept";
            return Err(Failure::new(Exit::Usage, why).hint("`baton storage check URL` finds rows that are damaged"));
        }
    };
    if !args.yes && !confirm::sure(&format!("Give up what is missing in {}?", path.display()))? {
        return Ok(Exit::Ok);
    }
    let folder = path.clone();
    let accepted = tokio::task::spawn_blocking(move || SqliteStore::accept(&folder)).await;
    let accepted = accepted.map_err(|error| Failure::new(Exit::Failed, format!("accepting stopped: {error}")))?;
    let Accepted { lost_end, rebuilt } = accepted.map_err(|error| database_failure(&error))?;
    if output.is_json() {
        output.json(&json!({ "place": path.display().to_string(), "lostEnd": lost_end, "rebuilt": rebuilt }))?;
    } else {
        for line in lost_end.iter().chain(&rebuilt) {
            output.line(format_args!("accepted: {line}"))?;
        }
        let nothing = lost_end.is_none() && rebuilt.is_empty();
        output.line(if nothing { "nothing was missing" } else { "the folder opens again" })?;
    }
    Ok(Exit::Ok)
}
