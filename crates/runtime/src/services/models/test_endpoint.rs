//! What test seams may do with the mock provider.

use std::collections::BTreeSet;

use baton_model::{ModelChoice, ModelReply, NodeId, code};

use crate::{Error, Host, Kind};

impl Host {
    /// Tells the mock provider what to answer the calls of one node, instead of whatever it had left to say.
    pub fn program_mock(&self, node: NodeId, replies: Vec<ModelReply>) -> Result<(), Error> {
        if !self.inner.options.conformance {
            let message = "The mock provider answers in conformance mode only.";
            return Err(Error::new(Kind::Forbidden, code::MOCK_PROVIDER_FORBIDDEN, message));
        }
        self.inner.mock.program(node, replies);
        Ok(())
    }

    /// What is known of a model: of one that this host reaches, what its configuration says; of any other, what is known
    /// of its vendor's own service.
    pub fn known_offers(&self, model: &ModelChoice) -> BTreeSet<String> {
        let known = || baton_provider::vendor_offers(&model.provider, &model.model);
        self.inner.offers(model).or_else(known).unwrap_or_default()
    }

    /// The room that the last call of a node left for its answer, if there was a call and it had a bound.
    pub fn mock_budget(&self, node: &NodeId) -> Option<u64> {
        self.inner.mock.last_budget(node)
    }

    /// Lets the mock provider forget what it was told.
    pub fn reset_mock(&self) {
        self.inner.mock.reset();
    }
}
