//! Model providers: the port every vendor is reached through, and the providers there are.
//!
//! A provider translates one [`ModelRequest`] into one call and its outcome into one [`ModelReply`]. It keeps nothing and
//! decides nothing: whether an answer is good, whether to ask for another and what is written down is the business of
//! others. Below the level of answers it may try again, where no answer had begun.
//!
//! ```text
//!  ModelRequest ─► openai ─┐                         ┌─► Delta … ─► Ear
//!                  anthropic ─► transport ─► decoder ─┤
//!                  gemini ─┘                         └─► ModelReply │ ProviderFault
//! ```
//!
//! * [`build`] makes a provider from [`ProviderSettings`].
//! * [`ScriptedProvider`] and [`MockProvider`] live in the process; [`cassette`] records others and plays them back.
//! * [`Prices`] says what a call cost.

mod address;
mod anthropic;
pub mod cassette;
mod complaint;
mod config;
mod conversation;
mod draft;
mod format;
mod gemini;
mod lower;
mod mock;
mod names;
mod offers;
mod openai;
mod options;
mod prices;
mod responses;
mod sample;
mod scripted;
#[cfg(test)]
mod testing;
mod think;
mod transport;
mod uncounted;
mod wire;

pub use config::{CassetteMode, CassetteSettings, ConfigProblem, ProviderKind, ProviderSettings, WireFormat, build};
pub use mock::MockProvider;
pub use offers::vendor_offers;
pub use prices::{Price, Prices};
pub use scripted::{Script, ScriptProblem, ScriptedProvider, Step};
pub use uncounted::{careful_input, estimated_input};

use std::collections::BTreeSet;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest, Usage};

/// One way to reach models.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Makes the call. Whoever loses interest drops the future; the provider then gives up what it has open.
    /// [`ModelRequest::key`] names the call for vendors that recognise a repeated one.
    ///
    /// `ear` hears the answer while it is being given. What it hears is a preview: only the reply counts.
    async fn call(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<ModelReply, ProviderFault>;

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
    fn offers(&self, _model: &str) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Whether a model is behind it that reads what it is told. A script answers whatever it is told.
    fn infers(&self) -> bool {
        true
    }
}

/// Somebody who listens while a model speaks.
pub trait Ear: Send + Sync {
    fn hear(&self, delta: Delta);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaf;

impl Ear for Deaf {
    fn hear(&self, _: Delta) {}
}

/// A piece of an answer, as it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    Text(String),
    Reasoning(String),
    /// No answer yet: the provider is asked again, and this is why. The answer, if one comes, begins anew.
    Again(ProviderFault),
}

/// Why there is no answer. None of this repeats the prompt, a credential, what a server said in its own words, or where
/// it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFault {
    /// It could not be reached, or had a bad moment: this is what happened.
    #[error("the provider failed: {0}")]
    Unavailable(String),
    #[error("the provider did not answer in time")]
    TimedOut,
    /// Too many calls, or nothing left to spend.
    #[error("the provider takes no more calls for now")]
    Exhausted,
    /// It would answer nobody who asks as this host does: the key is wrong, or the address.
    #[error("the provider cannot be used as it is set up: {0}")]
    Unusable(String),
    /// There is no such model.
    #[error("the provider does not have this model: {0}")]
    UnknownModel(String),
    /// More than it reads.
    #[error("the request is too long for the provider: {0}")]
    TooLong(String),
    /// The provider will never answer this request.
    #[error("the provider does not take this request: {0}")]
    Rejected(String),
    /// An answer had begun, and came to nothing.
    #[error("{}", .0.fault)]
    Broken(Box<Broken>),
}

/// An answer that broke off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub fault: ProviderFault,
    /// What the vendor had said by then that it used; it is paid for, answer or not.
    pub usage: Usage,
    /// The same call may do better.
    pub again: bool,
}

impl ProviderFault {
    /// What happened, whether or not an answer had begun.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Broken(broken) => broken.fault.cause(),
            fault => fault,
        }
    }

    /// This trouble, of an answer that had begun.
    pub(crate) fn amid(self, usage: Usage) -> Self {
        match self {
            Self::Broken(broken) => Self::Broken(Box::new(Broken { usage, ..*broken })),
            fault => {
                let again = matches!(fault, Self::Unavailable(_) | Self::TimedOut | Self::Exhausted);
                Self::Broken(Box::new(Broken { fault, usage, again }))
            }
        }
    }

    /// A word for metrics.
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::TimedOut => "timed-out",
            Self::Exhausted => "exhausted",
            Self::Unusable(_) | Self::UnknownModel(_) | Self::TooLong(_) | Self::Rejected(_) => "rejected",
            Self::Broken(broken) => broken.fault.outcome(),
        }
    }
}
