//! The engine's refusals as errors of the runtime.

use baton_engine::{Refusal, RefusalKind};
use baton_model::code;

use crate::{Error, ErrorKind};

/// A tenant's writes, or everybody's, wait for the disk, and more of them would only wait longer.
pub(crate) fn disk_is_behind() -> Error {
    let message = "More waits to be written than the disk takes. Try again shortly.";
    Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message).with("retryAfter", 1)
}

pub(crate) fn refused(refusal: Refusal) -> Error {
    let kind = match refusal.kind {
        RefusalKind::Invalid => ErrorKind::Invalid,
        RefusalKind::Forbidden => ErrorKind::Forbidden,
        RefusalKind::NotFound => ErrorKind::NotFound,
        RefusalKind::Conflict => ErrorKind::Conflict,
        RefusalKind::Gone => ErrorKind::Gone,
        RefusalKind::Unprocessable => ErrorKind::Unprocessable,
    };
    let mut error =
        Error::new(kind, code::known(&refusal.fault.code).unwrap_or(code::VALIDATION_ERROR), refusal.fault.message);
    error.details = refusal.fault.details.unwrap_or_default();
    error
}
