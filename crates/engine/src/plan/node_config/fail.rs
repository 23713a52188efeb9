//! Settings of a node that fails on purpose.

use baton_model::Fault;

use super::config::Config;
use crate::plan::problem::Problem;

/// `core.fail`: fails on purpose.
#[derive(Debug)]
pub(crate) struct Fail {
    pub(crate) fault: Fault,
}

impl Fail {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        let code = config
            .text("code")?
            .filter(|code| !code.is_empty())
            .unwrap_or_else(|| "conformance_test_failure".to_owned());
        let message = config.text("message")?.filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| "Intentional conformance failure".to_owned());
        Ok(Self { fault: Fault::new(code, message) })
    }
}
