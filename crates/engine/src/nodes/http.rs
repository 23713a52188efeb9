use baton_model::tool::{SafetyTier, Transport};
use baton_model::{Fault, OutcomePolicy, ToolSpec, ToolUse, code, native};
use serde_json::{Map, Value, json};

use super::config::Config;
use super::memory::Source;
use super::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::expr::Expression;
use crate::plan::{Origin, Problem};

/// `vendor.baton.http`: one HTTP request, announced before it is made.
#[derive(Debug)]
pub(crate) struct Http {
    method: String,
    /// None for the effect of conformance mode, which goes nowhere in particular.
    url: Option<Source>,
    headers: Map<String, Value>,
    body: Option<Body>,
    into: Option<String>,
    verify_url: Option<String>,
    pub(crate) tool: ToolSpec,
}

#[derive(Debug)]
enum Body {
    Value(Value),
    Expression(Expression),
}

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

impl Http {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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
            (Some(value), None) => Some(Body::Value(value.clone())),
            (None, Some(expression)) => Some(Body::Expression(expression)),
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
            url: Some(Source::compile(config, "url")?),
            headers,
            body,
            into: config.text("into")?,
            verify_url,
            tool,
        })
    }

    /// Something done to the world for conformance tests: announced, made and recorded like any other request.
    pub(super) fn effect(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["into"])?;
        let tool = ToolSpec {
            id: native::CONFORMANCE_EFFECT.to_owned(),
            description: String::new(),
            input_schema: json!({}),
            transport: Transport::Http,
            tier: SafetyTier::Write,
            outcome_policy: OutcomePolicy::Fail,
            scopes: Vec::new(),
            stub: None,
        };
        let (method, headers) = ("POST".to_owned(), Map::new());
        Ok(Self { method, url: None, headers, body: None, into: config.text("into")?, verify_url: None, tool })
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        match self.arguments(scene) {
            Ok(arguments) => {
                let asked = ToolUse { id: scene.node_id().to_string(), name: self.tool.id.clone(), arguments };
                Outcome::Effect(Box::new(asked))
            }
            Err(fault) => Outcome::Failed(fault),
        }
    }

    fn arguments(&self, scene: &EvalContext<'_>) -> Result<Value, Fault> {
        let Some(url) = &self.url else { return Ok(json!({})) };
        let url = url.text(scene)?;
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(Fault::new(code::VALIDATION_ERROR, "The address begins with http:// or https://."));
        }
        let mut arguments = json!({"method": self.method, "url": url});
        if !self.headers.is_empty() {
            arguments["headers"] = Value::Object(self.headers.clone());
        }
        match &self.body {
            None => {}
            Some(Body::Value(value)) => arguments["body"] = value.clone(),
            Some(Body::Expression(expression)) => {
                arguments["body"] = expression.evaluate(scene).map_err(|error| expression.fault(&error))?;
            }
        }
        if let Some(url) = &self.verify_url {
            arguments["verifyUrl"] = json!(url);
        }
        Ok(arguments)
    }

    /// Where what it sends comes from, and what the answer to it fills.
    pub(crate) fn sends(&self) -> Vec<&Expression> {
        let url = match &self.url {
            Some(Source::Expression(expression)) => Some(expression),
            Some(Source::Text(_)) | None => None,
        };
        let body = match &self.body {
            Some(Body::Expression(expression)) => Some(expression),
            Some(Body::Value(_)) | None => None,
        };
        url.into_iter().chain(body).collect()
    }

    pub(super) fn stores(&self) -> Vec<(&str, Origin<'_>)> {
        let Some(into) = self.into.as_deref() else { return Vec::new() };
        self.sends().into_iter().map(|expression| (into, Origin::Expression(expression))).collect()
    }

    pub(super) fn fills(&self) -> Option<(&'static str, &str)> {
        self.into.as_deref().map(|into| ("response", into))
    }

    pub(crate) fn done(&self, response: Value) -> Done {
        let variables = self.into.iter().map(|into| (into.clone(), response.clone())).collect();
        Done { variables, ..Done::with([("response".to_owned(), response)].into_iter().collect()) }
    }
}
