//! Agents and models as a test asks about them.

use std::collections::BTreeSet;

use baton_model::{AgentCard, Digest, ModelChoice};
use baton_runtime::{Error, Host};

/// The same agent without the schemas of its handoffs, for a test that wants them not looked at. It is kept under its
/// digest, for a run that asks for it, and nobody finds it by its name.
pub(crate) async fn unchecked(host: &Host, card: &AgentCard) -> Result<Digest, Error> {
    host.keep_test_agent(&AgentCard { task_schema: None, return_schema: None, ..card.clone() }).await
}

/// What is known of a model: of one that this host reaches, what its configuration says; of any other, what is known of
/// its vendor's own service.
pub(crate) fn known_offers(host: &Host, model: &ModelChoice) -> BTreeSet<String> {
    let known = || baton_provider::vendor_capabilities(&model.provider, &model.model);
    host.offers(model).or_else(known).unwrap_or_default()
}
