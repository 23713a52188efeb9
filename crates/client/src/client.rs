use std::time::Duration;

use baton_api::ErrorBody;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH};
use reqwest::{Method, Response, Url};
use serde::de::DeserializeOwned;

use crate::Error;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the 60 s a poll may be held open.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);

/// The largest answer that is taken into memory, unless the caller wants less: a page of the largest events fits, and a
/// host that never stops sending costs no more.
const ANSWER_BYTES: usize = 512 * 1024 * 1024;

/// A connection to one host with one key. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    base: Url,
    /// No overall timeout: streams are open for as long as the run lives.
    http: reqwest::Client,
    answer_bytes: usize,
}

impl Client {
    pub fn new(base_url: &str, key: Option<&str>) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadUrl { url: base_url.to_owned(), reason: reason.to_owned() };
        let base = Url::parse(base_url.trim_end_matches('/')).map_err(|error| bad(&error.to_string()))?;
        let host = base.host_str().ok_or_else(|| bad("it names no host"))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(bad("it must start with http:// or https://"));
        }
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}")).map_err(|_| Error::BadKey)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = reqwest::Client::builder()
            .default_headers(headers)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")));
        if base.scheme() == "http" {
            // Reading the system's certificates takes longer than the request, and fails where there are none.
            builder = builder.tls_certs_only([]);
        }
        if is_loopback(host) {
            builder = builder.no_proxy();
        }
        let http = builder.build().map_err(|source| Error::Setup { source })?;
        Ok(Self { base, http, answer_bytes: ANSWER_BYTES })
    }

    /// The same, with another bound on the size of an answer. Streams have none.
    #[must_use]
    pub fn with_answer_bytes(mut self, most: usize) -> Self {
        self.answer_bytes = most;
        self
    }

    pub fn base_url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The address of a route; each segment is percent-encoded.
    pub(crate) fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Like [`Client::url`], for a last segment that somebody made up. `.` and `..` are names like any other to a person,
    /// but no address can end in them.
    pub(crate) fn url_of_name(&self, segments: &[&str], name: &str) -> Result<Url, Error> {
        if matches!(name, "" | "." | "..") {
            return Err(Error::BadName { name: name.to_owned() });
        }
        Ok(self.url(&[segments, &[name]].concat()))
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, Error> {
        self.json(self.http.get(url)).await.map(|(_, answer)| answer)
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        url: Url,
        body: &impl serde::Serialize,
        idempotency_key: Option<&str>,
    ) -> Result<T, Error> {
        self.post_for_status(url, body, idempotency_key).await.map(|(_, answer)| answer)
    }

    /// Like [`Client::post`], for routes where 200 and 201 mean different things.
    pub(crate) async fn post_for_status<T: DeserializeOwned>(
        &self,
        url: Url,
        body: &impl serde::Serialize,
        idempotency_key: Option<&str>,
    ) -> Result<(u16, T), Error> {
        let mut request = self.http.request(Method::POST, url).json(body);
        if let Some(key) = idempotency_key {
            request = request.header("Idempotency-Key", key);
        }
        self.json(request).await
    }

    /// Like [`Client::post`], with headers of its own.
    pub(crate) async fn post_with<T: DeserializeOwned>(
        &self,
        url: Url,
        body: &impl serde::Serialize,
        headers: HeaderMap,
    ) -> Result<T, Error> {
        self.json(self.http.request(Method::POST, url).json(body).headers(headers)).await.map(|(_, answer)| answer)
    }

    /// Replaces what is at the address; with `if_match`, only if it is still that one.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        url: Url,
        body: &impl serde::Serialize,
        if_match: Option<&str>,
    ) -> Result<T, Error> {
        let request = matching(self.http.request(Method::PUT, url).json(body), if_match);
        self.json(request).await.map(|(_, answer)| answer)
    }

    pub(crate) async fn delete(&self, url: Url, if_match: Option<&str>) -> Result<(), Error> {
        self.send(matching(self.http.request(Method::DELETE, url), if_match)).await.map(|_| ())
    }

    /// Opens an event stream and returns once the host has accepted it.
    pub(crate) async fn open(&self, url: Url, after: Option<u64>) -> Result<Response, Error> {
        let mut request = self.http.get(url).header(ACCEPT, "text/event-stream");
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after);
        }
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        if !response.status().is_success() {
            return Err(self.refusal(response).await);
        }
        let streams = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|value| value.starts_with("text/event-stream"));
        if !streams {
            return Err(self.not_understood("it is no event stream"));
        }
        Ok(response)
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    pub(crate) fn unreachable(&self, source: reqwest::Error) -> Error {
        Error::Unreachable { url: self.base_url().to_owned(), source }
    }

    pub(crate) fn silent(&self) -> Error {
        Error::Silent { url: self.base_url().to_owned() }
    }

    pub(crate) fn not_understood(&self, reason: impl Into<String>) -> Error {
        Error::NotUnderstood { url: self.base_url().to_owned(), reason: reason.into() }
    }

    async fn json<T: DeserializeOwned>(&self, request: reqwest::RequestBuilder) -> Result<(u16, T), Error> {
        let response = self.send(request).await?;
        let status = response.status().as_u16();
        let body = self.body(response).await?;
        let answer = serde_json::from_slice(&body).map_err(|error| self.not_understood(error.to_string()))?;
        Ok((status, answer))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<Response, Error> {
        let request = request.header(ACCEPT, "application/json").timeout(REQUEST_TIMEOUT);
        let response = request.send().await.map_err(|source| self.unreachable(source))?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// The whole body, within the bound.
    pub(crate) async fn body(&self, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|source| self.unreachable(source))? {
            if body.len().saturating_add(chunk.len()) > self.answer_bytes {
                let most = self.answer_bytes;
                return Err(self.not_understood(format!("its answer is longer than the {most} bytes that are read")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    pub(crate) async fn refusal(&self, response: Response) -> Error {
        let status = response.status().as_u16();
        let body = match self.body(response).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(ErrorBody { error, message, details }) => Error::Api { status, code: error, message, details },
            Err(_) => self.not_understood(format!("HTTP {status} without an error envelope")),
        }
    }
}

fn matching(request: reqwest::RequestBuilder, if_match: Option<&str>) -> reqwest::RequestBuilder {
    match if_match {
        Some(etag) => request.header(IF_MATCH, etag),
        None => request,
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn client(base: &str) -> Result<Client, Error> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Client::new(base, Some("k"))
    }

    #[test]
    fn ids_cannot_escape_their_segment() {
        let client = client("http://127.0.0.1:7717/").unwrap();
        let url = client.url(&["v1", "runs", "a/../b?c#d", "events"]);
        assert_eq!(url.as_str(), "http://127.0.0.1:7717/v1/runs/a%2F..%2Fb%3Fc%23d/events");
        assert_eq!(client.url(&["v1", "runs", "run_1:pause"]).path(), "/v1/runs/run_1:pause");
    }

    #[test]
    fn a_base_path_is_kept() {
        assert_eq!(client("https://example.org/wop/").unwrap().url(&["v1"]).as_str(), "https://example.org/wop/v1");
    }

    #[test]
    fn addresses_that_cannot_work_are_refused_at_once() {
        for bad in ["", "127.0.0.1:7717", "ftp://x", "http://"] {
            assert!(matches!(client(bad), Err(Error::BadUrl { .. })), "{bad}");
        }
    }

    #[test]
    fn loopback_is_recognised_in_every_spelling() {
        for host in ["localhost", "127.0.0.1", "[::1]", "127.9.9.9"] {
            assert!(is_loopback(host), "{host}");
        }
        assert!(!is_loopback("example.org"));
    }
}
