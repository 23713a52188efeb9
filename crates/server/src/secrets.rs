//! Names that callers choose end up in lists, events and refusals, where nothing may be replaced any more. So a name
//! that holds one of the operator's secrets is refused before anything looks at it. Contents are cleaned by the runtime.

use baton_model::redact;

use crate::app::App;
use crate::error::ApiError;

impl App {
    pub(crate) fn refuse_secret(&self, what: &str, name: &str) -> Result<(), ApiError> {
        if redact(name, &self.host.options().secrets) == name {
            return Ok(());
        }
        Err(ApiError::invalid(format!("The {what} holds a secret of this host. Choose another.")))
    }
}
