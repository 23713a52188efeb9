//! `baton new`: a project that runs and passes its test at once.

mod templates;
mod worker;

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use self::worker::Worker;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// A name is part of ids, and those are bounded.
const MAX_NAME_CHARS: usize = 40;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder to make; its last part is the project's name
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// Language of the worker, which holds the project's own functions
    #[arg(long, value_enum, default_value_t = Worker::None)]
    worker: Worker,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<Exit, Failure> {
    let name = name(&args.folder)?;
    let files = templates::files(&name, args.worker);
    write(&args.folder, &files)?;
    let output = &context.output;
    if output.is_json() {
        let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
        output.json(&json!({ "name": name, "folder": args.folder.display().to_string(), "files": paths }))?;
        return Ok(Exit::Ok);
    }
    for (path, _) in &files {
        output.line(args.folder.join(path).display())?;
    }
    let folder = args.folder.display();
    output.note(format_args!("made the project {name}"));
    output.note(format_args!("hint: cd {folder} && baton test"));
    output.note(format_args!("hint: cd {folder} && baton dev"));
    Ok(Exit::Ok)
}

/// The project's name: it becomes part of the pack's name, which says what may be in it.
fn name(folder: &Path) -> Result<String, Failure> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let fits = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-')
        && name.len() <= MAX_NAME_CHARS;
    if fits {
        return Ok(name.to_owned());
    }
    let message = format!("`{name}` cannot be the name of a project");
    let hint = format!("use up to {MAX_NAME_CHARS} small letters, digits and dashes, a letter first, such as helpdesk");
    Err(Failure::usage(message).hint(hint))
}

/// Writes the files into a folder that is new or empty. Nothing that is there is ever replaced.
fn write(folder: &Path, files: &[(String, String)]) -> Result<(), Failure> {
    let failed = |path: &Path, error: &io::Error| Failure::new(Exit::Failed, format!("{}: {error}", path.display()));
    match std::fs::read_dir(folder) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                let failure = Failure::new(Exit::Conflict, format!("{} is not empty", folder.display()));
                return Err(failure.hint("choose another name, or an empty folder"));
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(folder, &error)),
    }
    for (path, text) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        }
        // Another process may be making the same project.
        let file = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        file.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
