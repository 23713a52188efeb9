use serde_json::{Map, Value};

/// Why a request did not give what was asked, by what the caller can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The host answered with its error envelope.
    #[error("{message} [{code}, HTTP {status}]")]
    Api { status: u16, code: String, message: String, details: Map<String, Value> },
    /// No answer: nothing listens there, or the connection broke.
    #[error("{url} cannot be reached: {}", innermost(source))]
    Unreachable {
        url: String,
        #[source]
        source: reqwest::Error,
    },
    /// The stream stayed silent for longer than the host's heartbeat.
    #[error("{url} stopped answering")]
    Silent { url: String },
    /// Something answered, but not a Baton host of a version we know.
    #[error("the answer of {url} is not understood: {reason}")]
    NotUnderstood { url: String, reason: String },
    #[error("`{url}` is not a usable address: {reason}")]
    BadUrl { url: String, reason: String },
    /// The name of a memory scope, an entry or a file that no address can hold.
    #[error("`{name}` cannot be the name of anything on the host")]
    BadName { name: String },
    #[error("the key holds characters that cannot be sent in a header")]
    BadKey,
    #[error("no HTTP client can be built: {}", innermost(source))]
    Setup {
        #[source]
        source: reqwest::Error,
    },
}

impl Error {
    /// The host's stable code, when the host answered.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Api { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Whether the host may have got the request although no answer came.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => !source.is_connect(),
            Self::Silent { .. } | Self::NotUnderstood { .. } | Self::Api { .. } => true,
            Self::BadUrl { .. } | Self::BadName { .. } | Self::BadKey | Self::Setup { .. } => false,
        }
    }

    /// Whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } => true,
            Self::Api { status, .. } => matches!(status, 429 | 502..=504),
            Self::NotUnderstood { .. }
            | Self::BadUrl { .. }
            | Self::BadName { .. }
            | Self::BadKey
            | Self::Setup { .. } => false,
        }
    }
}

/// The cause a person can act on ("connection refused") sits at the end of reqwest's chain.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
