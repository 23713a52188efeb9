//! From what somebody asked for to what is sent.

use baton_model::tool::ToolFault;
use baton_model::{Secret, code};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use reqwest::{Method, Url};
use serde_json::Value;

use super::request::{HttpCall, fault};
use crate::secrets::{Destination, Secrets, Text};

const MAX_URL_BYTES: usize = 8 * 1024;
const MAX_HEADERS: usize = 32;
const MAX_BODY_BYTES: usize = 1024 * 1024;
const METHODS: &[Method] =
    &[Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Headers that belong to the connection or to this host, not to the caller.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Headers that carry credentials, and so are written as references only: what a workflow or a model writes out is on
/// record.
const CREDENTIALS: &[&str] = &["authorization", "cookie", "x-api-key"];

const AGENT: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));

/// A request, ready to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    /// Secrets in it.
    pub(super) used: Vec<Secret>,
    /// The headers they are in.
    confidential: Vec<HeaderName>,
}

impl Outgoing {
    pub(super) fn new(call: &HttpCall, secrets: &dyn Secrets) -> Result<Self, ToolFault> {
        let method = call.method.to_ascii_uppercase();
        let method = METHODS.iter().find(|known| known.as_str() == method).cloned();
        let method =
            method.ok_or_else(|| invalid("`method` must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"))?;
        let url = read_url(&call.url)?;
        let mut outgoing =
            Self { method, url, headers: HeaderMap::new(), body: None, used: Vec::new(), confidential: Vec::new() };
        outgoing.set_body(&call.body)?;
        outgoing.add_headers(call, secrets)?;
        outgoing.add_our_own(call);
        Ok(outgoing)
    }

    /// The same request to another place. What was meant for the first host stays there.
    pub(super) fn redirected(mut self, url: Url) -> Self {
        if url.origin() != self.url.origin() {
            for name in std::mem::take(&mut self.confidential) {
                self.headers.remove(name);
            }
        }
        Self { url, ..self }
    }

    fn set_body(&mut self, body: &Value) -> Result<(), ToolFault> {
        let (bytes, content_type) = match body {
            Value::Null => return Ok(()),
            Value::String(text) => (text.clone().into_bytes(), "text/plain; charset=utf-8"),
            other => (other.to_string().into_bytes(), "application/json"),
        };
        if bytes.len() > MAX_BODY_BYTES {
            return Err(invalid(format!("`body` must not be larger than {MAX_BODY_BYTES} bytes")));
        }
        self.headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        self.body = Some(bytes);
        Ok(())
    }

    fn add_headers(&mut self, call: &HttpCall, secrets: &dyn Secrets) -> Result<(), ToolFault> {
        if call.headers.len() > MAX_HEADERS {
            return Err(invalid(format!("`headers` must not have more than {MAX_HEADERS} members")));
        }
        let host = self.url.host_str().unwrap_or_default().trim_end_matches('.').to_owned();
        let destination = Destination::Http { tenant: &call.tenant, host: &host };
        for (name, value) in &call.headers {
            let header =
                name.parse::<HeaderName>().map_err(|_| invalid(format!("`{name}` is not the name of a header")))?;
            if OURS.contains(&header.as_str()) {
                return Err(invalid(format!("the header `{name}` is set by the host; leave it out")));
            }
            let text = Text::read(value).map_err(|problem| invalid(format!("the header `{name}` {problem}")))?;
            if CREDENTIALS.contains(&header.as_str()) && !text.is_secret() {
                return Err(invalid(format!(
                    "the header `{name}` carries a credential: write {{\"$secret\": \"ID\"}}"
                )));
            }
            let Some(resolved) = text.resolve(secrets, destination, &mut self.used) else {
                let message = format!("The secret for the header `{name}` is not known here, or not meant for {host}.");
                return Err(fault(code::CREDENTIAL_FORBIDDEN, message, false));
            };
            let mut sent = HeaderValue::from_str(&resolved)
                .map_err(|_| invalid(format!("the value of the header `{name}` has characters that cannot be sent")))?;
            if text.is_secret() {
                sent.set_sensitive(true);
                self.confidential.push(header.clone());
            }
            self.headers.insert(header, sent);
        }
        Ok(())
    }

