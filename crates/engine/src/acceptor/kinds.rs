//! Kinds of envelopes and the shape of their payloads.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::violation::{Shape, Violation};

/// Kinds that every node takes, whatever its contract says.
pub const UNIVERSAL: [&str; 4] = ["clarification.request", "schema.request", "schema.response", "error"];

/// The schemas of payloads, by kind. A kind without one takes any payload.
#[derive(Debug)]
pub struct Kinds {
    envelope: Shape,
    payloads: BTreeMap<String, (Value, Shape)>,
}

impl Kinds {
    /// The four that everybody knows, compiled once.
    pub fn shared() -> &'static Self {
        static UNIVERSAL: OnceLock<Kinds> = OnceLock::new();
        UNIVERSAL.get_or_init(Self::universal)
    }

    /// The four that everybody knows.
    pub fn universal() -> Self {
        let shipped = [
            include_str!("../../schemas/envelopes/clarification.request.json"),
            include_str!("../../schemas/envelopes/schema.request.json"),
            include_str!("../../schemas/envelopes/schema.response.json"),
            include_str!("../../schemas/envelopes/error.json"),
        ];
        let payload = |text: &str| (serde_json::from_str(text).unwrap_or_default(), Shape::shipped(text));
        Self {
            envelope: Shape::shipped(include_str!("../../schemas/envelopes/envelope.json")),
            payloads: UNIVERSAL.into_iter().zip(shipped).map(|(kind, text)| (kind.to_owned(), payload(text))).collect(),
        }
    }

    /// With a kind of the host's own. The universal ones stay as they are.
    pub fn with(mut self, kind: &str, schema: Value) -> Result<Self, String> {
        let compiled = Shape::compile(&schema)?;
        if !UNIVERSAL.contains(&kind) {
            self.payloads.insert(kind.to_owned(), (schema, compiled));
        }
        Ok(self)
    }

    /// The schema of a kind's payload, to be served or shown to a model.
    pub fn schema(&self, kind: &str) -> Option<&Value> {
        self.payloads.get(kind).map(|(schema, _)| schema)
    }

    pub(crate) fn shape(&self, envelope: &Value) -> Vec<Violation> {
        self.envelope.violations(envelope)
    }

    pub(crate) fn payload(&self, kind: &str, payload: &Value) -> Vec<Violation> {
        self.payloads.get(kind).map(|(_, schema)| schema.violations(payload)).unwrap_or_default()
    }
}
