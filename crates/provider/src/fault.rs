//! Why a call gave no answer.

use baton_model::Usage;

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
    pub(crate) fn during_answer(self, usage: Usage) -> Self {
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