    fn add_our_own(&mut self, call: &HttpCall) {
        self.headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let trace = call.trace.as_ref();
        for (name, value) in [
            ("idempotency-key", Some(&call.key)),
            ("traceparent", trace.map(|trace| &trace.parent)),
            ("tracestate", trace.and_then(|trace| trace.state.as_ref())),
        ] {
            if let Some(value) = value.and_then(|text| HeaderValue::from_str(text).ok()) {
                self.headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}

/// Absolute, with a host, and of a length that servers take.
pub(super) fn read_url(text: &str) -> Result<Url, ToolFault> {
    let unreadable = || invalid("`url` must be an absolute https:// address with a host");
    if text.len() > MAX_URL_BYTES {
        return Err(invalid(format!("`url` must not be longer than {MAX_URL_BYTES} bytes")));
    }
    let mut url = Url::parse(text).map_err(|_| unreadable())?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(unreadable());
    }
    url.set_fragment(None);
    Ok(url)
}

fn invalid(message: impl Into<String>) -> ToolFault {
    fault(code::VALIDATION_ERROR, message, false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::TraceContext;
    use serde_json::json;

    use super::*;
    use crate::secrets::SecretTable;

    fn call(headers: Value, body: Value) -> HttpCall {
        HttpCall {
            key: "key-1".to_owned(),
            method: "post".to_owned(),
            url: "https://api.example.com/x#part".to_owned(),
            headers: serde_json::from_value(headers).unwrap(),
            body,
            tenant: "acme".into(),
            trace: Some(TraceContext { parent: "00-a-b-01".to_owned(), state: None }),
            timeout_ms: None,
        }
    }

    fn table() -> SecretTable {
        SecretTable::default().with("TOKEN", "tok-12345678", ["api.example.com".to_owned()], None)
    }

    fn outgoing(headers: Value, body: Value) -> Result<Outgoing, ToolFault> {
        Outgoing::new(&call(headers, body), &table())
    }

    #[test]
    fn a_request_carries_its_key_its_trace_and_its_secrets() {
        let headers = json!({"Authorization": {"$secret": "TOKEN", "scheme": "Bearer"}, "X-Plain": "1"});
        let sent = outgoing(headers, json!({"a": 1})).unwrap();
        let header = |name: &str| sent.headers.get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(header("authorization"), "Bearer tok-12345678");
        assert_eq!((header("idempotency-key"), header("traceparent")), ("key-1".to_owned(), "00-a-b-01".to_owned()));
        assert_eq!((header("content-type"), header("x-plain")), ("application/json".to_owned(), "1".to_owned()));
        assert_eq!((sent.method.as_str(), sent.url.as_str()), ("POST", "https://api.example.com/x"));
        assert!(!format!("{sent:?}").contains("tok-12345678"), "{sent:?}");
        assert_eq!(
            outgoing(json!({"content-type": "text/csv"}), json!("a,b")).unwrap().headers["content-type"],
            "text/csv"
        );
    }

    #[test]
    fn headers_that_are_not_the_callers_are_refused() {
        for name in OURS {
            let refused = outgoing(json!({*name: "x"}), Value::Null).unwrap_err();
            assert_eq!(refused.code, "validation_error", "{name}");
        }
        for name in ["Authorization", "Cookie", "X-Api-Key"] {
            assert_eq!(outgoing(json!({name: "plain"}), Value::Null).unwrap_err().code, "validation_error", "{name}");
        }
        for headers in [json!({"a b": "x"}), json!({"a": 1}), json!({"a": "x\r\nHost: y"}), json!({"": "x"})] {
            assert_eq!(outgoing(headers.clone(), Value::Null).unwrap_err().code, "validation_error", "{headers}");
        }
    }

    #[test]
    fn a_secret_does_not_go_where_it_is_not_meant_to() {
        let mut call = call(json!({"authorization": {"$secret": "TOKEN"}}), Value::Null);
        call.url = "https://evil.example.org/".to_owned();
        let refused = Outgoing::new(&call, &table()).unwrap_err();
        let unknown = outgoing(json!({"authorization": {"$secret": "NONE"}}), Value::Null).unwrap_err();
        assert_eq!((refused.code.as_str(), unknown.code.as_str()), ("credential_forbidden", "credential_forbidden"));
        assert!(!refused.message.contains("tok-"), "{}", refused.message);
    }

    #[test]
    fn a_redirect_to_another_origin_loses_the_secrets() {
        let sent = || outgoing(json!({"x-token": {"$secret": "TOKEN"}, "x-plain": "1"}), Value::Null).unwrap();
        let same = sent().redirected("https://api.example.com/y".parse().unwrap());
        assert!(same.headers.contains_key("x-token") && same.headers.contains_key("x-plain"));
        for elsewhere in ["https://api.example.com:444/", "http://api.example.com/", "https://b.example.com/"] {
            let moved = sent().redirected(elsewhere.parse().unwrap());
            assert!(!moved.headers.contains_key("x-token") && moved.headers.contains_key("x-plain"), "{elsewhere}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let large = "x".repeat(MAX_BODY_BYTES + 1);
        assert_eq!(outgoing(json!({}), json!(large)).unwrap_err().code, "validation_error");
        let many: serde_json::Map<String, Value> = (0..=MAX_HEADERS).map(|n| (format!("x-{n}"), json!("1"))).collect();
        assert_eq!(outgoing(Value::Object(many), Value::Null).unwrap_err().code, "validation_error");
        assert!(read_url(&format!("https://a.example/{}", "x".repeat(MAX_URL_BYTES))).is_err());
        assert!(read_url("mailto:a@b.c").is_err() && read_url("/x").is_err());
    }
}
