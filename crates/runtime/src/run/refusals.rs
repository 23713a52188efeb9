//! The engine's refusals as errors of the runtime.

use baton_engine::{Refusal, RefusalKind};
use baton_model::code;

use crate::{Error, Kind};

pub(crate) fn refused(refusal: Refusal) -> Error {
    let kind = match refusal.kind {
        RefusalKind::Invalid => Kind::Invalid,
        RefusalKind::Forbidden => Kind::Forbidden,
        RefusalKind::NotFound => Kind::NotFound,
        RefusalKind::Conflict => Kind::Conflict,
        RefusalKind::Gone => Kind::Gone,
        RefusalKind::Unprocessable => Kind::Unprocessable,
    };
    let mut error = Error::new(kind, static_code(&refusal.fault.code), refusal.fault.message);
    error.details = refusal.fault.details.unwrap_or_default();
    error
}

/// The engine's refusal codes are constants; this gives them back their lifetime.
fn static_code(text: &str) -> &'static str {
    [
        code::VALIDATION_ERROR,
        code::FORBIDDEN,
        code::INTERRUPT_NOT_FOUND,
        code::INTERRUPT_ALREADY_RESOLVED,
        code::INTERRUPT_CANCELLED,
        code::INTERRUPT_GONE,
        code::RUN_CONFLICT,
    ]
    .into_iter()
    .find(|code| *code == text)
    .unwrap_or(code::VALIDATION_ERROR)
}
