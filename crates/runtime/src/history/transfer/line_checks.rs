//! What is wrong with a line of a file.

use baton_model::RunId;

use crate::Error;

/// A refusal that says where.
pub(crate) fn at(line: u64, problem: impl std::fmt::Display) -> Error {
    placed(Error::invalid(format!("{problem}.")), line)
}

pub(crate) fn check_run_id(run: &RunId, line: u64) -> Result<(), Error> {
    let digits = run.as_str().strip_prefix("run_").unwrap_or_default();
    if digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(at(line, "a run's id is `run_` and 32 hexadecimal digits"))
}

/// The parser's sentence without its own position: it saw one line only.
pub(crate) fn parser_text(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

pub(crate) fn check_name(name: &str, line: u64) -> Result<(), Error> {
    if (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(at(line, format!("a name has 1 to {LONGEST_NAME} bytes, without control characters")))
}

pub(crate) fn placed(mut error: Error, line: u64) -> Error {
    let dot = if error.message.ends_with('.') { "" } else { "." };
    error.message = format!("Line {line}: {}{dot}", error.message);
    error.with("line", line)
}

/// The longest name of a scope, and of an entry.
pub(crate) const LONGEST_NAME: usize = 1024;
