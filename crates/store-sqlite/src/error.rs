//! What a driver error means to the caller.

use std::io;

use baton_store::{CommitError, Error};
use rusqlite::ErrorCode;

/// Why a commit was not applied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It must not be: nothing was written, and the transaction may go on without it.
    #[error(transparent)]
    Refused(#[from] CommitError),
    /// The database would not take it, and the transaction is lost with it.
    #[error(transparent)]
    Data(CommitError),
    /// It could not be: the transaction is lost.
    #[error(transparent)]
    Disk(#[from] rusqlite::Error),
}

pub(crate) fn unwritable(error: &rusqlite::Error) -> CommitError {
    CommitError::Unavailable { reason: error.to_string() }
}

/// There was no room for it. SQLite says so before it has synced anything, so the same connection may go on.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Whether what was to be written is at fault, and the disk is not: the same again would fail again. What nobody has
/// thought of is the disk's.
pub(crate) fn is_of_the_data(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, NulError, SqliteFailure,
        ToSqlConversionFailure, Utf8Error,
    };
    match error {
        SqliteFailure(code, _) => matches!(
            code.code,
            ErrorCode::TooBig
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
        ),
        // What is there of it already does not read back, or what is new cannot be written.
        FromSqlConversionFailure(..)
        | IntegralValueOutOfRange(..)
        | InvalidColumnType(..)
        | Utf8Error(..)
        | ToSqlConversionFailure(_)
        | NulError(_) => true,
        _ => false,
    }
}

pub(crate) fn read_error(error: rusqlite::Error) -> Error {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, SqliteFailure, Utf8Error,
    };
    match error {
        SqliteFailure(code, _) if matches!(code.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Corrupt { reason: error.to_string() }
        }
        FromSqlConversionFailure(_, _, found) => match found.downcast::<Error>() {
            Ok(damaged) => *damaged,
            Err(found) => Error::Corrupt { reason: found.to_string() },
        },
        IntegralValueOutOfRange(..) | InvalidColumnType(..) | Utf8Error(..) => {
            Error::Corrupt { reason: error.to_string() }
        }
        error => Error::Unavailable { reason: error.to_string(), source: Some(Box::new(error)) },
    }
}

pub(crate) fn io_error(what: &str, error: io::Error) -> Error {
    Error::Unavailable { reason: format!("{what}: {error}"), source: Some(Box::new(error)) }
}

pub(crate) fn closed() -> Error {
    Error::Unavailable { reason: "the store is closed".to_owned(), source: None }
}
