//! Why a command stopped: one sentence, what to do about it, and the exit code.

use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Nothing to say when the reader of our output went away.
    message: Option<String>,
    hint: Option<String>,
    code: Option<String>,
    details: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: Some(message.into()), hint: None, code: None, details: Map::new() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// A file that was named with `-o` cannot be written.
    pub(crate) fn unwritten(path: &Path, error: &io::Error) -> Self {
        let failure = Self::new(Exit::Failed, format!("{}: {error}", path.display()));
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => failure
                .hint(format!("the folder {} does not exist: create it, or choose another with -o", folder.display())),
            _ => failure,
        }
    }

    /// What went wrong, in a sentence.
    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    /// What to do about it.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names what the failure is about, where the message alone does not.
    #[must_use]
    pub(crate) fn about(mut self, what: impl std::fmt::Display) -> Self {
        self.message = self.message.map(|message| format!("{what}: {message}"));
        self
    }

    /// Adds a sentence to what is said.
    #[must_use]
    pub(crate) fn and(mut self, sentence: &str) -> Self {
        self.message = self.message.map(|message| format!("{message} {sentence}"));
        self
    }

    #[must_use]
    pub(crate) fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Says it on stderr: as text, or as one JSON object when `--json` is given.
    pub(crate) fn print(&self, output: &Output) {
        let Some(message) = &self.message else { return };
        if output.is_json() {
            let mut body = json!({ "error": self.code.as_deref().unwrap_or("cli_error"), "message": message });
            if let Some(hint) = &self.hint {
                body["hint"] = hint.as_str().into();
            }
            if !self.details.is_empty() {
                body["details"] = Value::Object(self.details.clone());
            }
            output.error(&body.to_string());
            return;
        }
        output.error(&format!("error: {message}"));
        if let Some(problems) = self.details.get("problems").and_then(Value::as_array) {
            for problem in problems {
                let text = |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                output.error(&format!("  {}  {}", text("pointer"), text("message")));
            }
        }
        if let Some(hint) = &self.hint {
            output.error(&format!("hint: {hint}"));
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { exit: Exit::Ok, message: None, hint: None, code: None, details: Map::new() };
        }
        Self::new(Exit::Failed, error.to_string())
    }
}

impl From<baton_client::Error> for Failure {
    fn from(error: baton_client::Error) -> Self {
        let exit = Exit::of_client(&error);
        let hint = match (&error, exit) {
            // What TLS makes of an answer that is not TLS.
            (baton_client::Error::Unreachable { url, .. }, _)
                if url.starts_with("https://") && error.to_string().contains("corrupt message") =>
            {
                Some("the server there may speak plain http: try http:// instead of https://")
            }
            (baton_client::Error::Unreachable { .. }, _) => {
                Some("start a host with `baton dev`, or name one with --url (or BATON_URL)")
            }
            (baton_client::Error::Api { status: 401, .. }, _) => Some("give a key with --key (or BATON_API_KEY)"),
            (baton_client::Error::Api { status: 403, details, .. }, _) if details.contains_key("scopeRequired") => {
                Some("use a key that has this scope, with --key (or BATON_API_KEY)")
            }
            (baton_client::Error::NotUnderstood { .. }, _) => Some("is this the address of a Baton host?"),
            _ => match error.code() {
                Some("run_not_found") => Some("`baton run list` shows the runs"),
                Some("workflow_not_found") => Some("`baton workflow list` shows the workflows there are"),
                Some("interrupt_not_found") => Some("`baton interrupt list` shows the open questions"),
                _ => None,
            },
        };
        let mut failure = Self::new(exit, error.to_string());
        failure.hint = hint.map(str::to_owned);
        if let baton_client::Error::Api { code, details, message, .. } = error {
            failure.message = Some(format!("{message} [{code}]"));
            failure.code = Some(code);
            failure.details = details;
        }
        failure
    }
}
