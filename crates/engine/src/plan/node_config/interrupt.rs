//! Settings of a node that waits for whatever it names.

use baton_model::workflow::Node;
use serde_json::{Value, json};

use super::approval_gate::ApprovalGate;
use super::clarification_gate::ClarificationGate;
use super::config::Config;
use crate::plan::problem::Problem;
use crate::schema::Schema;

/// `core.interrupt`: waits for whatever its configuration names.
#[derive(Debug)]
pub(crate) enum GenericInterrupt {
    Approval(ApprovalGate),
    Clarification(ClarificationGate),
    External(External),
    Custom(Custom),
}

#[derive(Debug)]
pub(crate) struct External {
    pub(crate) data: Value,
    pub(crate) timeout_ms: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) data: Value,
    pub(crate) resume_schema: Option<(Value, Schema)>,
    pub(crate) timeout_ms: Option<u64>,
}

const MOST_TIMEOUT_MS: u64 = 31_536_000_000;

impl GenericInterrupt {
    pub(crate) fn compile(config: &Config<'_>, node: &Node) -> Result<Self, Vec<Problem>> {
        let kind = config.required_text("kind")?;
        let data = config.get("data").cloned().unwrap_or_else(|| json!({}));
        let timeout_ms = config.whole("timeoutMs", 0, MOST_TIMEOUT_MS)?.filter(|&ms| ms > 0);
        if !data.is_object() {
            return Err(config.problem("data", "`data` is an object."));
        }
        // The gates read their own keys; a generic interrupt carries the same ones under `data`.
        let inner = || {
            let mut inner = node.clone();
            inner.config = data.as_object().cloned().unwrap_or_default();
            if let Some(ms) = timeout_ms {
                inner.config.insert("timeoutMs".into(), ms.into());
            }
            inner
        };
        match kind.as_str() {
            "approval" => {
                let inner = inner();
                Ok(Self::Approval(ApprovalGate::compile(&config.nested(&inner), &inner)?))
            }
            "clarification" => {
                let inner = inner();
                Ok(Self::Clarification(ClarificationGate::compile(&config.nested(&inner))?))
            }
            "external-event" => {
                let named = data.get("eventType").is_some_and(Value::is_string);
                let correlated = data.get("correlation").is_none_or(Value::is_object);
                if !named || !correlated {
                    return Err(
                        config.problem("data", "An external event has `eventType` and an object `correlation`.")
                    );
                }
                let mut data = data;
                if data.get("correlation").is_none() {
                    data["correlation"] = json!({});
                }
                Ok(Self::External(External { data, timeout_ms }))
            }
            "custom" => {
                let resume_schema = config
                    .get("resumeSchema")
                    .map(|schema| {
                        if !schema.is_object() {
                            return Err(config.problem("resumeSchema", "`resumeSchema` is an object."));
                        }
                        Schema::compile(schema, config.strictness)
                            .map(|compiled| (schema.clone(), compiled))
                            .map_err(|error| config.problem("resumeSchema", format!("Not a JSON Schema: {error}")))
                    })
                    .transpose()?;
                let data = match data.get("customKind") {
                    Some(Value::String(_)) => data,
                    _ => json!({"customKind": node.id.as_str(), "payload": data}),
                };
                Ok(Self::Custom(Custom { data, resume_schema, timeout_ms }))
            }
            _ => Err(config
                .problem("kind", "`kind` is one of approval, clarification, external-event, custom on this host.")),
        }
    }
}
