//! What a host says about an agent, with where to look if there is none.

use crate::failure::Failure;

/// A host's refusal; who is not there is told where to look.
pub(super) fn refused(error: baton_client::Error) -> Failure {
    let nobody = match &error {
        baton_client::Error::Api { status, details, .. } => *status == 404 || details.contains_key("agentId"),
        _ => false,
    };
    let failure = Failure::from(error);
    if nobody { failure.hint("`baton agent list` shows the agents") } else { failure }
}
