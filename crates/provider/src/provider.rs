//! The port that every vendor is reached through, and what it sends while an answer arrives.

use std::collections::BTreeSet;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest};

use crate::fault::ProviderFault;

/// One way to reach models.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Makes the call. Whoever loses interest drops the future; the provider then gives up what it has open.
    /// [`ModelRequest::key`] names the call for vendors that recognise a repeated one.
    ///
    /// `sink` hears the answer while it is being given. What it hears is a preview: only the reply counts.
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault>;

    /// The most that an answer to this request could take if it were sent as it is, thoughts included. Nothing where
    /// nobody bounds it.
    fn room(&self, request: &ModelRequest) -> Option<u64> {
        request.semantic.max_output_tokens
    }

    /// Whose service it is, in the protocol's word for that vendor. Nothing of somebody's own server, whatever it speaks.
    fn vendor(&self) -> Option<&'static str> {
        None
    }

    /// What this model of it can do, as far as is known; see [`baton_model::MODEL_CAPABILITIES`].
    fn capabilities(&self, _model: &str) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Whether a model is behind it that reads what it is told. A script answers whatever it is told.
    fn infers(&self) -> bool {
        true
    }
}

/// Somebody who listens while a model speaks.
pub trait DeltaSink: Send + Sync {
    fn push(&self, delta: Delta);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl DeltaSink for NoSink {
    fn push(&self, _: Delta) {}
}

/// A piece of an answer, as it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// No answer yet: the provider is asked again, and this is why. The answer, if one comes, begins anew.
    Again(ProviderFault),
}
