use baton_store::archive::Table;
use baton_store_sqlite::DataAccess;
use serde_json::{Map, json};

use super::location::{Location, Open};
use super::messages;
use super::salvage::{self, LeftOut};
use super::verification::{Fingerprint, page, replay};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::storage::database_failure;
use crate::hosting::{host_id, link_secret};
use crate::output::{Output, table};

const PROGRESS_EVERY: u64 = 5_000;
/// What every store makes once and keeps.
const SECRETS: [&str; 2] = [link_secret::NAME, host_id::NAME];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Source: a data folder, or postgres://user:password@host/database
    #[arg(long, value_name = "DIR|URL")]
    from: String,
    /// Target: a data folder, or postgres://user:password@host/database; must be empty
    #[arg(long, value_name = "DIR|URL")]
    to: String,
    /// Who may read the target folder: owner, group or any (the setting data_access)
    #[arg(long, value_name = "WHO", default_value = "owner", env = "BATON_DATA_ACCESS", value_parser = access)]
    data_access: DataAccess,
    /// Continue an interrupted copy; the target may hold a part of it
    #[arg(long)]
    resume: bool,
    /// Copy what can be read of a damaged source, and say what was left out
    #[arg(long)]
    salvage: bool,
}

fn access(text: &str) -> Result<DataAccess, String> {
    // An empty variable counts as not set.
    let known = if text.is_empty() { Some(DataAccess::Owner) } else { DataAccess::parse(text) };
    known.ok_or_else(|| "write owner, group or any".to_owned())
}

/// Nobody may be using either side. Nothing of the source is changed.
pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let output = &context.output;
    let (from, to) = (Location::parse(&args.from), Location::parse(&args.to));
    let source = if args.salvage { from.open_damaged().await? } else { from.open().await? };
    let target = to.open_or_create(args.data_access).await?;
    if let Some(held) = held(&target).await? {
        let failure = |what: String| Failure::new(Exit::Conflict, format!("{to} is not empty: it holds {what}"));
        if !args.resume {
            let hint = "use an empty target, or continue an interrupted copy with --resume";
            return Err(failure(held.as_str().to_owned()).hint(hint));
        }
        if !is_begun(&source, &target).await? {
            let hint = "--resume continues only a copy of the same source; use an empty target";
            return Err(failure(format!("{} of something else than {from}", held.as_str())).hint(hint));
        }
    }
    // First, so that a copy that is cut short can be told from one of something else.
    for name in SECRETS {
        if let Some(value) = source.kept(name).await? {
            target.keep(name, &value).await?;
        }
    }
    let mut rows = table(&["TABLE", "ROWS", "DIGEST", "SAME"]);
    let (mut tables, mut wrong) = (Map::new(), None);
    let mut prints = Vec::new();
    let mut left_out = args.salvage.then(LeftOut::default);
    for table in Table::ALL {
        prints.push((table, copy(&source, &target, table, left_out.as_mut(), output).await?));
    }
    for (table, there) in prints {
        let here = Fingerprint::of(&target, table, output).await?;
        let same = here == there;
        wrong = wrong.or((!same).then_some(table));
        rows.add_row([table.as_str(), &there.rows.to_string(), &there.hex(), if same { "yes" } else { "NO" }]);
        let counts = json!({ "rows": there.rows, "arrived": here.rows, "digest": there.hex(), "same": same });
        tables.insert(table.as_str().to_owned(), counts);
    }
    let messages = messages::copy(&source, &target, output).await?;
    let replayed = replay(&target, output).await?;
    source.close().await;
    target.close().await;
    if output.is_json() {
        let places = (from.to_string(), to.to_string());
        let all = json!({ "from": places.0, "to": places.1, "tables": tables, "letters": messages,
            "leftOut": left_out.as_ref().map(|left_out| &left_out.0), "replayed": replayed });
        output.json(&all)?;
    } else {
        output.table(&rows)?;
        output.line(replayed.sentence())?;
    }
    if let Some(LeftOut(lines)) = left_out.filter(|left_out| !left_out.0.is_empty()) {
        output.hint(format_args!("{} rows could not be read and were left out; they are named above", lines.len()));
    }
    if let Some(table) = wrong {
        let failure = Failure::new(Exit::Failed, format!("{} are not the same in {to}", table.as_str()));
        return Err(failure.hint("check that nothing writes to the target, empty it, and copy again"));
    }
    if replayed.exit() != Exit::Ok {
        output.hint(format_args!("baton storage check {from}  # compare with the source"));
    }
    Ok(replayed.exit())
}

/// The first table that has anything in it.
async fn held(target: &Open) -> Result<Option<Table>, Failure> {
    for table in Table::ALL {
        if target.count(table).await? > 0 {
            return Ok(Some(table));
        }
    }
    Ok(None)
}

/// Whether what is in the target was copied from this source: what is made once for each came along first.
async fn is_begun(source: &Open, target: &Open) -> Result<bool, Failure> {
    for name in SECRETS {
        if let Some(value) = source.kept(name).await?
            && target.kept(name).await?.as_ref() != Some(&value)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A page at a time, so it does not matter how much there is.
async fn copy(
    source: &Open,
    target: &Open,
    table: Table,
    mut left_out: Option<&mut LeftOut>,
    output: &Output,
) -> Result<Fingerprint, Failure> {
    let total = source.count(table).await?;
    let mut print = Fingerprint::default();
    let mut after = None;
    loop {
        let entries = match left_out.as_deref_mut() {
            Some(left_out) => salvage::page(source, table, after.as_ref(), left_out, output).await?,
            None => page(source, table, after.as_ref()).await?,
        };
        let Some(last) = entries.last().cloned() else { break };
        let before = print.rows;
        entries.iter().for_each(|entry| print.add(entry));
        target.whole.restore(entries).await.map_err(|error| database_failure(&error).about(table.as_str()))?;
        if before / PROGRESS_EVERY != print.rows / PROGRESS_EVERY {
            output.note(format_args!("copied {} of {total} {}", print.rows, table.as_str()));
        }
        after = Some(last);
    }
    if total > 0 {
        output.note(format_args!("copied {total} {}", table.as_str()));
    }
    Ok(print)
}
