//! What another host says about why it wants a run.

use axum::http::HeaderMap;
use baton_model::{ForeignCause, Secret, redact};

use crate::error::ApiError;
use crate::headers;

/// The event on another host that asks for a run, and whether that host has taken the wish back. It is taken down as it is
/// told: the caller's key decides what it may do, and this changes nothing about that.
pub(super) fn read(headers: &HeaderMap, secrets: &[Secret]) -> Result<(Option<ForeignCause>, bool), ApiError> {
    let withdrawn = match headers::text(headers, ForeignCause::WITHDRAWN) {
        None | Some(Ok("false")) => false,
        Some(Ok("true")) => true,
        Some(_) => return Err(ApiError::invalid("The header Baton-Withdrawn must be `true`, `false` or absent.")),
    };
    let unreadable = |why: &str| ApiError::invalid(format!("The header Baton-Causation cannot be used: {why}."));
    let cause = match headers::text(headers, ForeignCause::HEADER) {
        None if withdrawn => return Err(ApiError::invalid("Baton-Withdrawn needs Baton-Causation beside it.")),
        None => return Ok((None, false)),
        Some(Err(())) => return Err(unreadable("it is not plain ASCII")),
        Some(Ok(text)) if redact(text, secrets) != text => return Err(unreadable("it holds a secret of this host")),
        Some(Ok(text)) => ForeignCause::parse(text).map_err(|why| unreadable(&why))?,
    };
    if headers.get_all(ForeignCause::HEADER).iter().count() > 1 {
        return Err(unreadable("there are several"));
    }
    Ok((Some(cause), withdrawn))
}
