//! Providers from settings. Nothing here talks to anybody.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest};
use reqwest::Url;
use reqwest::header::HeaderName;
use secrecy::{ExposeSecret, SecretString};

use crate::address;
use crate::capabilities::ModelCapabilities;
use crate::recording::{Player, Recorder};
use crate::settings::{
    ConfigProblem, ProviderKind, ProviderSettings, RecordingMode, RecordingSettings, WireFormat, official,
};
use crate::transport::{CallLimits, RetryPolicy, Transport};
use crate::wire::{Settings, Vendor};
use crate::{
    DeltaSink, MockProvider, Provider, ProviderFault, Script, ScriptedProvider, anthropic, estimate_tokens, gemini,
    openai, responses,
};

/// Sets up a provider. Nothing is sent yet.
pub fn build(name: &str, settings: &ProviderSettings) -> Result<Arc<dyn Provider>, ConfigProblem> {
    let problem = |setting, why: String| ConfigProblem { provider: name.to_owned(), setting, why };
    let capabilities =
        ModelCapabilities::read(settings, official(settings)).map_err(|(setting, why)| problem(setting, why))?;
    let inner: Arc<dyn Provider> = match &settings.recording {
        None => provider(settings).map_err(|(setting, why)| problem(setting, why))?,
        Some(RecordingSettings { mode: RecordingMode::Replay, path }) => {
            Arc::new(Player::new(path).map_err(|error| problem("recording", error.to_string()))?)
        }
        Some(RecordingSettings { mode: RecordingMode::Record, path }) => {
            let inner = provider(settings).map_err(|(setting, why)| problem(setting, why))?;
            Arc::new(Recorder::new(inner, path).map_err(|error| problem("recording", error.to_string()))?)
        }
    };
    let vendor = official(settings).then(|| settings.kind.vendor()).flatten();
    Ok(Arc::new(WithCapabilities { inner, capabilities, vendor }))
}

/// A provider, and what is known of its models.
struct WithCapabilities {
    inner: Arc<dyn Provider>,
    capabilities: ModelCapabilities,
    vendor: Option<&'static str>,
}

#[async_trait]
impl Provider for WithCapabilities {
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.inner.call(request, sink).await
    }

    fn room(&self, request: &ModelRequest) -> Option<u64> {
        self.inner.room(request)
    }

    fn vendor(&self) -> Option<&'static str> {
        self.vendor
    }

    fn capabilities(&self, model: &str) -> BTreeSet<String> {
        self.capabilities.of(model)
    }

    fn infers(&self) -> bool {
        self.inner.infers()
    }
}

type SettingProblem = (&'static str, String);

fn provider(settings: &ProviderSettings) -> Result<Arc<dyn Provider>, SettingProblem> {
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
                WireFormat::Chat => remote(settings, base, openai::vendor(spoken(official(settings)))),
                WireFormat::Responses => remote(settings, base, responses::vendor(spoken(official(settings)))),
            }
        }
        ProviderKind::Anthropic => {
            remote(settings, base(settings, anthropic::BASE_URL)?, anthropic::vendor(spoken(true)))
        }
        ProviderKind::Gemini => remote(settings, base(settings, gemini::BASE_URL)?, gemini::vendor(spoken(true))),
    }
}

fn script(settings: &ProviderSettings) -> Result<Script, SettingProblem> {
    let Some(path) = &settings.script else { return Ok(Script::default()) };
    let text = std::fs::read_to_string(path).map_err(|error| ("script", format!("cannot be read: {error}")))?;
    Script::read(&text).map_err(|problem| ("script", format!("cannot be used: {problem}")))
}

fn base(settings: &ProviderSettings, usual: &str) -> Result<Url, SettingProblem> {
    let given = settings.base_url.as_deref();
    // Somebody's own server may be open to all of its network; the vendors' are not.
    if given.is_none() && settings.api_key.is_none() {
        return Err(("api_key", "is missing; this vendor answers nobody without one".to_owned()));
    }
    address::read(given.unwrap_or(usual)).map_err(|why| ("base_url", why.to_owned()))
}

fn remote(settings: &ProviderSettings, base: Url, vendor: Vendor) -> Result<Arc<dyn Provider>, SettingProblem> {
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let bounds = CallLimits {
        connect: Duration::from_millis(settings.connect_timeout_ms),
        whole: Duration::from_millis(settings.timeout_ms),
        idle: Duration::from_millis(settings.idle_timeout_ms),
        whole_bytes: bytes(settings.max_reply_bytes),
        stream_bytes: bytes(settings.max_stream_bytes),
    };
    let first_pause = Duration::from_millis(settings.retry_pause_ms);
    let retry = RetryPolicy {
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
    let headers = headers.collect::<Result<Vec<_>, SettingProblem>>()?;
    let transport = Transport::new(base, settings.api_key.clone(), headers, bounds, retry).ok_or_else(|| {
        ("base_url", "cannot be reached securely from here: install the system's CA certificates".to_owned())
    })?;
    Ok(Arc::new(Remote { vendor, transport }))
}

fn sendable(value: &SecretString) -> bool {
    let value = value.expose_secret();
    !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// A vendor and the way to it.
struct Remote {
    vendor: Vendor,
    transport: Transport,
}

#[async_trait]
impl Provider for Remote {
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        let reply = self.transport.call(&self.vendor, request, sink).await?;
        Ok(estimate_tokens::with_estimates(reply, request))
    }

    fn room(&self, request: &ModelRequest) -> Option<u64> {
        (self.vendor.output_limit)(&self.vendor.settings, request)
    }
}

#[cfg(test)]
mod tests;
