use baton_store::archive::Table;
use baton_store_postgres::PostgresStore;
use baton_store_sqlite::{Progress, SqliteStore};
use serde_json::{Map, json};

use super::location::Location;
use super::verification::replay;
use crate::context::Context;
use crate::dev_file::DEV_DATA;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Data folder, or postgres://user:password@host/database
    #[arg(value_name = "DIR|URL", default_value = DEV_DATA, env = "BATON_DATABASE_URL", hide_env_values = true)]
    location: String,
    /// Only check what is stored; do not replay runs
    #[arg(long)]
    no_replay: bool,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    // An empty variable counts as not set.
    let location = Location::parse(if args.location.is_empty() { DEV_DATA } else { &args.location });
    // Before it is opened: this needs no lock and changes nothing.
    let problems = problems(&location, output).await?;
    let open = location.open_damaged().await?;
    let mut rows = table(&["TABLE", "ROWS"]);
    let mut tables = Map::new();
    for table in Table::ALL {
        let count = open.count(table).await?;
        rows.add_row([table.as_str(), &count.to_string()]);
        tables.insert(table.as_str().to_owned(), json!(count));
    }
    let replayed = if args.no_replay { None } else { Some(replay(&open, output).await?) };
    open.close().await;
    if output.is_json() {
        let all =
            json!({ "place": location.to_string(), "tables": tables, "problems": problems, "replayed": replayed });
        output.json(&all)?;
    } else {
        output.table(&rows)?;
        for problem in &problems {
            output.line(format_args!("WRONG {problem}"))?;
        }
        if let Some(replayed) = &replayed {
            output.line(replayed.sentence())?;
        }
    }
    let replay_exit = replayed.map_or(Exit::Ok, |replayed| replayed.exit());
    Ok(if problems.is_empty() { replay_exit } else { Exit::Failed })
}

async fn problems(location: &Location, output: &Output) -> Result<Vec<String>, Failure> {
    match location {
        Location::Database(settings) => {
            Ok(PostgresStore::check(settings).await.map_err(|error| database_failure(&error))?.problems)
        }
        Location::Folder(path) if !["baton.db", "baton.commits"].iter().any(|name| path.join(name).exists()) => {
            Ok(Vec::new())
        }
        Location::Folder(path) => {
            let tell = |Progress { what, done, all }| output.note(format_args!("checked {done} of {all} {what}"));
            let report = SqliteStore::check_telling(path, tell).map_err(|error| database_failure(&error))?;
            if !report.noted {
                output.note("no baton.commits tells whether the end is there");
            }
            let gaps =
                report.gaps.iter().map(|gap| format!("{} has {} of {} events", gap.run, gap.events, gap.next_seq));
            let ledgers = report.version_gaps.iter().map(|gap| {
                let (whole, ledger) = (gap.version.saturating_sub(gap.forgotten), &gap.ledger);
                let (kind, scope) = (ledger.kind.as_str(), &ledger.scope);
                format!("{kind} `{scope}` of {} has {} of {whole} changes", ledger.tenant, gap.changes)
            });
            Ok(report.damage.iter().cloned().chain(gaps).chain(ledgers).chain(report.wrong.iter().cloned()).collect())
        }
    }
}
