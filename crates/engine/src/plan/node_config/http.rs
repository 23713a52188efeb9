//! Settings of a node that makes one HTTP request.

use baton_model::tool::{SafetyTier, Transport};
use baton_model::{OutcomePolicy, ToolSpec};
use serde_json::{Map, Value, json};

use super::config::Config;
use super::source::TextSource;
use crate::expr::Expression;
use crate::plan::ports::Origin;
use crate::plan::problem::Problem;

/// `vendor.baton.http`: one HTTP request, announced before it is made.
#[derive(Debug)]
pub(crate) struct Http {
    pub(crate) method: String,
    /// None for the effect of conformance mode, which goes nowhere in particular.
    pub(crate) url: Option<TextSource>,
    pub(crate) headers: Map<String, Value>,
    pub(crate) body: Option<HttpBody>,
    pub(crate) into: Option<String>,
    pub(crate) verify_url: Option<String>,
    pub(crate) tool: ToolSpec,
}

#[derive(Debug)]
pub(crate) enum HttpBody {
    Value(Value),
    Expression(Expression),
}

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

impl Http {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&[
            "method",
            "url",
            "urlExpression",
            "headers",
            "body",
            "bodyExpression",
            "into",
            "outcomePolicy",
            "verifyUrl",
        ])?;
        let method = config.text("method")?.unwrap_or_else(|| "GET".to_owned()).to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            return Err(config.problem("method", format!("`method` is one of {}.", METHODS.join(", "))));
        }
        let headers = match config.get("headers") {
            None => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return Err(config.problem("headers", "`headers` maps names to texts or secret references.")),
        };
        let body = match (config.get("body"), config.expression("bodyExpression")?) {
            (None, None) => None,
            (Some(value), None) => Some(HttpBody::Value(value.clone())),
            (None, Some(expression)) => Some(HttpBody::Expression(expression)),
            _ => return Err(config.problem("body", "Give either `body` or `bodyExpression`.")),
        };
        let verify_url = config.text("verifyUrl")?;
        let safe = matches!(method.as_str(), "GET" | "HEAD");
        let outcome_policy = match config.text("outcomePolicy")?.as_deref() {
            None if safe => OutcomePolicy::Retry,
            None => OutcomePolicy::Ask,
            Some("retry") => OutcomePolicy::Retry,
            Some("ask") => OutcomePolicy::Ask,
            Some("fail") => OutcomePolicy::Fail,
            Some("verify") if verify_url.is_some() => OutcomePolicy::Verify,
            Some("verify") => return Err(config.problem("verifyUrl", "`outcomePolicy: verify` needs `verifyUrl`.")),
            Some(_) => {
                return Err(config.problem("outcomePolicy", "`outcomePolicy` is retry, verify, ask or fail."));
            }
        };
        let tool = ToolSpec {
            id: "openwop:http.request".to_owned(),
            description: String::new(),
            input_schema: json!({}),
            transport: Transport::Http,
            tier: if safe { SafetyTier::Read } else { SafetyTier::Write },
            outcome_policy,
            scopes: Vec::new(),
            stub: None,
        };
        Ok(Self {
            method,
            url: Some(TextSource::compile(config, "url")?),
            headers,
            body,
            into: config.text("into")?,
            verify_url,
            tool,
        })
    }

    /// Where what it sends comes from, and what the answer to it fills.
    pub(crate) fn sends(&self) -> Vec<&Expression> {
        let url = match &self.url {
            Some(TextSource::Expression(expression)) => Some(expression),
            Some(TextSource::Text(_)) | None => None,
        };
        let body = match &self.body {
            Some(HttpBody::Expression(expression)) => Some(expression),
            Some(HttpBody::Value(_)) | None => None,
        };
        url.into_iter().chain(body).collect()
    }

    pub(crate) fn stores(&self) -> Vec<(&str, Origin<'_>)> {
        let Some(into) = self.into.as_deref() else { return Vec::new() };
        self.sends().into_iter().map(|expression| (into, Origin::Expression(expression))).collect()
    }

    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        self.into.as_deref().map(|into| ("response", into))
    }
}
