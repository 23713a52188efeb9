//! Sends a request and reads its answer, within bounds, again where that is safe.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::Instant;

use crate::wire::{Decoder, Vendor, Wire};
use crate::{Broken, DeltaSink, ProviderFault, error_response};
use baton_model::{ModelReply, ModelRequest, Usage};

use super::body;
use super::limits::CallLimits;
use super::retry::{FailedAttempt, RetryPolicy};
use super::retry_after;

const AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));
/// No answer is worth more retry, whatever a request says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// Enough for any vendor's explanation.
const ERROR_BODY_BYTES: usize = 64 * 1024;

pub(crate) struct Transport {
    client: Client,
    base: Url,
    key: Option<SecretString>,
    headers: Vec<(HeaderName, SecretString)>,
    bounds: CallLimits,
    retry: RetryPolicy,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("bounds", &self.bounds).field("retry", &self.retry).finish_non_exhaustive()
    }
}

impl Transport {
    /// `None` if no HTTP client can be made here, for want of CA certificates.
    pub(crate) fn new(
        base: Url,
        key: Option<SecretString>,
        headers: Vec<(HeaderName, SecretString)>,
        bounds: CallLimits,
        retry: RetryPolicy,
    ) -> Option<Self> {
        // A client cannot be built without a provider, not even for plain HTTP. Whoever embeds us may have chosen one.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else may have been faster; then theirs counts.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let builder =
            Client::builder().redirect(Policy::none()).connect_timeout(bounds.connect).user_agent(AGENT).referer(false);
        let builder = match base.scheme() {
            "https" => builder.https_only(true),
            // Somewhere near: no certificates to look for, and no proxy that could reach it.
            _ => builder.tls_certs_only([]).no_proxy(),
        };
        let client = builder.build().ok()?;
        Some(Self { client, base, key, headers, bounds, retry })
    }

    pub(crate) async fn call(
        &self,
        vendor: &Vendor,
        request: &ModelRequest,
        sink: &dyn DeltaSink,
    ) -> Result<ModelReply, ProviderFault> {
        let (wire, decoder) = vendor.translate(request)?;
        let bound = request.timeout_ms.map_or(self.bounds.whole, Duration::from_millis);
        let deadline = Instant::now() + bound.min(LONGEST);
        let made = self.headers(vendor, request, &wire)?;
        let url = self.url(&wire);
        let body = serde_json::to_vec(&wire.body).map(Bytes::from);
        let body = body.map_err(|_| ProviderFault::Rejected("the request cannot be written as JSON".to_owned()))?;
        let (begun, counted) = (AtomicBool::new(false), Mutex::new(Usage::default()));
        let exchange = async {
            let send = || self.send(url.clone(), made.clone(), body.clone(), &*decoder);
            match self.retry.run(deadline, sink, send).await? {
                Answered::Refused(reply) => Ok(*reply),
                Answered::Begun(response) => {
                    begun.store(true, Ordering::Relaxed);
                    let heard = body::listen(response, decoder, sink, &self.bounds, &counted).await;
                    heard.map_err(|fault| fault.during_answer(*counted.lock()))
                }
            }
        };
        match tokio::time::timeout_at(deadline, exchange).await {
            Ok(answer) => answer,
            // The caller has waited long enough, whatever had come by then.
            Err(_) if begun.load(Ordering::Relaxed) => {
                let (fault, usage) = (ProviderFault::TimedOut, *counted.lock());
                Err(ProviderFault::Broken(Box::new(Broken { fault, usage, again: false })))
            }
            Err(_) => Err(ProviderFault::TimedOut),
        }
    }

    async fn send(
        &self,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
        decoder: &dyn Decoder,
    ) -> Result<Answered, FailedAttempt> {
        let sent = self.client.post(url).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| unsent(&error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(Answered::Begun(response));
        }
        let wait = retry_after::read(response.headers());
        let said = self.error_body(response).await;
        if let Some(reply) = decoder.refused(status, &said) {
            return Ok(Answered::Refused(Box::new(reply)));
        }
        let (fault, again) = error_response::status(status, &said);
        Err(FailedAttempt { fault, again: again == error_response::Again::Soon, wait })
    }

    /// What a server says is wrong, as far as it can be read at all.
    async fn error_body(&self, response: Response) -> Value {
        let read = body::read_all(response, ERROR_BODY_BYTES, self.bounds.idle).await;
        read.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn url(&self, wire: &Wire) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(&wire.path);
        }
        if !wire.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&wire.query);
        }
        url
    }

    fn headers(&self, vendor: &Vendor, request: &ModelRequest, wire: &Wire) -> Result<HeaderMap, ProviderFault> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &wire.headers {
            // A name for the call that cannot be a header is left out: nobody depends on it.
            headers.extend(HeaderValue::from_str(value).ok().map(|value| (HeaderName::from_static(name), value)));
        }
        if let Some(value) = request.trace.as_ref().and_then(|trace| HeaderValue::from_str(&trace.parent).ok()) {
            headers.insert("traceparent", value);
        }
        if let Some(key) = &self.key {
            let (name, before) = vendor.auth_header;
            headers.insert(name, secret(before, key)?);
        }
        for (name, value) in &self.headers {
            headers.insert(name.clone(), secret("", value)?);
        }
        Ok(headers)
    }
}

enum Answered {
    Begun(Response),
    Refused(Box<ModelReply>),
}

fn secret(before: &str, value: &SecretString) -> Result<HeaderValue, ProviderFault> {
    let wrong =
        |_| ProviderFault::Rejected("the provider's API key or a header has letters no header takes".to_owned());
    let mut value = HeaderValue::from_str(&format!("{before}{}", value.expose_secret())).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

/// No answer began. The client's own words name the address, so they are not repeated.
fn unsent(error: &reqwest::Error) -> FailedAttempt {
    let fault = if error.is_connect() && error.is_timeout() {
        ProviderFault::Unavailable("it cannot be reached, no connection came about in time".to_owned())
    } else if error.is_connect() {
        ProviderFault::Unavailable("it cannot be reached, no connection came about".to_owned())
    } else if error.is_builder() {
        return FailedAttempt {
            fault: ProviderFault::Rejected("the request could not be put together".to_owned()),
            again: false,
            wait: None,
        };
    } else {
        ProviderFault::Unavailable("the connection broke before an answer came".to_owned())
    };
    FailedAttempt { fault, again: true, wait: None }
}
