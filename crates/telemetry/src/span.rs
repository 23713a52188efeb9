//! What a span is before it becomes anybody's wire format. Attributes are ids, names, counts and codes; what a caller, a
//! model or a human said has no way in here.

use baton_model::{Fault, Secret, Timestamp, redact};

use crate::ids::{Parent, SpanId, TraceId};

/// The only attributes about cost that may be shown; others are dropped where they are set.
const COST: &str = "openwop.cost.";
pub const COST_ALLOWED: [&str; 7] = [
    "openwop.cost.tokens.input",
    "openwop.cost.tokens.output",
    "openwop.cost.tokens.total",
    "openwop.cost.usd",
    "openwop.cost.currency",
    "openwop.cost.estimated",
    "openwop.cost.provider",
];
/// Names come from definitions, which bound some of them and not others.
const MAX_TEXT_CHARS: usize = 256;
const MAX_CODE_CHARS: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<Parent>,
    pub name: String,
    pub kind: Kind,
    pub start: Timestamp,
    /// `None` while it is under way.
    pub end: Option<Timestamp>,
    pub attributes: Vec<(&'static str, Value)>,
    pub links: Vec<Link>,
    pub status: Status,
    /// Whoever began the trace wants it kept.
    pub sampled: bool,
    /// `tracestate`, as it came.
    pub state: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Internal,
    /// Somebody outside was asked.
    Client,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "internal",
            Self::Client => "client",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub trace: TraceId,
    pub span: SpanId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Unset,
    Ok,
    /// With the code and nothing else: a message may quote anything.
    Error(String),
}

impl Status {
    pub(crate) fn failed(fault: &Fault) -> Self {
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
        let is_code = !fault.code.is_empty() && fault.code.len() <= MAX_CODE_CHARS && fault.code.chars().all(letter);
        Self::Error(if is_code { fault.code.clone() } else { "error".to_owned() })
    }

    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::Ok => "ok",
            Self::Error(_) => "error",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(String),
    Texts(Vec<String>),
    Number(i64),
    Real(f64),
    Flag(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(short(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&[String]> for Value {
    fn from(texts: &[String]) -> Self {
        Self::Texts(texts.iter().map(|text| short(text)).collect())
    }
}

pub(crate) fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

impl Span {
    /// Sets an attribute, unless it is one that must not be shown. The last word counts.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if key.starts_with(COST) && !COST_ALLOWED.contains(&key) {
            return;
        }
        self.attributes.retain(|(known, _)| *known != key);
        self.attributes.push((key, value.into()));
    }

    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.set(key, value);
        self
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }

    /// Registered secrets go, wherever a definition or a tag has them.
    pub fn redact(&mut self, secrets: &[Secret]) {
        if secrets.is_empty() {
            return;
        }
        let clean = |text: &mut String| *text = redact(text, secrets);
        clean(&mut self.name);
        if let Status::Error(code) = &mut self.status {
            clean(code);
        }
        for (_, value) in &mut self.attributes {
            match value {
                Value::Text(text) => clean(text),
                Value::Texts(texts) => texts.iter_mut().for_each(clean),
                Value::Number(_) | Value::Real(_) | Value::Flag(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span() -> Span {
        Span {
            trace: TraceId([1; 16]),
            id: SpanId([2; 8]),
            parent: None,
            name: "openwop.node.sk-live-123456".to_owned(),
            kind: Kind::Internal,
            start: Timestamp::from_micros(0),
            end: None,
            attributes: Vec::new(),
            links: Vec::new(),
            status: Status::Unset,
            sampled: true,
            state: None,
        }
    }

    #[test]
    fn only_the_listed_costs_are_shown() {
        let mut span = span();
        for key in COST_ALLOWED {
            span.set(key, 1_u64);
        }
        for key in ["openwop.cost.prompt", "openwop.cost.tokens", "openwop.cost.tokens.input.text", "openwop.cost."] {
            span.set(key, "what was said");
        }
        let keys: Vec<_> = span.attributes.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, COST_ALLOWED);
    }

    #[test]
    fn a_status_has_a_code_and_never_a_sentence() {
        let failed = |code: &str| Status::failed(&Fault::new(code, "hunter2 is no number"));
        assert_eq!(failed("node_timeout"), Status::Error("node_timeout".to_owned()));
        for sentence in ["", "hunter2 is no number", "ä", &"x".repeat(65)] {
            assert_eq!(failed(sentence), Status::Error("error".to_owned()), "{sentence}");
        }
    }

    #[test]
    fn registered_secrets_are_replaced_and_long_texts_cut() {
        let mut span = span()
            .with("openwop.node_id", "x-sk-live-123456")
            .with("openwop.run.tags", &["sk-live-123456".to_owned()][..]);
        span.status = Status::Error("sk-live-123456".to_owned());
        span.redact(&[Secret::new("key", "sk-live-123456")]);
        assert!(!format!("{span:?}").contains("123456"), "{span:?}");
        assert_eq!(span.name, "openwop.node.[REDACTED:key]");
        let Value::Text(text) = Value::from("ä".repeat(300).as_str()) else { return };
        assert_eq!(text.chars().count(), MAX_TEXT_CHARS);
    }
}
