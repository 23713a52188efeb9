//! `openwop:http.fetch` and `openwop:http.request`.

use std::collections::BTreeMap;

use async_trait::async_trait;
use baton_model::tool::{OutcomePolicy, SafetyTier, ToolFault, ToolOutcome, ToolRequest, Transport};
use baton_model::{ToolSpec, code};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::client::{HttpClient, Unanswered};
use super::outgoing;
use super::request::{HttpCall, denied, fault};
use crate::catalog::{About, Egress, Latency};
use crate::{Called, Tool};

pub const FETCH: &str = "openwop:http.fetch";
pub const REQUEST: &str = "openwop:http.request";

/// A page that moves more often than this is not found.
const MAX_REDIRECTS: usize = 5;

/// Reads a page. Follows redirects, each of them to where the guard allows only.
pub struct HttpFetch {
    client: HttpClient,
    spec: ToolSpec,
}

/// Sends any request. What it answers is the answer, redirects included.
pub struct HttpRequest {
    client: HttpClient,
    spec: ToolSpec,
}

impl HttpFetch {
    pub fn new(client: HttpClient) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {"url": url_schema(), "headers": headers_schema()},
            "required": ["url"],
            "additionalProperties": false,
        });
        let description = "Fetches a page or file from the web (GET). Returns its status, content type and content.";
        Self { client, spec: spec(FETCH, description, schema, SafetyTier::Read, OutcomePolicy::Retry) }
    }

    async fn fetch(&self, call: &HttpCall) -> Result<ToolOutcome, Unanswered> {
        let deadline = self.client.deadline(call.timeout_ms);
        let mut outgoing = self.client.prepare(call)?;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.client.exchange(&outgoing, deadline).await?;
            let moved = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            let Some(location) = answer.location.as_deref().filter(|_| moved) else {
                return Ok(ToolOutcome::ok(answer.shown(&self.client.secrets(&outgoing))));
            };
            let next = outgoing.url.join(location).ok().and_then(|url| outgoing::read_url(url.as_str()).ok());
            let Some(next) = next else {
                return Ok(ToolOutcome::ok(answer.shown(&self.client.secrets(&outgoing))));
            };
            self.client.0.clients.guard().check(&next).map_err(|refused| Unanswered::Never(denied(refused, &next)))?;
            outgoing = outgoing.redirected(next);
        }
        let message = format!("The address redirects more than {MAX_REDIRECTS} times.");
        Err(Unanswered::Never(fault(code::EXTERNAL_CALL_FAILED, message, false)))
    }
}

impl HttpRequest {
    pub fn new(client: HttpClient) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {
                "method": {"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]},
                "url": url_schema(),
                "headers": headers_schema(),
                "body": {"description": "A text is sent as it is, anything else as JSON."},
            },
            "required": ["method", "url"],
            "additionalProperties": false,
        });
        let description = "Sends an HTTP request and returns the answer: status, content type and content. \
                           Redirects are not followed.";
        Self { client, spec: spec(REQUEST, description, schema, SafetyTier::Write, OutcomePolicy::Ask) }
    }
}

#[async_trait]
impl Tool for HttpFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        about("Fetch a web page")
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Given {
            url: String,
            #[serde(default)]
            headers: BTreeMap<String, Value>,
        }
        let Given { url, headers } = match given(request) {
            Ok(given) => given,
            Err(fault) => return Unanswered::Never(fault).into(),
        };
        match self.fetch(&http_call(request, "GET".to_owned(), url, headers, Value::Null)).await {
            Ok(outcome) => Called::Done(outcome),
            Err(unanswered) => unanswered.into(),
        }
    }
}

#[async_trait]
impl Tool for HttpRequest {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn about(&self) -> About {
        about("Send an HTTP request")
    }

    async fn call(&self, request: &ToolRequest) -> Called {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Given {
            method: String,
            url: String,
            #[serde(default)]
            headers: BTreeMap<String, Value>,
            #[serde(default)]
            body: Value,
        }
        let Given { method, url, headers, body } = match given(request) {
            Ok(given) => given,
            Err(fault) => return Unanswered::Never(fault).into(),
        };
        self.client.send(&http_call(request, method, url, headers, body)).await
    }
}

impl HttpClient {
    /// One request, whatever it answers.
    pub(super) async fn send(&self, call: &HttpCall) -> Called {
        let deadline = self.deadline(call.timeout_ms);
        let sent = async {
            let outgoing = self.prepare(call)?;
            let answer = self.exchange(&outgoing, deadline).await?;
            Ok::<_, Unanswered>(ToolOutcome::ok(answer.shown(&self.secrets(&outgoing))))
        };
        match sent.await {
            Ok(outcome) => Called::Done(outcome),
            Err(unanswered) => unanswered.into(),
        }
    }
}

fn given<T: DeserializeOwned>(request: &ToolRequest) -> Result<T, ToolFault> {
    T::deserialize(&request.arguments).map_err(|problem| {
        fault(code::VALIDATION_ERROR, format!("The arguments of {} do not read: {problem}.", request.tool), false)
    })
}

fn http_call(
    request: &ToolRequest,
    method: String,
    url: String,
    headers: BTreeMap<String, Value>,
    body: Value,
) -> HttpCall {
    HttpCall {
        key: request.key.clone(),
        method,
        url,
        headers,
        body,
        tenant: request.tenant.clone(),
        trace: request.trace.clone(),
        timeout_ms: request.timeout_ms,
    }
}

fn spec(id: &str, description: &str, input_schema: Value, tier: SafetyTier, policy: OutcomePolicy) -> ToolSpec {
    ToolSpec {
        id: id.to_owned(),
        description: description.to_owned(),
        input_schema,
        transport: Transport::Http,
        tier,
        outcome_policy: policy,
        scopes: Vec::new(),
        stub: None,
    }
}

fn about(title: &str) -> About {
    let output_schema = json!({
        "type": "object",
        "properties": {
            "status": {"type": "integer"},
            "url": {"type": "string"},
            "contentType": {"type": "string"},
            "location": {"type": "string"},
            "body": {"description": "JSON where the answer is JSON, else text."},
            "bodyBase64": {"type": "string"},
            "truncated": {"type": "boolean"},
        },
        "required": ["status", "url"],
    });
    About {
        title: Some(title.to_owned()),
        output_schema: Some(output_schema),
        egress: Some(Egress::SafeFetch),
        latency: Some(Latency::Medium),
        ..About::default()
    }
}

fn url_schema() -> Value {
    json!({"type": "string", "description": "An absolute https:// address."})
}

fn headers_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"$secret": {"type": "string"}, "scheme": {"type": "string"}},
                    "required": ["$secret"],
                    "additionalProperties": false,
                },
            ],
        },
        "description": "Credentials go by reference: {\"$secret\": \"ID\", \"scheme\": \"Bearer\"}.",
    })
}
