//! What a driver error means to the caller.

use baton_store::{CommitError, Error};
use tokio_postgres::error::SqlState;

/// A failure in PostgreSQL's own words, which are not what the driver's `Display` says.
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    if let Some(database) = error.as_db_error() {
        return format!("{} ({})", database.message(), database.code().code());
    }
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

pub(crate) fn read_error(error: tokio_postgres::Error) -> Error {
    Error::Unavailable { reason: words(&error), source: Some(Box::new(error)) }
}

pub(crate) fn unwritable(error: &tokio_postgres::Error) -> CommitError {
    CommitError::Unavailable { reason: words(error) }
}

pub(crate) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { reason: reason.into(), source: None }
}

pub(crate) fn corrupt(column: &str, text: &str) -> Error {
    Error::Corrupt { reason: format!("{column} holds {text:?}") }
}

/// Two transactions met, and the database asks for one of them to come again.
pub(crate) fn is_retryable(error: &tokio_postgres::Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::T_R_SERIALIZATION_FAILURE) || code == Some(&SqlState::T_R_DEADLOCK_DETECTED)
}

/// Something is there already that was thought not to be.
pub(crate) fn is_duplicate(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::UNIQUE_VIOLATION)
}

/// Why there is no connection, and what to do about it.
pub(crate) fn connect_error(place: &str, error: tokio_postgres::Error) -> Error {
    let what = words(&error);
    let code = error.code();
    let hint =
        if code == Some(&SqlState::INVALID_PASSWORD) || code == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
            "check the user and the password in the database URL"
        } else if what.contains("password missing") {
            "the server wants a password: postgres://user:password@host/database"
        } else if code == Some(&SqlState::INVALID_CATALOG_NAME) {
            "create it (createdb), or correct the name in the database URL"
        } else if code == Some(&SqlState::TOO_MANY_CONNECTIONS) {
            "lower the pool size, or raise the server's max_connections"
        } else if code == Some(&SqlState::CANNOT_CONNECT_NOW) {
            "the server is starting or stopping; try again in a moment"
        } else if what.to_lowercase().contains("tls") || what.contains("certificate") {
            "check sslmode and sslrootcert in the database URL"
        } else {
            "is the server running there, and may this machine reach it?"
        };
    Error::Unavailable { reason: format!("cannot use {place}: {what}; {hint}"), source: Some(Box::new(error)) }
}
