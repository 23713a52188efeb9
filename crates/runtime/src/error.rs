use baton_model::{Fault, Timestamp, code};
use serde_json::{Map, Value};

/// Why the host did not do what it was asked, by what the caller can do about it. The server turns `kind` into a
/// status in one place; `code` is stable and has a page under `docs/errors/`.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Error {
    pub kind: ErrorKind,
    pub code: &'static str,
    /// For the client: says what to do.
    pub message: String,
    pub details: Map<String, Value>,
    /// For the log only.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is wrong and will stay wrong.
    Invalid,
    Forbidden,
    NotFound,
    /// The request was fine but the world moved.
    Conflict,
    Gone,
    /// More than a limit allows.
    TooLarge,
    /// More often than a limit allows.
    TooMany,
    /// Well-formed, but does not fit what it refers to.
    Unprocessable,
    /// Try again later.
    Unavailable,
    /// Our fault.
    Internal,
}

impl ErrorKind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Invalid,
        Self::Forbidden,
        Self::NotFound,
        Self::Conflict,
        Self::Gone,
        Self::TooLarge,
        Self::TooMany,
        Self::Unprocessable,
        Self::Unavailable,
        Self::Internal,
    ];

    /// As answers between hosts have it. They are stored, so the words never change.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "Invalid",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::TooLarge => "TooLarge",
            Self::TooMany => "TooMany",
            Self::Unprocessable => "Unprocessable",
            Self::Unavailable => "Unavailable",
            Self::Internal => "Internal",
        }
    }

    /// One that a newer host knows and this one does not is that host's fault as far as this one can tell.
    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name).unwrap_or(Self::Internal)
    }
}

impl Error {
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<String>) -> Self {
        Self { kind, code, message: message.into(), details: Map::new(), source: None }
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, code::VALIDATION_ERROR, message)
    }

    /// What is wrong with a request, found on the way.
    pub(crate) fn from_fault(fault: Fault) -> Self {
        Self { details: fault.details.unwrap_or_default(), ..Self::invalid(fault.message) }
    }

    pub fn run_not_found() -> Self {
        Self::new(ErrorKind::NotFound, code::RUN_NOT_FOUND, "There is no such run. List runs with GET /v1/runs.")
    }

    pub fn run_pruned(at: Timestamp) -> Self {
        let message = "This run's log was pruned. Its row in GET /v1/runs is all that is left.";
        Self::new(ErrorKind::Gone, code::RUN_PRUNED, message).with("prunedAt", at.to_string())
    }

    pub fn workflow_not_found(id: &str) -> Self {
        Self::new(
            ErrorKind::NotFound,
            code::WORKFLOW_NOT_FOUND,
            format!("There is no workflow `{id}`. Register it with POST /v1/workflows first."),
        )
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, code::SERVICE_UNAVAILABLE, message).with("retryAfter", 1)
    }

    /// A run's lock is not to be had: a step of it does not end.
    pub(crate) fn stepping() -> Self {
        Self::unavailable("A step of this run has not ended. Try again.")
    }

    pub(crate) fn stopping() -> Self {
        Self::unavailable("The host is shutting down.")
    }

    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn because(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Whether what is stored is not what was written.
    pub(crate) fn is_damage(&self) -> bool {
        self.code == code::STORAGE_DAMAGED
    }

    /// The same facts in the shape a bulk item or an event carries.
    pub fn fault(&self) -> Fault {
        let mut fault = Fault::new(self.code, self.message.clone());
        fault.details = (!self.details.is_empty()).then(|| self.details.clone());
        fault
    }
}

impl From<baton_store::Error> for Error {
    fn from(error: baton_store::Error) -> Self {
        match &error {
            baton_store::Error::Unavailable { .. } | baton_store::Error::Locked { .. } => {
                Self::unavailable("Storage cannot be read right now. Try again.").because(error)
            }
            baton_store::Error::Damaged { run, seq, .. } => {
                let message = format!(
                    "Stored data of the run {run} is damaged at sequence {seq}. Ask the operator to run `baton storage \
                     check`."
                );
                Self::new(ErrorKind::Conflict, code::STORAGE_DAMAGED, message)
                    .with("runId", run.as_str())
                    .with("sequence", *seq)
                    .because(error)
            }
            baton_store::Error::Corrupt { .. } => {
                let message = "What is stored of this is damaged. Ask the operator to run `baton storage check`.";
                Self::new(ErrorKind::Conflict, code::STORAGE_DAMAGED, message).because(error)
            }
        }
    }
}

impl From<baton_store::CommitError> for Error {
    fn from(error: baton_store::CommitError) -> Self {
        if let baton_store::CommitError::Refused { .. } = &error {
            let message = "Storage does not take this, so it did not happen. Trying again will not help.";
            return Self::new(ErrorKind::Internal, code::INTERNAL_ERROR, message).because(error);
        }
        Self::unavailable("The write could not be made durable, so it did not happen. Try again.").because(error)
    }
}
