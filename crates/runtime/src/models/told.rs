//! Why there is no answer, as a run is told.

use baton_model::{Fault, ModelRequest, code};
use baton_provider::ProviderFault;

/// The protocol's word for what happened, and ours.
pub(super) fn told(fault: &ProviderFault, request: &ModelRequest) -> Fault {
    let code = match fault {
        // Whoever may not come in is told what they would be told of a closed door: nothing is wrong with the request.
        ProviderFault::Unavailable(_) | ProviderFault::TimedOut | ProviderFault::Unusable(_) => {
            code::PROVIDER_UNAVAILABLE
        }
        ProviderFault::Exhausted => code::PROVIDER_QUOTA_EXHAUSTED,
        ProviderFault::UnknownModel(_) => code::MODEL_NOT_SUPPORTED,
        ProviderFault::TooLong(_) => code::CONTENT_TOO_LONG,
        ProviderFault::Rejected(_) => code::VALIDATION_ERROR,
    };
    let asked = &request.semantic;
    let told = Fault::new(code, format!("No answer: {fault}.")).with("provider", asked.provider.as_str());
    match fault {
        ProviderFault::UnknownModel(_) => told.with("model", asked.model.as_str()),
        _ => told,
    }
}
