use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_client::{ExportFooter, RunExport};
use serde_json::json;

use super::progress::Progress;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::run_ref;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The run's id, or the beginning of it; it must have ended
    run: String,
    /// Write to this file (`-` = stdout) [default: <run id>.jsonl]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let client = context.client()?;
    let id = run_ref::find(&client, &args.run).await?;
    let path = args.output.map_or_else(|| run_ref::file_name(&id), Ok)?;
    let export = client.export_run(&id).await.map_err(|error| {
        let lacks = error.code() == Some(baton_model::code::FORBIDDEN);
        let failure = Failure::from(error);
        if lacks {
            failure.hint(
                "an export contains private data: the key needs runs:read, audit:read, memory:read and workspace:read",
            )
        } else {
            failure
        }
    })?;
    let elsewhere = client.run(&id).await?.child_runs.iter().filter(|child| child.url.is_some()).count();
    let output = &context.output;
    if path.as_os_str() == "-" {
        let (footer, _) = copy(export, io::stdout(), Progress::new(*output)).await?;
        output.note(counted(&footer));
        return Ok(Exit::Ok);
    }
    let failed = |error: io::Error| Failure::unwritten(&path, &error);
    // Not under its name before it is whole.
    let partial = partial(&path);
    let file = open_private(&partial).map_err(failed)?;
    let copied = copy(export, file, Progress::new(*output)).await;
    let (footer, bytes) = match copied {
        Ok(copied) => copied,
        Err(failure) => {
            // What is not whole is of no use; that it cannot be removed changes nothing about the failure.
            let _ = fs::remove_file(&partial);
            return Err(failure);
        }
    };
    fs::rename(&partial, &path).map_err(failed)?;
    if output.is_json() {
        let mut summary = serde_json::to_value(&footer).unwrap_or_default();
        summary["runId"] = id.into();
        summary["file"] = path.display().to_string().into();
        summary["bytes"] = json!(bytes);
        output.json(&summary)?;
    } else {
        output.line(path.display())?;
    }
    output.note(counted(&footer));
    output.note("the file contains private data: inputs, hidden values, memory and files");
    if elsewhere > 0 {
        output.note(format_args!("{elsewhere} of its workers ran on other hosts and are not in the file"));
    }
    output.hint(format_args!("baton run import {}", path.display()));
    Ok(Exit::Ok)
}

async fn copy(
    mut export: RunExport,
    target: impl Write,
    mut progress: Progress,
) -> Result<(ExportFooter, u64), Failure> {
    let mut target = BufWriter::new(target);
    let mut bytes = 0;
    while let Some(piece) = export.next().await? {
        target.write_all(&piece)?;
        bytes += piece.len() as u64;
        progress.at(bytes);
    }
    target.flush()?;
    Ok((export.footer()?, bytes))
}

fn counted(footer: &ExportFooter) -> String {
    let ExportFooter { runs, records, ledgers, changes, .. } = footer;
    format!("{runs} runs, {records} events, {changes} changes of {ledgers} memory scopes and workspaces")
}

fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// Only its owner may read it, from the first byte.
fn open_private(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
