use baton_store_sqlite::{Compacted, SqliteStore};
use serde_json::json;

use super::location::Location;
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
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let path = match Location::parse(&args.location) {
        Location::Folder(path) => path,
        Location::Database(_) => {
            let why = "PostgreSQL reuses the room by itself (autovacuum); there is nothing to compact";
            return Err(Failure::new(Exit::Usage, why)
                .hint("VACUUM FULL gives it back to the file system, and locks the tables"));
        }
    };
    let folder = path.clone();
    let compacted = tokio::task::spawn_blocking(move || SqliteStore::compact(&folder)).await;
    let compacted = compacted.map_err(|error| Failure::new(Exit::Failed, format!("compacting stopped: {error}")))?;
    let Compacted { before, after } = compacted.map_err(|error| database_failure(&error))?;
    if output.is_json() {
        output.json(&json!({ "place": path.display().to_string(), "bytesBefore": before, "bytesAfter": after }))?;
    } else {
        output.line(format_args!("{}: {before} bytes before, {after} bytes now", path.display()))?;
    }
    Ok(Exit::Ok)
}
