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
    if is_damage(&error) {
        return Error::Corrupt { reason: words(&error) };
    }
    Error::Unavailable { reason: words(&error), source: Some(Box::new(error)) }
}

pub(crate) fn unwritable(error: &tokio_postgres::Error) -> CommitError {
    CommitError::Unavailable { reason: words(error) }
}

pub(crate) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { reason: reason.into(), source: None }
}

/// What is there does not read back: wrong encodings and numbers, damaged pages and indexes.
fn is_damage(error: &tokio_postgres::Error) -> bool {
    let code = error.code().map(SqlState::code).unwrap_or_default();
    code.starts_with("22") || ["XX001", "XX002"].contains(&code)
}

/// Whether what was to be written is at fault, and neither the database nor the way there is: the same again would fail
/// again. Values (22), rules (23) and limits (54); connections (08), resources (53), operators (57), the system (58) and
/// what nobody has thought of are not the data's. Nor is a statement that the database does not understand or allow (42): a
/// right that was taken away or a column that is missing fails whatever is written.
pub(crate) fn is_of_the_data(error: &tokio_postgres::Error) -> bool {
    match error.code() {
        Some(code) => ["22", "23", "54"].iter().any(|class| code.code().starts_with(class)),
        // It never left this process: a value that the driver does not know how to send. Its kinds have no names.
        None => {
            let what = error.to_string();
            what.starts_with("error serializing parameter") || what.starts_with("error encoding message")
        }
    }
}

/// How often a transaction may come again because somebody else was in its way.
pub(crate) const ATTEMPTS: u32 = 20;

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
