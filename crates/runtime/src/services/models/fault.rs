//! Why there is no answer, as a run is told.

use baton_model::{Fault, ModelRequest, Usage, code};
use baton_provider::ProviderFault;

/// There is no answer, and this is why.
pub(crate) struct NoAnswer {
    pub(crate) fault: Fault,
    /// One had begun: what it took by then, and whether the same call may do better.
    pub(super) broken: Option<(Usage, bool)>,
}

impl NoAnswer {
    pub(super) fn of(fault: &ProviderFault, request: &ModelRequest) -> Self {
        let broken = match fault {
            ProviderFault::Broken(broken) => Some((broken.usage, broken.again)),
            _ => None,
        };
        Self { fault: told(fault, request), broken }
    }
}

impl NoAnswer {
    /// What was used for an answer that broke off.
    pub(crate) fn used(&self) -> Option<Usage> {
        self.broken.map(|(usage, _)| usage)
    }
}

impl From<Fault> for NoAnswer {
    fn from(fault: Fault) -> Self {
        Self { fault, broken: None }
    }
}

/// The protocol's word for what happened, and ours.
pub(super) fn told(fault: &ProviderFault, request: &ModelRequest) -> Fault {
    let cause = fault.cause();
    let code = match cause {
        // Whoever may not come in is told what they would be told of a closed door: nothing is wrong with the request.
        ProviderFault::Unavailable(_)
        | ProviderFault::TimedOut
        | ProviderFault::Unusable(_)
        | ProviderFault::Broken(_) => code::PROVIDER_UNAVAILABLE,
        ProviderFault::Exhausted => code::PROVIDER_QUOTA_EXHAUSTED,
        ProviderFault::UnknownModel(_) => code::MODEL_NOT_SUPPORTED,
        ProviderFault::TooLong(_) => code::CONTENT_TOO_LONG,
        ProviderFault::Rejected(_) => code::VALIDATION_ERROR,
    };
    let asked = &request.semantic;
    let told = Fault::new(code, format!("No answer: {fault}.")).with("provider", asked.provider.as_str());
    match cause {
        ProviderFault::UnknownModel(_) => told.with("model", asked.model.as_str()),
        _ => told,
    }
}
