use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::scope::Scope;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::private_file;

/// How many entries are asked for at a time.
const PAGE: usize = 1000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scope: Scope,
    /// Write to this file instead of stdout (`-` = stdout)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let scope = args.scope.name(&client).await?;
    let path = args.output.filter(|path| path.as_os_str() != "-");
    let place = path.as_ref().map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
    let failed = |error: io::Error| match &path {
        Some(path) => Failure::unwritten(path, &error),
        None => Failure::new(Exit::Failed, format!("stdout: {error}")),
    };
    let mut target: Box<dyn Write> = match &path {
        None => Box::new(BufWriter::new(io::stdout())),
        Some(path) => Box::new(BufWriter::new(private_file::rewrite(path).map_err(failed)?)),
    };
    let (mut count, mut cursor) = (0_usize, None);
    loop {
        let page = client.memory_page(&scope, None, Some(PAGE), cursor.as_deref()).await?;
        for entry in &page.entries {
            serde_json::to_writer(&mut target, entry).map_err(|error| failed(error.into()))?;
            target.write_all(b"\n").map_err(failed)?;
        }
        count += page.entries.len();
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    target.flush().map_err(failed)?;
    if path.is_some() {
        context.output.note(format_args!("{count} entries of {scope} in {place}"));
    }
    Ok(Exit::Ok)
}
