//! Providers from settings.
//!
//! The operator says where a provider is and what opens it. Both stay here: neither is repeated in a problem, a fault or
//! a debug line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::address;
use crate::cassette::{Player, Recorder};
use crate::offers::Offers;
use crate::transport::{Bounds, Patience, Transport};
use crate::wire::{Settings, Vendor};
use crate::{
    Ear, MockProvider, Provider, ProviderFault, Script, ScriptedProvider, anthropic, gemini, openai, responses,
    uncounted,
};

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
    /// Answers on tape instead of, or beside, the provider.
    pub cassette: Option<CassetteSettings>,
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
    const fn vendor(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("openai"),
            Self::Anthropic => Some("anthropic"),
            Self::Gemini => Some("gemini"),
            Self::Mock => Some("mock"),
            Self::Scripted => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CassetteSettings {
    pub mode: CassetteMode,
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CassetteMode {
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
            cassette: None,
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
            .field("cassette", &self.cassette)
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

/// Sets up a provider. Nothing is sent yet.
pub fn build(name: &str, settings: &ProviderSettings) -> Result<Arc<dyn Provider>, ConfigProblem> {
    let problem = |setting, why: String| ConfigProblem { provider: name.to_owned(), setting, why };
    let offers = Offers::read(settings, official(settings)).map_err(|(setting, why)| problem(setting, why))?;
    let inner: Arc<dyn Provider> = match &settings.cassette {
        None => provider(settings).map_err(|(setting, why)| problem(setting, why))?,
        Some(CassetteSettings { mode: CassetteMode::Replay, path }) => {
            Arc::new(Player::new(path).map_err(|error| problem("cassette", error.to_string()))?)
        }
        Some(CassetteSettings { mode: CassetteMode::Record, path }) => {
            let inner = provider(settings).map_err(|(setting, why)| problem(setting, why))?;
            Arc::new(Recorder::new(inner, path).map_err(|error| problem("cassette", error.to_string()))?)
        }
    };
    let vendor = official(settings).then(|| settings.kind.vendor()).flatten();
    Ok(Arc::new(Described { inner, offers, vendor }))
}

/// Whether the vendor's own service is meant, or somebody's who speaks like it.
fn official(settings: &ProviderSettings) -> bool {
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

/// A provider, and what is known of its models.
struct Described {
    inner: Arc<dyn Provider>,
    offers: Offers,
    vendor: Option<&'static str>,
}

#[async_trait]
impl Provider for Described {
    async fn call(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<ModelReply, ProviderFault> {
        self.inner.call(request, ear).await
    }

    fn room(&self, request: &ModelRequest) -> Option<u64> {
        self.inner.room(request)
    }

    fn vendor(&self) -> Option<&'static str> {
        self.vendor
    }

    fn offers(&self, model: &str) -> BTreeSet<String> {
        self.offers.of(model)
    }

    fn infers(&self) -> bool {
        self.inner.infers()
    }
}

type Wrong = (&'static str, String);

fn provider(settings: &ProviderSettings) -> Result<Arc<dyn Provider>, Wrong> {
    let spoken = |official| Settings {
        max_output_tokens: settings.max_output_tokens,
        stream: settings.stream,
        native_schemas: settings.native_schemas,
        thinking_budget: settings.thinking_budget,
        prompt_cache: settings.prompt_cache,
        official,
    };
    if settings.wire == WireFormat::Responses && settings.kind != ProviderKind::OpenAi {
        return Err(("wire", "is `responses`, which only the kind `openai` speaks".to_owned()));
    }
    match settings.kind {
        ProviderKind::Mock => Ok(Arc::new(MockProvider::default())),
        ProviderKind::Scripted => Ok(Arc::new(ScriptedProvider::new(script(settings)?))),
        ProviderKind::OpenAi => {
            let base = base(settings, openai::BASE_URL)?;
            match settings.wire {
                WireFormat::Chat => remote(settings, base, openai::OpenAi(spoken(official(settings)))),
                WireFormat::Responses => remote(settings, base, responses::Responses(spoken(official(settings)))),
            }
        }
        ProviderKind::Anthropic => {
            remote(settings, base(settings, anthropic::BASE_URL)?, anthropic::Anthropic(spoken(true)))
        }
        ProviderKind::Gemini => remote(settings, base(settings, gemini::BASE_URL)?, gemini::Gemini(spoken(true))),
    }
}

fn script(settings: &ProviderSettings) -> Result<Script, Wrong> {
    let Some(path) = &settings.script else { return Ok(Script::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| ("script", format!("cannot be read: {error}")))?;
    Script::read(&text).map_err(|problem| ("script", format!("cannot be used: {problem}")))
}

fn base(settings: &ProviderSettings, usual: &str) -> Result<Url, Wrong> {
    let given = settings.base_url.as_deref();
    // Somebody's own server may be open to all of its network; the vendors' are not.
    if given.is_none() && settings.api_key.is_none() {
        return Err(("api_key", "is missing; this vendor answers nobody without one".to_owned()));
    }
    address::read(given.unwrap_or(usual)).map_err(|why| ("base_url", why.to_owned()))
}

fn remote(settings: &ProviderSettings, base: Url, vendor: impl Vendor + 'static) -> Result<Arc<dyn Provider>, Wrong> {
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let bounds = Bounds {
        connect: Duration::from_millis(settings.connect_timeout_ms),
        whole: Duration::from_millis(settings.timeout_ms),
        idle: Duration::from_millis(settings.idle_timeout_ms),
        whole_bytes: bytes(settings.max_reply_bytes),
        stream_bytes: bytes(settings.max_stream_bytes),
    };
    let first_pause = Duration::from_millis(settings.retry_pause_ms);
    let patience = Patience {
        retries: settings.retries,
        first_pause,
        longest_pause: first_pause.saturating_mul(16),
        longest_wait: Duration::from_millis(settings.retry_after_limit_ms),
    };
    if let Some(key) = &settings.api_key {
        sendable(key).then_some(()).ok_or(("api_key", "is empty or has letters that no header takes".to_owned()))?;
    }
    let headers = settings.headers.iter().map(|(name, value)| {
        let named = HeaderName::try_from(name.as_str()).ok().filter(|_| sendable(value));
        let named = named.ok_or_else(|| ("headers", format!("has a `{name}` that no request can carry")))?;
        Ok((named, value.clone()))
    });
    let headers = headers.collect::<Result<Vec<_>, Wrong>>()?;
    let transport = Transport::new(base, settings.api_key.clone(), headers, bounds, patience).ok_or_else(|| {
        ("base_url", "cannot be reached securely from here: install the system's CA certificates".to_owned())
    })?;
    Ok(Arc::new(Remote { vendor, transport }))
}

fn sendable(value: &SecretString) -> bool {
    let value = value.expose_secret();
    !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// A vendor and the way to it.
struct Remote<V> {
    vendor: V,
    transport: Transport,
}

#[async_trait]
impl<V: Vendor> Provider for Remote<V> {
    async fn call(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<ModelReply, ProviderFault> {
        let reply = self.transport.call(&self.vendor, request, ear).await?;
        Ok(uncounted::counted(reply, request))
    }

    fn room(&self, request: &ModelRequest) -> Option<u64> {
        self.vendor.room(request)
    }
}

#[cfg(test)]
mod tests;
