//! What test seams may do with the mock provider.

use baton_model::{ModelReply, NodeId, code};

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

    /// The room that the last call of a node left for its answer, if there was a call and it had a bound.
    pub fn mock_budget(&self, node: &NodeId) -> Option<u64> {
        self.inner.mock.last_budget(node)
    }

    /// Lets the mock provider forget what it was told.
    pub fn reset_mock(&self) {
        self.inner.mock.reset();
    }
}
