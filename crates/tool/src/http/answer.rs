//! From what came back to what is shown: bounded, readable, and without secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_model::{Secret, redact};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Response, Url};
use serde_json::{Map, Value, json};

use baton_model::redact_value;

/// Read beyond the bound and dropped again: a secret that the cut would go through is still recognised as a whole.
const MARGIN: usize = 4 * 1024;

/// An answer, of which no more than a bound was read.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    url: Url,
    content_type: Option<String>,
    bytes: Vec<u8>,
    max_bytes: usize,
    truncated: bool,
}

impl Answer {
    /// Fails with a reason if the answer stops before its end.
    pub(super) async fn read(mut response: Response, max_bytes: usize) -> Result<Self, String> {
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let (content_type, location) = (header(CONTENT_TYPE), header(LOCATION));
        let (status, url) = (response.status().as_u16(), response.url().clone());
        let mut bytes = Vec::new();
        let limit = max_bytes + MARGIN;
        while bytes.len() < limit {
            match response.chunk().await {
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk[..chunk.len().min(limit - bytes.len())]),
                Ok(None) => break,
                Err(_) => {
                    let host = url.host_str().unwrap_or_default();
                    return Err(format!("{host} answered {status}, but the answer was cut off"));
                }
            }
        }
        let truncated = bytes.len() > max_bytes;
        Ok(Self { status, location, url, content_type, bytes, max_bytes, truncated })
    }

    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// As JSON: the status, where it came from, and the content as JSON, as a text or in base64.
    pub(super) fn shown(&self, secrets: &[Secret]) -> Value {
        let mut shown = Map::new();
        shown.insert("status".to_owned(), self.status.into());
        shown.insert("url".to_owned(), redact(self.url.as_str(), secrets).into());
        if let Some(content_type) = &self.content_type {
            shown.insert("contentType".to_owned(), redact(content_type, secrets).into());
        }
        if let Some(location) = &self.location {
            shown.insert("location".to_owned(), redact(location, secrets).into());
        }
        let (name, content) = self.content(secrets);
        shown.insert(name.to_owned(), content);
        if self.truncated {
            shown.insert("truncated".to_owned(), true.into());
        }
        Value::Object(shown)
    }

    fn content(&self, secrets: &[Secret]) -> (&'static str, Value) {
        let Some(text) = self.text() else { return self.binary(secrets) };
        // Secrets are looked for in the parsed form too: JSON has more than one way to write a character.
        let is_json = !self.truncated && self.content_type.as_deref().is_some_and(names_json);
        if is_json && let Ok(value) = serde_json::from_str::<Value>(text) {
            return ("body", redact_value(&value, secrets));
        }
        let mut clean = redact(text, secrets);
        if self.truncated {
            let mut end = clean.len().saturating_sub(MARGIN).min(self.max_bytes);
            while !clean.is_char_boundary(end) {
                end -= 1;
            }
            clean.truncate(end);
        }
        ("body", clean.into())
    }

    /// The bytes as text, unless they are something else. A character that was cut in two at the end does not count.
    fn text(&self) -> Option<&str> {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => Some(text),
            Err(problem) if self.truncated && problem.error_len().is_none() => {
                std::str::from_utf8(&self.bytes[..problem.valid_up_to()]).ok()
            }
            Err(_) => None,
        }
        .filter(|text| !text.contains('\0'))
    }

    fn binary(&self, secrets: &[Secret]) -> (&'static str, Value) {
        // A secret among other bytes cannot be replaced without breaking what is around it.
        let readable = String::from_utf8_lossy(&self.bytes);
        if redact(&readable, secrets) != readable {
            return ("body", json!("[REDACTED: binary content with a secret in it]"));
        }
        let kept = &self.bytes[..self.bytes.len().min(self.max_bytes)];
        ("bodyBase64", STANDARD.encode(kept).into())
    }
}

fn names_json(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(content_type: &str, bytes: &[u8], max_bytes: usize) -> Value {
        let answer = Answer {
            status: 200,
            location: None,
            url: Url::parse("https://a.example/").unwrap_or_else(|_| unreachable!()),
            content_type: Some(content_type.to_owned()),
            bytes: bytes[..bytes.len().min(max_bytes + MARGIN)].to_vec(),
            max_bytes,
            truncated: bytes.len() > max_bytes,
        };
        answer.shown(&[Secret::new("S", "sk-\"live/1234")])
    }

    #[test]
    fn content_is_json_or_text_or_base64() {
        assert_eq!(answer("application/problem+json; x=y", b"{\"a\":1}", 99)["body"], json!({"a": 1}));
        assert_eq!(answer("application/json", b"{\"a\":", 99)["body"], json!("{\"a\":"));
        assert_eq!(answer("text/plain", "grüß".as_bytes(), 99)["body"], json!("grüß"));
        assert_eq!(answer("image/png", &[0x89, 0x50, 0, 0xff], 99)["bodyBase64"], json!("iVAA/w=="));
        assert_eq!(answer("text/plain", &[0x61, 0xff], 99)["bodyBase64"], json!("Yf8="));
    }

    #[test]
    fn what_is_longer_is_cut_between_characters() {
        let long = "ü".repeat(10_000);
        let shown = answer("text/plain", long.as_bytes(), 101);
        assert_eq!((&shown["truncated"], shown["body"].as_str()), (&json!(true), Some("ü".repeat(50).as_str())));
        let binary = answer("image/png", &[0xff; 9000], 3);
        assert_eq!((&binary["truncated"], &binary["bodyBase64"]), (&json!(true), &json!("////")));
    }

    #[test]
    fn secrets_show_in_no_form_of_content() {
        let escaped = answer("application/json", br#"{"t": "sk-\"live\/1234"}"#, 99);
        assert_eq!(escaped["body"], json!({"t": "[REDACTED:S]"}));
        assert_eq!(answer("text/plain", b"x sk-\"live/1234", 99)["body"], json!("x [REDACTED:S]"));
        let binary = answer("image/png", b"\xff\xffsk-\"live/1234", 99);
        assert!(binary.get("bodyBase64").is_none(), "{binary}");
        // Across the cut: recognised as a whole, and not left there in part.
        let across = format!("{}sk-\"live/1234{}", "x".repeat(95), "y".repeat(9000));
        let body = answer("text/plain", across.as_bytes(), 100)["body"].to_string();
        assert!(!body.contains("sk-"), "{body}");
    }
}
