//! How an operator configures a provider.
//!
//! The operator says where a provider is and what opens it. Both stay here: neither is repeated in a problem, a fault or
//! a debug line.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use reqwest::Url;
use secrecy::SecretString;
use serde::Deserialize;

use crate::{address, vendor_names};

const MIB: u64 = 1024 * 1024;

/// One provider, as an operator configures it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderSettings {
    pub kind: ProviderKind,
    /// Up to and with the version, e.g. `http://localhost:11434/v1`. Without one, the vendor's own service is meant.
    pub base_url: Option<String>,
    /// Never read from a file: whoever reads the settings knows where the key is and adds it.
    #[serde(skip)]
    pub api_key: Option<SecretString>,
    /// Sent with every request; some servers want an account or a key of their own.
    pub headers: BTreeMap<String, SecretString>,
    /// Answers from a recording, or into one. `cassette` was its name before.
    #[serde(alias = "cassette")]
    pub recording: Option<RecordingSettings>,
    /// What a scripted provider says.
    pub script: Option<PathBuf>,
    /// Where a request does not say how much may be answered.
    pub max_output_tokens: Option<u64>,
    /// For models that must be told how much they may think; others decide for themselves.
    pub thinking_budget: Option<u64>,
    /// What its models can do, where that is not known from their names; for all of them, and for some.
    pub capabilities: Option<Vec<String>>,
    pub model_capabilities: BTreeMap<String, Vec<String>>,
    /// Whether answers are asked for piece by piece.
    pub stream: bool,
    /// Whether the vendor is asked to hold its model to a schema. Without, the prompt says what is wanted.
    pub native_schemas: bool,
    /// Which of OpenAI's two ways of asking is spoken.
    pub wire: WireFormat,
    /// Whether Anthropic is told which part of a request stays the same, so that it need not read it anew.
    pub prompt_cache: bool,
    /// From the first attempt to the last byte, where a request does not say.
    pub timeout_ms: u64,
    pub connect_timeout_ms: u64,
    /// From one piece of an answer to the next.
    pub idle_timeout_ms: u64,
    /// How often to ask again where no answer had begun.
    pub retries: usize,
    /// The first pause; each further one is about twice as long.
    pub retry_pause_ms: u64,
    /// The longest pause that a server may ask for.
    pub retry_after_limit_ms: u64,
    /// The longest answer that is read, and the longest stream that one may take.
    pub max_reply_bytes: u64,
    pub max_stream_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Chat completions: OpenAI and whoever speaks like it.
    #[default]
    OpenAi,
    Anthropic,
    #[serde(alias = "google")]
    Gemini,
    Scripted,
    Mock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireFormat {
    /// Chat completions, which everybody who is like the vendor speaks.
    #[default]
    Chat,
    Responses,
}

impl ProviderKind {
    /// The protocol's word for the vendor, where this is one.
    pub(crate) const fn vendor(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some(vendor_names::OPENAI),
            Self::Anthropic => Some(vendor_names::ANTHROPIC),
            Self::Gemini => Some(vendor_names::GEMINI),
            Self::Mock => Some(vendor_names::MOCK),
            Self::Scripted => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordingSettings {
    pub mode: RecordingMode,
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordingMode {
    Record,
    Replay,
}

impl Default for ProviderSettings {
    fn default() -> Self {
        Self {
            kind: ProviderKind::default(),
            base_url: None,
            api_key: None,
            headers: BTreeMap::new(),
            recording: None,
            script: None,
            max_output_tokens: None,
            thinking_budget: None,
            capabilities: None,
            model_capabilities: BTreeMap::new(),
            stream: true,
            native_schemas: true,
            wire: WireFormat::default(),
            prompt_cache: true,
            timeout_ms: 600_000,
            connect_timeout_ms: 10_000,
            idle_timeout_ms: 180_000,
            retries: 3,
            retry_pause_ms: 500,
            retry_after_limit_ms: 30_000,
            max_reply_bytes: 16 * MIB,
            max_stream_bytes: 64 * MIB,
        }
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("kind", &self.kind)
            .field("base_url", &self.base_url.as_ref().map(|_| "[set]"))
            .field("api_key", &self.api_key.as_ref().map(|_| "[set]"))
            .field("headers", &self.headers.keys())
            .field("recording", &self.recording)
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

/// Why a provider cannot be set up, and which setting is to blame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("provider `{provider}`: `{setting}` {why}")]
pub struct ConfigProblem {
    pub provider: String,
    pub setting: &'static str,
    pub why: String,
}

/// Whether the vendor's own service is meant, or somebody's who speaks like it.
pub(crate) fn official(settings: &ProviderSettings) -> bool {
    let Some(base) = &settings.base_url else { return true };
    let url = address::read(base).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let within = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
    match settings.kind {
        ProviderKind::OpenAi => within("api.openai.com") || host.ends_with(".openai.azure.com"),
        ProviderKind::Anthropic => within("anthropic.com"),
        ProviderKind::Gemini => within("googleapis.com"),
        ProviderKind::Mock | ProviderKind::Scripted => true,
    }
}
