use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::progress::Progress;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{input, run_ref};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file that `baton run export` wrote (`-` = stdin)
    file: PathBuf,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let output = context.output;
    let place = args.file.display().to_string();
    let file: Box<dyn Read + Send> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&args.file).map_err(|error| input::unreadable(&args.file, &error))?)
    };
    let progress = std::sync::Mutex::new(Progress::new(output));
    let imported = client
        .import_run(file, move |bytes| {
            if let Ok(mut progress) = progress.lock() {
                progress.at(bytes);
            }
        })
        .await
        .map_err(|error| Failure::from(error).about(&place))?;
    if output.is_json() {
        output.json(&imported)?;
    } else {
        output.line(&imported.run_id)?;
    }
    if imported.already_here {
        output.note("the host already had all of it");
    } else {
        let (new, all, records) = (imported.new_runs, imported.runs, imported.records);
        output.note(format_args!("{new} of {all} runs are new here; the file holds {records} events"));
    }
    output.hint(format_args!("baton run verify {}", run_ref::short(imported.run_id.as_str())));
    Ok(Exit::Ok)
}
