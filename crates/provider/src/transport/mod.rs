//! The one way to every vendor over HTTP.
//!
//! ```text
//!  translate ──► send ──► status ──► body, piece by piece ──► decoder ──► reply
//!                 │         │           │ too long, too slow, broken off
//!                 └─ again ─┘           └─ not again here: the answer had begun, and says what it cost
//! ```
//!
//! Nothing that leaves here tells the key, the prompt, what a server said in its own words, or where it is.

mod body;
mod retry;
mod retry_after;

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
use crate::{Broken, Ear, ProviderFault, complaint};
use baton_model::{ModelReply, ModelRequest, Usage};

pub(crate) use retry::Patience;
use retry::Trouble;

const AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));
/// No answer is worth more patience, whatever a request says.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
/// Enough for any vendor's explanation.
const COMPLAINT_BYTES: usize = 64 * 1024;

/// Bounds on one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) connect: Duration,
    /// From the first attempt to the last byte, where a request does not say.
    pub(crate) whole: Duration,
    /// From one piece of an answer to the next.
    pub(crate) idle: Duration,
    pub(crate) whole_bytes: usize,
    /// A stream spends many bytes on every word.
    pub(crate) stream_bytes: usize,
}

pub(crate) struct Transport {
    client: Client,
    base: Url,
    key: Option<SecretString>,
    headers: Vec<(HeaderName, SecretString)>,
    bounds: Bounds,
    patience: Patience,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("bounds", &self.bounds)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Transport {
    /// `None` if no HTTP client can be made here, for want of CA certificates.
    pub(crate) fn new(
        base: Url,
        key: Option<SecretString>,
        headers: Vec<(HeaderName, SecretString)>,
        bounds: Bounds,
        patience: Patience,
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
        Some(Self { client, base, key, headers, bounds, patience })
    }

    pub(crate) async fn call(
        &self,
        vendor: &dyn Vendor,
        request: &ModelRequest,
        ear: &dyn Ear,
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
            match self.patience.insist(deadline, ear, send).await? {
                Answered::Refused(reply) => Ok(*reply),
                Answered::Begun(response) => {
                    begun.store(true, Ordering::Relaxed);
                    let heard = body::listen(response, decoder, ear, &self.bounds, &counted).await;
                    heard.map_err(|fault| fault.amid(*counted.lock()))
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
    ) -> Result<Answered, Trouble> {
        let sent = self.client.post(url).headers(headers).body(body).send().await;
        let response = sent.map_err(|error| unsent(&error))?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(Answered::Begun(response));
        }
        let wait = retry_after::read(response.headers());
        let said = self.complaint(response).await;
        if let Some(reply) = decoder.refused(status, &said) {
            return Ok(Answered::Refused(Box::new(reply)));
        }
        let (fault, again) = complaint::status(status, &said);
        Err(Trouble { fault, again: again == complaint::Again::Soon, wait })
    }

    /// What a server says is wrong, as far as it can be read at all.
    async fn complaint(&self, response: Response) -> Value {
        let read = body::read_all(response, COMPLAINT_BYTES, self.bounds.idle).await;
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

    fn headers(&self, vendor: &dyn Vendor, request: &ModelRequest, wire: &Wire) -> Result<HeaderMap, ProviderFault> {
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
            let (name, before) = vendor.lock();
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
fn unsent(error: &reqwest::Error) -> Trouble {
    let fault = if error.is_connect() && error.is_timeout() {
        ProviderFault::Unavailable("it cannot be reached, no connection came about in time".to_owned())
    } else if error.is_connect() {
        ProviderFault::Unavailable("it cannot be reached, no connection came about".to_owned())
    } else if error.is_builder() {
        return Trouble {
            fault: ProviderFault::Rejected("the request could not be put together".to_owned()),
            again: false,
            wait: None,
        };
    } else {
        ProviderFault::Unavailable("the connection broke before an answer came".to_owned())
    };
    Trouble { fault, again: true, wait: None }
}
