//! Where spans go, and how.

use baton_model::Secret;

/// Where collectors listen for traces.
const TRACES: &str = "/v1/traces";

/// Where spans go, and what is said of whoever sends them.
#[derive(Clone, Debug)]
pub struct Settings {
    pub endpoint: Endpoint,
    pub encoding: Encoding,
    /// Sent with every request; may be secret.
    pub headers: Vec<Header>,
    pub version: String,
    /// This host's name among others.
    pub host_id: String,
    /// Taken out of every text.
    pub secrets: Vec<Secret>,
}

/// How spans are written, in OpenTelemetry's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Protobuf,
    /// Larger, and readable by whoever has nothing for protobuf.
    Json,
}

impl Encoding {
    pub const ALL: [Self; 2] = [Self::Json, Self::Protobuf];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Protobuf => "http/protobuf",
            Self::Json => "http/json",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|encoding| encoding.as_str() == text)
    }
}

#[derive(Clone)]
pub struct Header {
    pub name: String,
    pub value: String,
}

impl std::fmt::Debug for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: (hidden)", self.name)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is no name of a header, or its value has characters that a header must not have")]
    Header(String),
    #[error("the client could not be set up: {0}")]
    Client(String),
}

/// The address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(pub(super) reqwest::Url);

impl Endpoint {
    /// An `http` or `https` address. One without a path gets the usual one; user name and password have no place in it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut url = reqwest::Url::parse(text).ok()?;
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) || !plain {
            return None;
        }
        if url.path() == "/" {
            url.set_path(TRACES);
        }
        Some(Self(url))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}
